"""Functions whose closures hold Tensors that are traced, or differ from lane to lane, made anew with others.

A graph calls functions with rules of their own at each evaluation, and lanes are computed by calls of their own. Then
what such functions captured is over, or is something else, so that it has to be an argument of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CellType, FunctionType
from typing import Any

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.primitives.declaration_checks import in_form
from wengert.core.values.tensor import Tensor
from wengert.support.attributes import resemble, with_closure
from wengert.support.function_contents import UNBOUND, captured_by, reach
from wengert.traces.batch import Batch
from wengert.traces.rules.calls import traces_of


class OfFunctions:
    """Be an object that calls functions of the user."""

    @property
    def functions(self) -> Sequence[Any]:
        """The functions; None stands for one that is not there."""
        raise NotImplementedError

    def of(self, functions: Sequence[Any]) -> Any:
        """Return another such object that calls others."""
        raise NotImplementedError


class Closures:
    """Hold what functions reach through their closures: Tensors, also in containers, and further functions.

    `owner` is the object that calls the functions.

    Attributes:
        captured: the Tensors that are traced, or differ from lane to lane, and are not being differentiated.
    """

    def __init__(self, owner: OfFunctions) -> None:
        self.owner = owner
        self.reached: dict[int, Any] = {}
        self.contents: dict[int, list[Any]] = {}  # of functions' variables, which may be set to something else later
        self.captured: list[Tensor] = []
        for value in reach([owner], self.inside):
            self.reached[id(value)] = value
            if type(value) is Tensor and is_in_progress(value):
                self.captured.append(value)

    def inside(self, value: Any) -> Sequence[Any]:
        """Return what a function, a container or an object with functions holds."""
        if type(value) is FunctionType:
            return self.contents.setdefault(id(value), captured_by(value))
        if isinstance(value, list | tuple | dict):
            return flatten(value)[0]
        return value.functions if isinstance(value, OfFunctions) else ()

    def anew(self, values: Sequence[Any]) -> Any:
        """Return an object like the owner, whose functions find other values for the captured Tensors."""
        known: dict[int, Any] = {id(x): y for x, y in zip(self.captured, values, strict=True)}
        known |= {
            identity: with_closure(self.reached[identity], [CellType() for _ in contents])
            for identity, contents in self.contents.items()
        }
        for owner in self.reached.values():
            if isinstance(owner, OfFunctions):
                known[id(owner)] = owner.of([known.get(id(x), x) for x in owner.functions])

        def again(value: Any) -> Any:
            if not isinstance(value, list | tuple | dict):
                return known.get(id(value), value)
            leaves, structure = flatten(value)
            return unflatten(structure, [known.get(id(leaf), leaf) for leaf in leaves])

        for identity, contents in self.contents.items():
            for cell, content in zip(known[identity].__closure__ or (), contents, strict=True):
                if content is not UNBOUND:
                    cell.cell_contents = again(content)
        return known[id(self.owner)]


def close_rule(rule: OfFunctions, closures: Closures) -> Any:
    """Return a function with rules of its own that takes what those of another one captured, as its first argument."""

    def call_anew(name: str, captured: Sequence[Tensor], arguments: Sequence[Any]) -> Any:
        function = getattr(closures.anew(captured), name)
        return in_form(flatten((captured, arguments))[0], function, lambda form: form(*arguments))

    def fun(captured: Sequence[Tensor], *args: Any) -> Any:
        return call_anew("fun", captured, args)

    def forward(captured: Sequence[Tensor], *args: Any) -> Any:
        found = call_anew("forward", captured, args)
        return (found[0], (captured, found[1])) if isinstance(found, tuple) and len(found) == 2 else found

    def backward(residuals: tuple[Sequence[Tensor], Any], ct: Any) -> Any:
        found = call_anew("backward", residuals[0], (residuals[1], ct))
        return (None, *found) if isinstance(found, tuple) else found

    def pushforward(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return call_anew("pushforward", primals[0], (tuple(primals[1:]), tuple(tangents[1:])))

    original, *rules, _ = rule.functions  # a batch rule would be asked for lanes of what was captured, too
    own = [new if old else None for new, old in zip((forward, backward, pushforward), rules, strict=True)]
    made = rule.of([resemble(fun, original), *own, None])
    made.closures = closures
    return made


def is_in_progress(tensor: Tensor) -> bool:
    """Tell whether a Tensor is being traced or differs from lane to lane, and nothing differentiates it."""
    traces = traces_of(tensor)
    return bool(traces) and all(trace.staged or isinstance(trace, Batch) for trace in traces)
