"""The only SQL: append-only label events, the classes folded from them, queries and leases, in one SQLite file."""
