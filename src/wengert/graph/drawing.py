"""Pictures of graphs: our own, and text for Graphviz."""

from __future__ import annotations

from wengert.core.graph.equation import Variable, require_graph
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.graph.printing import literal_text, param_text, variable_names
from wengert.core.values.aval import aval_text


def to_dot(graph: Graph) -> str:
    """Return a graph in the DOT language: boxes for inputs, ellipses for equations, edges for arrays.

    Args:
        graph: the graph; sub-graphs are drawn in frames beside the equations they belong to.

    Returns:
        The text of a `.dot` file.

    Raises:
        DtypeError: it is no graph.

    >>> from wengert.graph import trace
    >>> print(to_dot(trace(lambda x: x + 1.0)(2.0)))
    digraph {
      node [fontname="monospace"];
      g_x0 [label="x: float", shape=box];
      g_e0 [label="add", shape=ellipse];
      g_x0 -> g_e0 [label="0"];
      g_l0 [label="1.0", shape=plaintext];
      g_l0 -> g_e0 [label="1"];
      g_o0 [label="output 0: float", shape=box, style=bold];
      g_e0 -> g_o0 [label="v1"];
    }
    """
    require_graph("to_dot", graph)
    return "\n".join(["digraph {", '  node [fontname="monospace"];', *DotWriter(graph, "g", "  ").lines, "}"])


class DotWriter:
    """Write down one graph: nodes are named `<prefix>_<kind><number>`."""

    def __init__(self, graph: Graph, prefix: str, indent: str) -> None:
        self.prefix = prefix
        self.indent = indent
        self.lines: list[str] = []
        self.names = variable_names(graph)
        self.sources: dict[Variable, str] = {}
        self.literals = 0
        for i, variable in enumerate(graph.inputs):
            self.sources[variable] = f"{prefix}_x{i}"
            self.node(f"x{i}", f"{self.names[variable]}: {aval_text(variable)}", "shape=box")
        for i, equation in enumerate(graph.equations):
            nested = list(subgraphs(equation.params))
            hidden = {key.split("[")[0] for key, _ in nested}
            shown = [f"{k}={param_text(v):.40}" for k, v in equation.params.items() if k not in hidden]
            self.node(f"e{i}", "\n".join([equation.primitive.name, *shown]), "shape=ellipse")
            for j, value in enumerate(equation.inputs):
                self.edge(value, f"{prefix}_e{i}", str(j))
            for j, (key, inner) in enumerate(nested):
                self.frame(f"{prefix}_e{i}_{j}", f"{equation.primitive.name} {key}", inner)
            self.sources.update(dict.fromkeys(equation.outputs, f"{prefix}_e{i}"))
        for i, value in enumerate(graph.outputs):
            self.node(f"o{i}", f"output {i}: {aval_text(value)}", "shape=box, style=bold")
            label = self.names[value] if type(value) is Variable else ""
            self.edge(value, f"{prefix}_o{i}", label)

    def node(self, name: str, label: str, style: str) -> str:
        """Write a node; return its full name."""
        self.lines.append(f"{self.indent}{self.prefix}_{name} [label={quote(label)}, {style}];")
        return f"{self.prefix}_{name}"

    def edge(self, value: object, target: str, label: str) -> None:
        """Write the edge from where a value comes from: a variable's node, or one of its own for a literal."""
        if type(value) is Variable:
            source = self.sources[value]
        else:
            source = self.node(f"l{self.literals}", literal_text(value), "shape=plaintext")
            self.literals += 1
        self.lines.append(f"{self.indent}{source} -> {target} [label={quote(label)}];")

    def frame(self, prefix: str, label: str, graph: Graph) -> None:
        """Write a sub-graph in a frame."""
        self.lines += [f"{self.indent}subgraph cluster_{prefix} {{", f"{self.indent}  label={quote(label)};"]
        self.lines += [*DotWriter(graph, prefix, self.indent + "  ").lines, f"{self.indent}}}"]


def quote(text: str) -> str:
    """Return a string of the DOT language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def to_svg(graph: Graph) -> str:
    """Return a picture of a graph as SVG, with sub-graphs inside of their equations; `graph.to_svg()` does the same.

    Data flow downward. Pointing at a box tells where in the program the equation was traced, and for one of a backward
    pass which equation it belongs to the derivative of. In graphs of thousands of equations the longest wires are
    left out, and dots show where they arrive.

    Args:
        graph: the graph.

    Returns:
        The text of an `.svg` file.

    Raises:
        DtypeError: it is no graph.

    >>> import wengert as wg
    >>> graph = wg.graph.trace(lambda x: x * 2.0)(1.0)
    >>> "v1 = x * 2.0" in to_svg(graph), to_svg(graph) == graph.to_svg()
    (True, True)
    """
    require_graph("to_svg", graph)
    return graph.to_svg()


def to_html(graph: Graph) -> str:
    """Return a page about a graph that needs no network; `graph.to_html()` does the same.

    Drag to pan and zoom in the picture, fold sub-graphs, and click an equation to see its shape and dtype, its line in
    the program, what uses it, and for one of a backward pass which equation it belongs to the derivative of.

    Args:
        graph: the graph.

    Returns:
        The text of an `.html` file.

    Raises:
        DtypeError: it is no graph.

    >>> import wengert as wg
    >>> to_html(wg.graph.trace(lambda x: x * 2.0)(1.0))[:15]
    '<!doctype html>'
    """
    require_graph("to_html", graph)
    return graph.to_html()
