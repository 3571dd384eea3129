"""Containers: nested dicts, lists, tuples, named tuples and dataclasses as flat lists of leaves (optree)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["flatten", "map_leaves", "unflatten"]

NAMESPACE = "wengert"


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of nested containers, and the structure that `unflatten` needs.

    >>> leaves, structure = flatten({"a": 1.0, "b": (2.0, None)})
    >>> leaves
    [1.0, 2.0]
    >>> unflatten(structure, [10.0, 20.0])
    {'a': 10.0, 'b': (20.0, None)}
    """
    kind = type(tree)
    if not issubclass(kind, dict | list | tuple) and not dataclasses.is_dataclass(kind) and tree is not None:
        return [tree], None
    import optree  # on first use: it costs more than the rest of the import

    while True:
        leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
        unknown = {type(leaf) for leaf in leaves if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type)}
        if not unknown:
            return leaves, structure
        for found in unknown:
            register_dataclass(found)


def register_dataclass(kind: type[Any]) -> None:
    """Let the fields of a dataclass be children."""
    import optree

    names = [field.name for field in dataclasses.fields(kind)]

    def take_apart(instance: Any) -> tuple[list[Any], None, list[str]]:
        return [getattr(instance, name) for name in names], None, names

    def put_together(_: None, children: Sequence[Any]) -> Any:
        instance = object.__new__(kind)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(instance, name, child)
        return instance

    optree.register_pytree_node(kind, take_apart, put_together, namespace=NAMESPACE)


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """Return the containers that `flatten` took apart, around other leaves."""
    if structure is None:
        return leaves[0]
    import optree

    return optree.tree_unflatten(structure, leaves)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the same containers around the function's results for each leaf.

    >>> map_leaves(lambda x: x + 1, [1, (2,)])
    [2, (3,)]
    """
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])
