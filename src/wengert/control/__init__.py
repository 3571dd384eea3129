"""Control flow: branches, loops and calls that differentiate, batch and compile."""
