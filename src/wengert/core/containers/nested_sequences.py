"""The structure of tuples and lists of leaves: what most functions take and return.

optree knows all others; to load it takes a third of the time until a first gradient is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from types import NoneType
from typing import Any

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


def take_apart(
    tree: Any,
    is_container: Callable[[type], bool],
    is_leaf: Callable[[Any], bool] | None = None,
    depth: int = DEPTH,
) -> tuple[list[Any], Nested] | None:
    """Return the leaves of a tuple or list, and its structure; None if it holds other containers.

    Args:
        tree: a tuple or a list.
        is_container: tells of classes that they are containers.
        is_leaf: tells of more leaves.
        depth: how many tuples and lists may lie in each other.
    """
    if is_leaf is None:
        containers = {kind for kind in set(map(type, tree)) if kind is NoneType or is_container(kind)}
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
