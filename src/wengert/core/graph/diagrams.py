"""Graphs as pictures: a box an equation, with its line of the Wengert list, and wires for variables."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import Origin, Position
from wengert.core.graph.equation import Equation, EquationList, Variable, lists_among
from wengert.core.graph.printing import formula, literal_text, variable_names
from wengert.core.values.aval import aval_text
from wengert.pictures.boxes import Box, Wire
from wengert.pictures.picture import Picture

Drawn = list[tuple[Equation, Box]]


def picture_of(graph: EquationList, title: str) -> Picture:
    """Return the picture of a graph; sub-graphs stand inside of the boxes of the equations that they belong to."""
    drawn: Drawn = []
    picture = GraphDrawing(graph, drawn).picture(title)
    name_forward_equations(drawn)
    return picture


class GraphDrawing:
    """Draw one graph, and enter its equations into a list."""

    def __init__(self, graph: EquationList, drawn: Drawn) -> None:
        self.graph = graph
        self.drawn = drawn
        self.names = variable_names(graph)
        self.sources: dict[Variable, tuple[int, int]] = {}
        self.boxes: list[Box] = []
        self.wires: list[Wire] = []

    def picture(self, title: str) -> Picture:
        """Return the picture: boxes for inputs, equations and outputs."""
        for variable in self.graph.inputs:
            self.add(Box("input", [self.names[variable], aval_text(variable)], {}), (), (variable,))
        for equation in self.graph.equations:
            box = self.box_of(equation)
            self.drawn.append((equation, box))
            self.add(box, equation.inputs, equation.outputs)
        for i, value in enumerate(self.graph.outputs):
            lines = [f"output {i}: {self.text(value)}", aval_text(value)]
            self.add(Box("output", lines, {}, operands=1, results=0), (value,), ())
        return Picture(title, self.boxes, self.wires)

    def add(self, box: Box, inputs: Sequence[Any], outputs: Sequence[Variable]) -> None:
        """Add a box, the wires that lead to it, and where those of its results begin."""
        here = len(self.boxes)
        self.boxes.append(box)
        for operand, value in enumerate(inputs):
            if type(value) is Variable:
                self.wires.append(Wire(*self.sources[value], here, operand))
        self.sources.update({variable: (here, result) for result, variable in enumerate(outputs)})

    def text(self, value: Any) -> str:
        """Return the name of a variable, or a literal as the printer shows it."""
        return self.names[value] if type(value) is Variable else literal_text(value)

    def box_of(self, equation: Equation) -> Box:
        """Return the box of an equation."""
        nested = list(lists_among(equation.params, EquationList))
        hidden = {key.split("[")[0] for key, _ in nested}
        params = {key: value for key, value in equation.params.items() if key not in hidden}
        options = {} if equation.primitive.structured else params
        operands = list(map(self.text, equation.inputs))
        shapes = [x.shape if type(x) is Variable else np.shape(x) for x in equation.inputs]
        bound = ", ".join(self.names[v] for v in equation.outputs)
        types = ", ".join(map(aval_text, equation.outputs))
        facts = {"type": types, "operation": equation.primitive.name}
        if params:
            facts["parameters"] = ", ".join(f"{key}={value}" for key, value in params.items())
        drawn = [value for value in params.values() if hasattr(type(value), "_repr_svg_")]
        return Box(
            "derived" if getattr(equation.origin, "node", 0) else "equation",
            [f"{bound} = {formula(equation.primitive.name, operands, shapes, options)}", types],
            facts | place_facts(equation.position),
            operands=len(operands),
            results=len(equation.outputs),
            inside=[(key, GraphDrawing(inner, self.drawn).picture(key)) for key, inner in nested],
            svg="".join([value._repr_svg_() or "" for value in drawn]),
        )


def place_facts(position: Position | None) -> dict[str, str]:
    """Return what there is to know of a line of source."""
    if position is None:
        return {}
    here = os.path.join(os.getcwd(), "")
    facts = {"line": f"{position.filename.removeprefix(here)}:{position.line}, in {position.function}"}
    return facts | {"source": position.text} if position.text else facts


def name_forward_equations(drawn: Drawn) -> None:
    """Tell the boxes of a backward pass which equations of the forward pass they belong to.

    Tapes number an operation right after its equation was written down: of those that were asked for at the same place
    it is the last one before, unless another operation comes between: then it was not needed, and is not there.
    """
    places: dict[Origin, OriginEquations] = {}
    for equation, box in drawn:
        origin = equation.origin
        if isinstance(origin, Origin):
            place = places.setdefault(origin, OriginEquations())  # equal to others of its place
            place.equations.append((origin.number, box))
            if origin.node:
                place.derived.append((origin.node, box))
    for place in places.values():
        place.name_forward_equations()


class OriginEquations:
    """Hold the equations of one place in a program, by their numbers, and those derived from them, by their nodes'."""

    def __init__(self) -> None:
        self.equations: list[tuple[int, Box]] = []
        self.derived: list[tuple[int, Box]] = []

    def name_forward_equations(self) -> None:
        """Tell the derived ones what they come from."""
        self.equations.sort(key=number_of)
        nodes = sorted({node for node, _ in self.derived})
        known = set(nodes)
        for node, box in self.derived:
            first = node
            while first - 1 in known:  # tapes of several levels recorded the same operation
                first -= 1
            before = bisect_left(self.equations, first, key=number_of) - 1
            if before < 0:
                continue
            number, forward = self.equations[before]
            if bisect_left(nodes, number) == bisect_left(nodes, first):
                box.forward = forward
                box.facts["forward"] = forward.lines[0]


def number_of(entry: tuple[int, Box]) -> int:
    """Return the number of an entry."""
    return entry[0]
