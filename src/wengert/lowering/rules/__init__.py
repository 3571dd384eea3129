"""From equations to nodes: a file for each form of primitives, and what a rule is given and returns."""
