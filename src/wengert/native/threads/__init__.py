"""A team of threads, the jobs that it shares, and NumPy's inner loops as such jobs."""
