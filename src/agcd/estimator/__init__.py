"""What stands between ``ActiveDiscovery`` and the habits of its users: their labels, their samples, their files."""
