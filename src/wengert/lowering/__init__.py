"""From graphs to programs of the kernel IR: what is computed where, in which loop, and what is left to NumPy."""
