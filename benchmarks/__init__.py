"""Benchmarks against the installed peers: `python -m benchmarks <suite>`.

The suites are eager, operations, programs, transforms, tracing and import.

A suite is a list of cases. A case makes one program for each library that can do it; the programs take turns in one
process, and what is reported is the median over the rounds of the ratio of Wengert's time to the peer's in the same
round, so that whatever slows the machine for a while slows both. Ratios below 1 mean that Wengert is faster.

To add an operation, write a line in `benchmarks.operation_list`; to add a program, a function and a line in
`benchmarks.program_list`; all libraries run them. To add a case elsewhere, write a function that makes its programs
and yield it from `cases` in the module of its suite; to add a suite, write a module and list it in
`benchmarks.__main__`.
"""
