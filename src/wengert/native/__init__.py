"""Native code that needs nothing of Wengert's values: how it is written, and threads that share large operations."""
