"""Containers of arrays: which classes are some, how they are taken apart into leaves, and put together again."""
