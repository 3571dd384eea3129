"""Native code that needs nothing of Wengert's values: threads that share large elementwise operations."""
