"""Whether the accuracy figure made of the answers is true: what it says of simulated projects of all kinds."""
