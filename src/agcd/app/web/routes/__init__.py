"""The routes of the REST API, by what they do."""
