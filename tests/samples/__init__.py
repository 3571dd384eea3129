"""Sample calls of primitives: one line of data each, from which all tests of a rule are generated."""
