"""Containers: nested dicts, lists, tuples, named tuples and dataclasses as flat lists of leaves (optree).

Those of tuples and lists alone need no optree; see `Nested`. And the containers that lie in a container.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from types import NoneType
from typing import Any

import numpy as np

from wengert.core.containers.container_classes import (
    IN_ORDER,
    NAMESPACE,
    OPENED,
    STAND_INS,
    is_container,
    is_opened,
    keep_order,
    load_optree,
    register_on_sight,
    stand_in_maker,
)
from wengert.errors import UsageError
from wengert.support.fork_safety import WALKING
from wengert.support.records import Record

DEPTH, FEW = 3, 8
"""How deep others may lie in a tuple or list, and among how many items; beyond that optree is faster, too."""
SEQUENCES = frozenset({tuple, list})


class Nested(Record):
    """Be the structure of a tuple or list of leaves, and of tuples and lists of them; prints as optree's do.

    Attributes:
        kind: tuple or list.
        parts: the structure of each item; None for leaves.
        num_leaves: how many leaves there are.

    >>> leaves, structure = take_apart((1.0, [2.0, 3.0]), {tuple, list}.__contains__)
    >>> leaves, structure, structure.around([4.0, 5.0, 6.0])
    ([1.0, 2.0, 3.0], PyTreeSpec((*, [*, *])), (4.0, [5.0, 6.0]))
    """

    def __init__(self, kind: type, parts: tuple[Nested | None, ...]) -> None:
        self.kind, self.parts = kind, parts
        self.num_leaves: int = sum([1 if part is None else part.num_leaves for part in parts])

    def around(self, leaves: Sequence[Any]) -> Any:
        """Return the tuple or list around leaves.

        Raises:
            ValueError: there are more or fewer.
        """
        if len(leaves) != self.num_leaves:
            raise ValueError(f"{len(leaves)} leaves; {self.num_leaves} are needed")
        if len(self.parts) == self.num_leaves and not any(self.parts):
            return self.kind(leaves)
        rest = iter(leaves)
        return self.kind(
            [next(rest) if part is None else part.around(list(islice(rest, part.num_leaves))) for part in self.parts]
        )

    def text(self) -> str:
        """Return how optree prints it."""
        inside = ", ".join(["*" if part is None else part.text() for part in self.parts])
        if self.kind is list:
            return f"[{inside}]"
        return f"({inside},)" if len(self.parts) == 1 else f"({inside})"

    def __repr__(self) -> str:
        return f"PyTreeSpec({self.text()})"


PLAIN = frozenset([float, int, bool, complex, str, np.ndarray, np.float64])
"""Classes that are no containers, whatever is registered: they need not be asked about."""


def take_apart(
    tree: Any,
    is_container: Callable[[type], bool],
    is_leaf: Callable[[Any], bool] | None = None,
    depth: int = DEPTH,
) -> tuple[list[Any], Nested] | None:
    """Return the leaves of a tuple or list, and its structure; None if it holds other containers.

    `depth` is how many tuples and lists may lie in each other.
    """
    if is_leaf is None:
        others = set(map(type, tree)) - PLAIN
        containers = {kind for kind in others if kind is NoneType or is_container(kind)}
        if not containers:
            return list(tree), Nested(type(tree), (None,) * len(tree))
        if not containers <= SEQUENCES:
            return None
    holds = depth and len(tree) <= FEW
    leaves: list[Any] = []
    parts: list[Nested | None] = []
    for item in tree:
        if (is_leaf is not None and is_leaf(item)) or not (item is None or is_container(type(item))):
            leaves.append(item)
            parts.append(None)
            continue
        found = take_apart(item, is_container, is_leaf, depth - 1) if holds and type(item) in SEQUENCES else None
        if found is None:
            return None
        leaves += found[0]
        parts.append(found[1])
    return leaves, Nested(type(tree), tuple(parts))


def is_structure(value: Any) -> bool:
    """Tell whether a value is a structure of containers: those of equal containers are equal, and hash alike."""
    kind = type(value)
    return kind is Nested or (kind.__module__ == "optree" and kind.__name__ == "PyTreeSpec")  # which may not be loaded


def structure_text(structure: Any) -> str:
    """Return how errors show containers: those of `flatten`, which are None for one array."""
    if structure is None:
        return "one array"
    return str(structure).removeprefix("PyTreeSpec(").removesuffix(")").split(", namespace=")[0]


def flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None, *, in_order: bool = False, opened: bool = False
) -> tuple[list[Any], Any]:
    """Return the leaves of nested containers, and the structure that `unflatten` needs.

    Args:
        tree: the containers.
        is_leaf: tells of more leaves.
        in_order: whether dictionaries with the same keys in another order have another structure.
        opened: whether numbers in static fields of dataclasses, and attributes of objects of opened classes, are
            leaves, too: where they change from round to round. Dictionaries are then in order.

    >>> leaves, structure = flatten({"a": 1.0, "b": (2.0, None)})
    >>> leaves
    [1.0, 2.0]
    >>> unflatten(structure, [10.0, 20.0])
    {'a': 10.0, 'b': (20.0, None)}
    """
    kind = type(tree)
    if kind is float or kind is np.ndarray:
        return [tree], None
    known = is_opened if opened else is_container
    if tree is not None and not known(kind):
        return [tree], None
    if is_leaf is not None and is_leaf(tree):
        return [tree], None
    if kind is tuple or kind is list:
        found = take_apart(tree, known, is_leaf)
        if found is not None:
            return found
    optree = load_optree()
    if in_order or opened:
        keep_order()
    namespace = OPENED if opened else IN_ORDER if in_order else NAMESPACE
    while True:
        try:
            with WALKING:
                leaves, structure = optree.tree_flatten(tree, is_leaf, namespace=namespace)
        except RecursionError:
            raise nesting_error("containers", tree) from None
        unknown = {kind for kind in set(map(type, leaves)) if known(kind)}
        if is_leaf is not None and unknown:
            unknown -= {type(leaf) for leaf in leaves if is_leaf(leaf)}
        if not unknown:
            return leaves, structure
        for container in unknown:
            if stand_in_maker(container) is None:
                register_on_sight(container)
        tree = with_stand_ins(tree, unknown, is_leaf)


def with_stand_ins(tree: Any, kinds: Collection[type[Any]] | None = None, is_leaf: Any = None) -> Any:
    """Return containers with stand-ins for those of other packages; `kinds` are all classes that may need one."""
    if sys.modules.keys().isdisjoint(STAND_INS) or (kinds is not None and not any(map(stand_in_maker, kinds))):
        return tree
    optree = load_optree()

    def replace_leaf(leaf: Any) -> Any:
        make = stand_in_maker(type(leaf))
        return leaf if make is None or (is_leaf is not None and is_leaf(leaf)) else make(leaf)

    with WALKING:
        return optree.tree_map(replace_leaf, tree, is_leaf=is_leaf, namespace=NAMESPACE)


def nesting_error(name: str, tree: Any) -> UsageError:
    """Return the error about containers that cannot be walked.

    >>> inside = []
    >>> inside.append(inside)
    >>> print(nesting_error("array", inside))
    array: a list that contains itself, or is nested very deeply; containers that end are needed. Build it anew.
    """
    given = f"a {type(tree).__name__} that contains itself, or is nested very deeply"
    return UsageError(name, given, "containers that end are needed", "Build it anew")


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """Return the containers that `flatten` took apart, around other leaves."""
    if structure is None:
        return leaves[0]
    if type(structure) is Nested:
        return structure.around(leaves)
    optree = load_optree()
    with WALKING:
        return optree.tree_unflatten(structure, leaves)


def unflatten_each(structures: Sequence[tuple[Any, int]], leaves: Sequence[Any]) -> list[Any]:
    """Return several trees from their structures, each with its number of leaves, and the leaves of all.

    >>> unflatten_each([(None, 1), (flatten((1.0, 2.0))[1], 2)], [5.0, 6.0, 7.0])
    [5.0, (6.0, 7.0)]
    """
    trees, start = [], 0
    for structure, count in structures:
        trees.append(leaves[start] if structure is None else unflatten(structure, leaves[start : start + count]))
        start += count
    return trees


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree of the same containers whose leaves are a function's results for those of a tree.

    >>> map_leaves(lambda x: x + 1, [1, (2,)])
    [2, (3,)]
    """
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def flatten_prefix(prefix: Any, structure: Any, tree: Any) -> list[Any]:
    """Return one value for each leaf of a tree from containers that may stop earlier.

    Args:
        prefix: values in the tree's containers; one value where the tree has a container stands for all its leaves.
        structure: the tree's structure, as `flatten` gave it.
        tree: the tree.

    Raises:
        ValueError: the containers differ.

    >>> tree = ([1.0, 2.0], 3.0)
    >>> flatten_prefix((0, None), flatten(tree)[1], tree)
    [0, 0, None]
    """
    if structure is None:
        return [prefix]
    if prefix is None or isinstance(prefix, int):
        return [prefix] * structure.num_leaves
    optree, tree = load_optree(), with_stand_ins(tree)
    with WALKING:
        found = optree.broadcast_prefix(
            prefix, tree, is_leaf=lambda x: x is None or isinstance(x, int), namespace=NAMESPACE
        )
        leaves = optree.tree_leaves(tree, none_is_leaf=True, namespace=NAMESPACE)
    return [value for value, leaf in zip(found, leaves, strict=True) if leaf is not None]


def accessors_of(structure: Any) -> Sequence[Any]:
    """Return for each leaf of containers the steps that lead to it, as optree's accessors.

    >>> [accessor.codify("x") for accessor in accessors_of(flatten((1.0, [2.0]))[1])]
    ['x[0]', 'x[1][0]']
    """
    with WALKING:
        return list(full_structure(structure).accessors())


def leaves_up_to(structure: Any, tree: Any) -> list[Any]:
    """Return the items of containers, None among them, at the places of a structure's leaves.

    Raises:
        ValueError: the containers are others.

    >>> leaves_up_to(flatten((1.0, [2.0]))[1], (None, [3.0]))
    [None, 3.0]
    """
    if structure is None:
        return [tree]
    tree = with_stand_ins(tree)
    with WALKING:
        return list(full_structure(structure).flatten_up_to(tree))


def full_structure(structure: Any) -> Any:
    """Return a structure as optree knows it."""
    if type(structure) is not Nested:
        return structure
    return load_optree().tree_structure(structure.around([0.0] * structure.num_leaves), namespace=NAMESPACE)


def place_of(tree: Any, index: int, name: str) -> str:
    """Return how one writes a leaf of nested containers that have a name.

    >>> place_of({"layers": [1.0, (2.0, 3.0)]}, 2, "parameters")
    "parameters['layers'][1][1]"
    """
    return place_in(flatten(tree)[1], index, name)


def place_in(structure: Any, index: int, name: str) -> str:
    """Return how one writes a leaf of containers of this structure that have a name."""
    return places_in(structure, name)[index]


def places_in(structure: Any, name: str) -> list[str]:
    """Return how one writes each leaf of containers of this structure that have a name; of none, the name.

    >>> places_in(flatten((1.0, [2.0]))[1], "x")
    ['x[0]', 'x[1][0]']
    """
    return [name] if structure is None else [accessor.codify(name) for accessor in accessors_of(structure)]


BARE = frozenset({tuple, list, dict, OrderedDict, deque, type(None)})
"""Classes of containers that have nothing beside their items."""


def containers_in(value: Any) -> list[Any]:
    """Return a container and all that lie in it, as `flatten` takes them apart.

    >>> containers_in([1.0, {"a": (2.0,)}])
    [[1.0, {'a': (2.0,)}], {'a': (2.0,)}, (2.0,)]
    """
    all_parts = [value]
    for part in all_parts:  # which grows
        items = children_of(part)
        if not PLAIN.issuperset(map(type, items)):
            all_parts += [x for x in items if type(x) not in PLAIN and is_container(type(x))]
    return all_parts


def children_of(value: Any) -> Collection[Any]:
    """Return what lies directly in a container."""
    kind = type(value)
    if kind is dict or kind is OrderedDict:
        items: Collection[Any] = value.values()
    else:
        is_sequence = kind is tuple or kind is list or kind is deque
        items = value if is_sequence else flatten(value, lambda x: x is not value)[0]
    return items
