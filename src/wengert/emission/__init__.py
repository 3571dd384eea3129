"""From kernels to code: LLVM's text with explicit vectors, one block of memory for a program, and calls of it."""
