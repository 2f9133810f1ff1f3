"""The documentation site: its links, and its pages that are made from the code."""
