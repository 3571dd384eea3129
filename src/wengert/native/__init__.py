"""Native code that needs nothing of Wengert's values: how it is written, compiled, kept, loaded, called and shared."""
