"""``agcd bench beyond``: our strategy and our use of answers against the paper's, with an ablation of each piece."""
