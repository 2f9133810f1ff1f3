"""The tables and figures of the paper, on any data set: which runs each needs, and how it is shown."""
