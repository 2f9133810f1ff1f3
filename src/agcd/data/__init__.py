"""Data: where it comes from, how images are decoded, how a benchmark splits it."""
