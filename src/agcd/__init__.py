"""Active Generalized Category Discovery: find the classes nobody has named yet."""

__version__ = "0.1.0"
