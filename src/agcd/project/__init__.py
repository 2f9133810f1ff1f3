"""A practitioner's project: a folder with settings, records and runs, and the loop of train, ask and tell on it."""

from agcd.project.folder import Project

__all__ = ["Project"]
