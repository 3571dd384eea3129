"""Plans: how the elements of a sparse derivative are computed, and which way takes least."""
