"""Benchmarks with a simulated oracle: the only place besides metrics that sees the truth of the pool."""
