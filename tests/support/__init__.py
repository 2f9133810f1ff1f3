"""What tests are made of: small data, projects, servers, clients and browsers."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
"""Where other processes find ``support``."""
