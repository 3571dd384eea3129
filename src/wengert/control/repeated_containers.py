"""Lists, dictionaries and objects that a function is given, and changes: whoever has them, too, has to see it.

Transformations give the function containers of their own, one for each place, so that is refused where one lies in
several places, and where functions are called within others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

from wengert.control.mutable_state import holder_of
from wengert.control.variable_places import Contents, Holder
from wengert.core.containers.container_classes import cached_of, is_container
from wengert.core.containers.tree_leaves import PLAIN, children_of, flatten
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError

Path = tuple[int, ...]
"""Which child of which child of the arguments; those by name come last, in the order of their names."""
Call = tuple[Sequence[Any], Mapping[str, Any]]
"""Arguments, and those by name."""
LEAVES = PLAIN | {Tensor}
BUILTIN_CONTAINERS = frozenset({dict, list, tuple})
NOTHING: Mapping[Path, Any] = MappingProxyType({})
NO_NAMES: Mapping[str, Any] = MappingProxyType({})
T = TypeVar("T")


class ContainerChanges:
    """Find which containers of its own a function changes, or another transformation does for it.

    Args:
        name: the transformation.
        given: the arguments as the user gave them.
        inside: what the function receives.
    """

    def __init__(self, name: str, given: Call, inside: Call) -> None:
        self.name, self.given = name, containers_by_path(given)
        self.before: dict[Path, tuple[Holder, Contents]] = {}
        self.noted: set[Path] = set()
        self.inside = containers_by_path(inside)
        for path, container in self.inside.items():
            holder = holder_of(container, "")
            if holder is not None:
                self.before[path] = holder, contents_of(holder)

    def __enter__(self) -> ContainerChanges:
        """Begin."""
        self.token = WATCHED_CALLS.set((*WATCHED_CALLS.get(), self))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Raise a GraphError if a container was changed that lies in several places of what was given."""
        WATCHED_CALLS.reset(self.token)
        if kind is None:
            note_changes(self.name, self.given, self.paths(), self.inside)

    def paths(self) -> frozenset[Path]:
        """Return where containers lie that were changed."""
        found = {p for p, (holder, old) in self.before.items() if holder.differs(old, contents_of(holder))}
        return frozenset(found | self.noted)


class UnchangedContainers(ContainerChanges):
    """Refuse that a function changes a container of its own, of which nobody outside would see it.

    Args:
        name: what the function is called.
        needed: what it must leave as it is, and why.
        inside: what it receives.
    """

    def __init__(self, name: str, needed: str, inside: Call) -> None:
        super().__init__(name, ((), NO_NAMES), inside)
        self.needed = needed

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Raise a GraphError if a container was changed."""
        WATCHED_CALLS.reset(self.token)
        changed = sorted(self.paths()) if kind is None else []
        if changed:
            given = f"a change to a {type(self.inside[changed[0]]).__name__} among its arguments"
            action = "Change a copy, and return it"
            raise GraphError(self.name, given, self.needed, action, place=position_of(*caller()))


NOTHING_TO_WATCH = nullcontext()
WATCHED_CALLS: ContextVar[tuple[ContainerChanges, ...]] = ContextVar("WATCHED_CALLS", default=())
"""The calls of functions going on whose containers are watched, the innermost last."""


def watch_repeated(name: str, given: Call, inside: Call) -> AbstractContextManager[Any]:
    """Return a context for the call of a function that must not change a container that it was given twice.

    Args:
        name: the transformation.
        given: the arguments as the user gave them.
        inside: what the function receives.
    """
    are_leaves = LEAVES.issuperset(map(type, given[0])) and not given[1]  # as most are
    if not WATCHED_CALLS.get() and (are_leaves or not has_repeated(given)):
        return NOTHING_TO_WATCH
    return ContainerChanges(name, given, inside)


def refuse_changes_to_repeated(name: str, function: Callable[..., T], given: Sequence[Any]) -> Callable[..., T]:
    """Return a function of a loop that must not change a container that its first arguments hold twice at first.

    Args:
        name: the loop.
        function: the user's.
        given: what the first arguments are in the first round.
    """
    if not has_repeated((given, NO_NAMES)):
        return function

    @functools.wraps(function)
    def call(*arguments: Any) -> T:
        with ContainerChanges(name, (given, NO_NAMES), (arguments[: len(given)], NO_NAMES)):
            return function(*arguments)

    return call


def note_changes(
    name: str, containers: Mapping[Path, Any], changed: frozenset[Path], inside: Mapping[Path, Any] = NOTHING
) -> None:
    """Raise a GraphError if a container that a function changes is given twice; else let those around it know.

    Args:
        name: the transformation.
        containers: those in the arguments as the user gave them, by where they lie.
        changed: where containers lie that it changed.
        inside: the containers that it received, where some are those that were given.
    """
    for path in sorted(changed & containers.keys()):
        one = containers[path]
        places = [p for p, x in containers.items() if x is one and p != path]
        other = next((p for p in places if not inside or inside.get(p) is not inside.get(path)), None)
        if other is not None:
            raise repetition_error(name, one, path[0], other[0])
        for watch in WATCHED_CALLS.get():
            watch.noted.update(p for p, (holder, _) in watch.before.items() if holder.target is one)


def repetition_error(name: str, container: Any, first: int, second: int) -> GraphError:
    """Return the error about a container that is in two arguments."""
    first, second = sorted((first, second))
    places = f"arguments {first} and {second}" if first != second else f"two places of argument {first}"
    return GraphError(
        name,
        f"the same {type(container).__name__} in {places}, which the function changes in one of them",
        "containers of their own are needed, because the other one would not change as in plain Python",
        "Copy one of them",
        place=position_of(*caller()),
    )


def contents_of(holder: Holder) -> Contents:
    """Return the contents of a container but for what a `functools.cached_property` keeps: whoever asks finds it."""
    kept = cached_of(type(holder.target))
    return {key: x for key, x in holder.contents().items() if key not in kept} if kept else holder.contents()


def may_be_repeated(given: Call, changed: frozenset[Path]) -> bool:
    """Tell whether a container that a function changes could be another one in arguments of the same structure."""
    structures = {path: flatten(x, in_order=True)[1] for path, x in containers_by_path(given).items()}
    return any(one == structures[path] for path in changed for p, one in structures.items() if p != path)


def has_repeated(given: Call) -> bool:
    """Tell whether a container lies in several places."""
    found: set[int] = set()
    rest = all_arguments(given)
    for x in rest:  # which grows
        kind = type(x)
        if kind in LEAVES or not (kind in BUILTIN_CONTAINERS or is_container(kind)):
            continue
        if id(x) in found:
            if kind is tuple and not x:
                continue
            return True
        found.add(id(x))
        rest += x.values() if kind is dict else children_of(x)
    return False


def all_arguments(given: Call) -> list[Any]:
    """Return arguments, and behind them those by name."""
    arguments, keywords = given
    return [*arguments, *(keywords[name] for name in sorted(keywords))]


def containers_by_path(given: Call) -> dict[Path, Any]:
    """Return the containers in arguments by where they lie; of one that contains itself, not its inside again."""
    found: dict[Path, Any] = {}
    rest: list[tuple[Path, Any, frozenset[int]]] = [((), None, frozenset())]
    while rest:
        path, container, around = rest.pop()
        items = children_of(container) if path else all_arguments(given)
        for i, x in enumerate(items):
            if type(x) not in LEAVES and is_container(type(x)):
                found[*path, i] = x
                if id(x) not in around:
                    rest.append(((*path, i), x, around | {id(x)}))
    return found
