"""Templates of functions and containers that hold arguments, and these made anew with other arguments in them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from types import CellType, MethodType
from typing import Any

import numpy as np

from wengert.control.side_effects import effect_error, has_been_written
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.memory.write_watches import snapshot
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import Tensor
from wengert.support.attributes import with_closure
from wengert.support.function_contents import content_of


class ArgumentPlace:
    """Stand for a value that is an argument, by its place among these."""

    def __init__(self, place: int) -> None:
        self.place = place


class ContainerTemplate:
    """Stand for a container with arguments in it."""

    def __init__(self, structure: Any, leaves: Sequence[Any], templates: Sequence[Any]) -> None:
        self.structure, self.leaves, self.templates = structure, leaves, templates


class FunctionTemplate:
    """Stand for a function that reaches arguments.

    Attributes:
        cells: the templates of its variables that do, by their names: a converted form may have cells of its own.
        names: global variables that do, with what they hold.
        attributes: the templates of its attributes that do.
        parts: of a method or partial: its function and what is bound, each with its template.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.cells: dict[str, Any] = {}
        self.names: dict[str, tuple[Any, Any]] = {}
        self.attributes: dict[str, Any] = {}
        self.parts: list[tuple[Any, Any]] = []

    def reaches(self) -> bool:
        """Tell whether there is an argument behind it; recursive functions count as if there were."""
        return bool(
            self.cells or self.names or self.attributes or any(template is not None for _, template in self.parts)
        )


def zeros_like(leaf: Any) -> Any:
    """Return zeros in the place of an argument, in one number of memory: what may come up again for what may."""
    if type(leaf) in (float, complex):
        return type(leaf)()
    aval = aval_of(leaf)
    zero = np.zeros((), aval.dtype)
    return zero[()] if isinstance(leaf, np.generic) else np.broadcast_to(zero, aval.shape)


class Replacement:
    """Make values of templates, each once, and see that nobody writes to them."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.leaves = leaves
        self.placed: set[int] = set()
        self.before = [snapshot(x) if type(x) is Tensor else x for x in leaves]
        self.made: dict[int, Any] = {}
        self.cells: list[tuple[CellType, Any]] = []
        self.spaces: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.containers: list[tuple[Any, Any, list[Any]]] = []

    def of(self, value: Any, template: Any) -> Any:
        """Return a value with other arguments."""
        if template is None:
            return value
        if type(template) is ArgumentPlace:
            self.placed.add(template.place)
            return self.leaves[template.place]
        if id(template) in self.made:
            return self.made[id(template)]
        if type(template) is ContainerTemplate:
            inside = [self.of(x, one) for x, one in zip(template.leaves, template.templates, strict=True)]
            found = self.made[id(template)] = unflatten(template.structure, inside)
            self.containers.append((found, template.structure, inside))
            return found
        return self.of_function(value, template)

    def of_function(self, function: Any, template: FunctionTemplate) -> Any:
        """Return a function, method or partial that reaches other arguments."""
        if type(function) is MethodType:
            inner, bound = (self.of(x, one) for x, one in self.parts_of(function, template))
            return self.made.setdefault(id(template), MethodType(inner, bound))
        if type(function) is functools.partial:
            inner, args, keywords = (self.of(x, one) for x, one in self.parts_of(function, template))
            return self.made.setdefault(id(template), functools.partial(inner, *args, **keywords))
        named = list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        cells = [CellType() if name in template.cells else cell for name, cell in named]
        space = self.space_of(function.__globals__) if template.names else function.__globals__
        found = self.made[id(template)] = with_closure(function, cells, space=space)
        for name, (content, inside) in template.names.items():
            space[name] = self.spaces[id(function.__globals__)][1][name] = self.of(content, inside)
        for name, inside in template.attributes.items():
            found.__dict__[name] = self.of(function.__dict__[name], inside)
        for (name, before), cell in zip(named, cells, strict=True):
            if cell is not before:
                cell.cell_contents = self.of(content_of(before), template.cells[name])
                self.cells.append((cell, cell.cell_contents))
        return found

    def parts_of(self, function: Any, template: FunctionTemplate) -> Iterator[tuple[Any, Any]]:
        """Yield the parts of a method or partial, whose function may have been converted, with their templates."""
        own = function.__func__ if type(function) is MethodType else function.func
        yield own, template.parts[0][1]
        yield from template.parts[1:]

    def space_of(self, space: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the global variables of a module, the same for all of its functions."""
        if id(space) not in self.spaces:
            self.spaces[id(space)] = {**space}, {**space}
        return self.spaces[id(space)][0]

    def require_unwritten(self, name: str) -> None:
        """Raise if something that was made, and is forgotten now, has been written to."""
        for leaf, before in zip(self.leaves, self.before, strict=True):
            if type(leaf) is Tensor and has_been_written(leaf, before):
                raise effect_error(name, f"writes to an array of shape {leaf.shape} from outside", "Write into a copy")
        for cell, content in self.cells:
            if content_of(cell) is not content:
                raise effect_error(name, "changes a variable that is not its own", "Compute its value")
        for space, before in self.spaces.values():
            changed = [key for key in {**space, **before} if space.get(key, self) is not before.get(key, self)]
            if changed:
                raise effect_error(name, f"changes {changed[0]}, which is not its own", "Compute its value")
        for value, structure, leaves in self.containers:
            found, other = flatten(value)
            if other != structure or any(x is not y for x, y in zip(found, leaves, strict=True)):
                given = f"changes a {type(value).__name__} that is not its own"
                raise effect_error(name, given, "Compute its value")
