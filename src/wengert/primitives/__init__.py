"""Primitives by topic. Each is declared by one statement; see CONTRIBUTING for how to add one."""
