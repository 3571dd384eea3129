"""Pictures of graphs and tapes: boxes and wires, laid out in layers, as SVG and as a page to look around in.

What is drawn is a `Picture`, which knows nothing of arrays: `core.graph.diagrams` makes one of a graph,
`wengert.visualize` one of a tape. Patterns of sparse matrices are squares, which a page shows beside an equation.
"""
