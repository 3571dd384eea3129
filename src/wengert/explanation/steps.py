"""Explanations as they are shown: forward steps with their values, reverse steps with their adjoints."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.diagnostics.source_positions import Position
from wengert.core.graph.printing import exact_text, formula, value_text
from wengert.core.values.tensor import raw
from wengert.explanation.listing import ListedOperation, Lister, Reference
from wengert.explanation.render import ListRow, ListSection, as_html, as_rich, as_text

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True)
class Step:
    """Be one forward step.

    Attributes:
        name: the argument's name, or v1, v2, ...
        formula: the operation on earlier steps; empty for arguments.
        value: its value, as a NumPy scalar or an array that nothing else shares.
        position: the source line that asked for it; None for arguments.
    """

    name: str
    formula: str
    value: Any
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Adjoint:
    """Be one reverse step: the derivative of the result with respect to one forward step.

    Attributes:
        name: the forward step's name with a prime.
        formula: the sum over the steps that used it, `dv2/dx` being a partial derivative (a Jacobian for arrays).
        value: its value, in the shape of the forward step.
    """

    name: str
    formula: str
    value: Any


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Show how a function and its gradient are computed; print it, or display it in a notebook.

    Attributes:
        title: what is explained.
        inputs: the arguments, as steps without a formula.
        forward: the steps in the order of evaluation.
        reverse: the adjoints in the order of the reverse sweep.
        value: the function's result.
        gradient: the gradient as `wengert.grad` gives it; with several arguments a tuple with one for each.
        tangents: in forward mode, which has no reverse steps, the derivatives of all steps by each argument.
        higher: derivatives of order 2, 3, ..., where they were asked for.
    """

    title: str
    inputs: tuple[Step, ...]
    forward: tuple[Step, ...]
    reverse: tuple[Adjoint, ...]
    value: Any
    gradient: Any
    tangents: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    higher: Sequence[Any] = ()

    def __repr__(self) -> str:
        return as_text(*self.layout())

    def _repr_html_(self) -> str:
        return as_html(*self.layout())

    def __rich__(self) -> RenderableType:
        return as_rich(*self.layout())

    def layout(self) -> tuple[str, list[ListSection], list[tuple[str, str]]]:
        """Return title, sections and results as text."""
        steps = self.steps()
        adjoints = [ListRow(a.name, a.formula, value_text(a.value)) for a in self.reverse]
        results = [("value", exact_text(raw(self.value))), ("gradient", gradient_text(self.gradient))]
        results += [(f"order {k}", gradient_text(found)) for k, found in enumerate(self.higher, start=2)]
        sections = [steps] if self.tangents else [steps, ListSection("reverse", adjoints)]
        return self.title, sections, results

    def steps(self) -> ListSection:
        """Return the forward steps with their values, and in forward mode with their tangents."""
        moved = zip(*self.tangents.values(), strict=True) if self.tangents else itertools.repeat(())
        rows = [
            ListRow(s.name, s.formula, value_text(s.value), s.position, tuple(map(value_text, tangents)))
            for s, tangents in zip((*self.inputs, *self.forward), moved, strict=False)
        ]
        return ListSection(
            "forward", rows, ("value", *(f"d/d{name}" for name in self.tangents)) if self.tangents else ()
        )


def gradient_text(gradient: Any) -> str:
    """Return derivatives in any containers as text."""
    return repr(map_leaves(Shown, gradient))


class Shown:
    """Be shown as the text of a final value, inside any container."""

    def __init__(self, value: Any) -> None:
        self.text = exact_text(raw(value))

    def __repr__(self) -> str:
        return self.text


def name_results(listing: Lister, inputs: Sequence[Reference], names: Sequence[str]) -> dict[Reference, str]:
    """Return the names of the inputs and v1, v2, ... for the results of what was listed."""
    known: dict[Reference, str] = dict(zip(inputs, names, strict=True))
    prefix = free_prefix(names)
    for count, result in enumerate((r for o in listing.operations for r in o.results), start=1):
        known[result] = f"{prefix}{count}"
    for result, source in listing.same.items():
        known[result] = known[source]
    return known


def steps_of(operation: ListedOperation, known: Mapping[Reference, str]) -> list[Step]:
    """Return the forward steps of an operation: one for each of its results."""
    operands = [x if isinstance(x, str) else known[x] for x in operation.operands]
    text = formula(operation.name, operands, operation.shapes, operation.params)
    several = len(operation.results) > 1
    return [
        Step(known[result], f"{text}[{i}]" if several else text, value, operation.position)
        for i, (result, value) in enumerate(zip(operation.results, operation.values, strict=True))
    ]


def free_prefix(names: Sequence[str]) -> str:
    """Return the letter that numbers the steps: v, unless an argument is called so."""
    for prefix in ("v", "w", "u", "t"):
        if not any(re.match(rf"{prefix}\d+\b", name) for name in names):
            return prefix
    return "step"
