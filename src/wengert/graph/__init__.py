"""Graphs: functions of arrays as data, to print, compare, differentiate, keep in files and draw.

`trace` makes one from a function, `gradient` another that also computes gradients. A graph is called like a function,
prints as a Wengert list, and compares and hashes by what it computes. `placeholder`, `gradients` and `Executor` are
the static style: expressions first, values later.
"""

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.graph_checker import check
from wengert.core.graph.printing import render
from wengert.graph.drawing import to_dot, to_html, to_svg
from wengert.graph.graph_files import load, save
from wengert.graph.static import Executor, gradients, placeholder
from wengert.transforms.tracing import gradient, trace

__all__ = [
    "Equation",
    "Executor",
    "Graph",
    "Variable",
    "check",
    "gradient",
    "gradients",
    "load",
    "placeholder",
    "render",
    "save",
    "to_dot",
    "to_html",
    "to_svg",
    "trace",
]
