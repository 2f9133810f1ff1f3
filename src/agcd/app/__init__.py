"""The practitioner's application: a project folder, its records, the labelling page, exports and report."""
