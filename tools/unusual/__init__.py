"""Unusual calls of every public function that NumPy or SciPy has, too, beside theirs."""
