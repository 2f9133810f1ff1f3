"""The labelling page and its REST API. Serving never loads torch: training runs in a child process."""
