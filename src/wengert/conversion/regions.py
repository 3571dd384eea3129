"""Regions: branches and loop bodies traced to graphs of their own, with the variables they set as outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from wengert._tree import flatten
from wengert.conversion.places import UNBOUND, Place, is_undefined
from wengert.core.aval import Aval, aval_of
from wengert.core.dispatch import apply
from wengert.core.graph import Graph, Variable, literal
from wengert.core.tensor import Tensor, is_staged
from wengert.core.trace import next_level
from wengert.core.views import base_and_path, current
from wengert.core.watch import Watch, snapshot
from wengert.errors import DtypeError, GraphError, WengertError, describe
from wengert.traces.staging import Stage

__all__ = [
    "Content",
    "Region",
    "as_truth",
    "cast",
    "content_of",
    "handles_of",
    "is_array",
    "is_number",
    "operand_of",
    "same",
    "traced",
]


class Content(NamedTuple):
    """Hold the value of a place, taken apart; `structure` is `UNBOUND` if it has no value that can be used.

    `ends` are what the leaves stood for when it was taken apart.
    """

    value: Any
    leaves: list[Any]
    structure: Any
    ends: list[Any]


def content_of(value: Any) -> Content:
    """Return a value taken apart, arrays in it by what they stand for."""
    if is_undefined(value):
        return Content(value, [], UNBOUND, [])
    leaves, structure = flatten(value)
    return Content(value, leaves, structure, [snapshot(current(x)) if type(x) is Tensor else x for x in leaves])


def is_array(leaf: Any) -> bool:
    """Tell whether a leaf is an array."""
    return isinstance(leaf, Tensor | np.ndarray | np.generic)


def is_number(leaf: Any) -> bool:
    """Tell whether a leaf is a Python number."""
    return isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic)


def same(a: Any, b: Any) -> bool:
    """Tell whether two leaves are the same object or equal constants."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if is_number(a):
        return repr(a) == repr(b)
    return isinstance(a, str | bytes | set) and a == b


class Region:
    """Hold a traced piece of the user's program.

    Attributes:
        stage: what recorded it.
        given: what each place held at its beginning.
        found: what each place holds at its end.
        result: what the piece returned.
        written: the Tensors from outside that it wrote to.
        ends: what these, and those that became its inputs, stand for at its end, by identity.
        captured: Tensors from outside that it uses, the last inputs of its graphs.
    """

    def __init__(self, stage: Stage, given: Sequence[Content]) -> None:
        self.stage = stage
        self.given = given
        self.found: list[Content] = []
        self.result: Any = None
        self.written: list[Tensor] = []
        self.ends: dict[int, Tensor] = {}

    def end_of(self, handle: Tensor) -> Tensor:
        """Return what a Tensor from outside stands for at the end."""
        return self.ends[id(handle)] if id(handle) in self.ends else operand_of(handle)

    def graph(self, outputs: Sequence[Any]) -> tuple[Graph, list[Tensor]]:
        """Return the graph of some outputs, and the Tensors it captured."""
        graph = self.stage.graph([x if is_array(x) else np.asarray(x)[()] for x in outputs])
        return graph, [tensor for tensor, _ in self.stage.captured.values()]

    def function(self, outputs: Sequence[Any], avals: Sequence[Aval]) -> Callable[..., tuple[Any, ...]]:
        """Return the traced piece as a function of its inputs to some outputs of given dtypes."""
        graph, captured = self.graph(outputs)

        def run(*args: Any) -> tuple[Any, ...]:
            found = replay(graph, [*args, *captured])
            return tuple(cast(x, aval.dtype) for x, aval in zip(found, avals, strict=True))

        return run


def traced(
    name: str,
    places: Sequence[Place],
    starts: Callable[[Stage], Sequence[Any]],
    run: Callable[[], Any],
    handles: Sequence[Tensor] = (),
) -> Region:
    """Trace a piece of the user's program.

    Args:
        name: for errors.
        places: the variables it may change; they are restored afterwards.
        starts: gives what they hold at the beginning.
        run: the piece.
        handles: the Tensors that stand for inputs meanwhile: those after what `starts` makes inputs.
    """
    stage = Stage(next_level(), name)
    kept = [place.read() for place in places]
    try:
        with Watch() as watch:
            values = starts(stage)
            for handle in handles:
                watch.adopt(handle, stage.input(aval_of(handle)))
            region = Region(stage, [content_of(x) for x in values])
            for place, value in zip(places, values, strict=True):
                place.write(value)
            result = run()
            region.result = snapshot(current(result)) if type(result) is Tensor else result
            region.found = [content_of(place.read()) for place in places]
            region.written = watch.written()
            region.ends = {id(x): snapshot(x) for x in (*handles, *region.written)}
    finally:
        stage.end()
        for place, value in zip(places, kept, strict=True):
            if place.read() is not value:
                place.write(value)
    return region


def handles_of(places: Sequence[Place]) -> list[Tensor]:
    """Return the Tensors that own the memory of those that places hold: they become inputs of a piece."""
    found: dict[int, Tensor] = {}
    for place in places:
        value = place.read()
        for leaf in () if is_undefined(value) else flatten(value)[0]:
            if type(leaf) is Tensor:
                base = base_and_path(leaf)[0]
                found[id(base)] = base
    return list(found.values())


def operand_of(handle: Tensor) -> Tensor:
    """Return what a Tensor stands for now; one with elements, which `jit` reads anew at each call, stays itself."""
    return snapshot(handle) if is_staged(handle) else handle


def replay(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """Return the outputs of a graph for some inputs; equations keep their source positions where they are staged."""
    values: dict[Variable, Any] = dict(zip(graph.inputs, args, strict=True))
    for equation in graph.equations:
        operands = [values[x] if type(x) is Variable else x for x in equation.inputs]
        out = apply(equation.primitive, *operands, **equation.params)
        results = out if isinstance(out, tuple) else (out,)
        for result in results:
            trace = result._trace if type(result) is Tensor else None
            if isinstance(trace, Stage) and trace.equations:
                trace.equations[-1].origin = equation.origin
        values.update(zip(equation.outputs, results, strict=True))
    return [values[x] if type(x) is Variable else x for x in graph.outputs]


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a value in a dtype."""
    if not is_array(value):
        return literal(np.asarray(value, dtype)[()])
    return value if value.dtype == dtype else value.astype(dtype)


def as_truth(value: Any) -> Any:
    """Return a traced value as one boolean.

    Raises:
        DtypeError: it has not exactly one element.
    """
    if value.size != 1:
        raise DtypeError(
            describe(
                "bool",
                f"a Tensor of shape {value.shape}",
                "a Tensor with exactly one element is needed",
                "Reduce it first, with .any(), .all() or .sum() for instance",
            )
        )
    one = value if value.shape == () else np.reshape(value, ())
    return one if one.dtype == np.bool_ else np.not_equal(one, 0)


@contextmanager
def noted(name: str, what: str, position: Any) -> Iterator[None]:
    """Let errors that are raised while a piece of the user's program is traced say so.

    Those of the program become errors of ours: an `except` around the piece must not take them for a decision.

    Args:
        name: the statement.
        what: what is traced of it.
        position: where it stands.

    Raises:
        GraphError: something else than an error of this library was raised.
    """
    try:
        yield
    except WengertError as error:
        note = f"This was raised while {what} of a traced decision were traced: {position}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise
    except Exception as error:
        raise GraphError(
            describe(
                name,
                f"{type(error).__name__} ({error}) was raised while {what} of a traced decision were traced",
                "what depends on traced values cannot raise, because it is traced whether it will run or not",
                "Check the values outside of the function, or choose with wengert.numpy.where",
            )
            + f"\n  {position}"
        ) from error


def is_traced(value: Any) -> bool:
    """Tell whether a value has no elements yet."""
    return type(value) is Tensor and is_staged(value)
