"""Patterns of Jacobians: which elements may be other than zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.core.graph.equation import Equation
from wengert.core.values.aval import shape_of
from wengert.sparse.patterns.column_maps import Maps, column_maps, explicit
from wengert.sparse.patterns.loop_patterns import InnerGraphs
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.patterns.tangent_program import TangentProgram
from wengert.sparse.patterns.walk import GraphWalk


def find_pattern(
    fun: Callable[..., Any],
    args: Sequence[Any],
    argnums: Sequence[int],
    local: bool = False,
    name: str = "jacobian_pattern",
) -> Pattern:
    """Return the pattern of a Jacobian, of all elements of the results by all of some arguments.

    Args:
        fun: the function.
        args: its arguments, of which only shapes and dtypes matter unless the pattern is local.
        argnums: the positions of the arguments by which it is differentiated, whose elements are the columns.
        local: whether the pattern may hold for these arguments alone.
        name: who asks, for errors.
    """
    return pattern_with_causes(TangentProgram(name, fun, args, argnums), local)[0]


def find_small_pattern(
    fun: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int], most: float, name: str
) -> Pattern | None:
    """Return the pattern of a Jacobian; None if it may have more elements, which are not written down then."""
    program = TangentProgram(name, fun, args, argnums)
    maps = maps_of_results(program, GraphWalk(program.columns, InnerGraphs), False)
    return pattern_of_results(program, maps) if sum([one.size for own in maps for one in own]) <= most else None


def pattern_with_causes(
    program: TangentProgram, local: bool, kind: Callable[..., GraphWalk] = GraphWalk
) -> tuple[Pattern, list[Equation]]:
    """Return the pattern of a program, and the equations that made it dense.

    Args:
        program: from tangents to tangents.
        local: whether the pattern may hold for the arguments of the program alone.
        kind: makes the walk that finds it, of the number of columns and what follows inner graphs.
    """
    walk = kind(program.columns, InnerGraphs)
    return pattern_of_results(program, maps_of_results(program, walk, local)), walk.dense


def maps_of_results(program: TangentProgram, walk: GraphWalk, local: bool) -> list[Maps]:
    """Return how results depend on columns."""
    tangents = program.tangents
    maps = dict(zip(tangents, column_maps([v.shape for v in tangents]), strict=True))
    known = dict(zip(program.graph.inputs, program.leaves, strict=False)) if local else {}
    return list(walk.run(program.graph, known, maps))


def pattern_of_results(program: TangentProgram, maps: Sequence[Maps]) -> Pattern:
    """Return the pattern of all results, one below the other."""
    outputs = zip(maps, program.graph.outputs, strict=True)
    parts = [explicit(own, shape_of(x), program.columns) for own, x in outputs]
    return parts[0] if len(parts) == 1 else Pattern.stack(parts, program.columns)
