"""Containers: nested dicts, lists, tuples, named tuples and dataclasses as flat lists of leaves (optree)."""

from __future__ import annotations

import atexit
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wengert.errors import UsageError, describe

__all__ = ["NAMESPACE", "flatten", "flatten_prefix", "map_leaves", "nested_too_deeply", "unflatten", "unflatten_each"]

NAMESPACE = "wengert"
IN_ORDER = "wengert, dictionaries in order"


def flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None, *, in_order: bool = False
) -> tuple[list[Any], Any]:
    """Return the leaves of nested containers, and the structure that `unflatten` needs.

    Args:
        tree: the containers.
        is_leaf: tells of more leaves.
        in_order: whether dictionaries with the same keys in another order have another structure.

    >>> leaves, structure = flatten({"a": 1.0, "b": (2.0, None)})
    >>> leaves
    [1.0, 2.0]
    >>> unflatten(structure, [10.0, 20.0])
    {'a': 10.0, 'b': (20.0, None)}
    """
    kind = type(tree)
    if kind is float or kind is np.ndarray:
        return [tree], None
    if not issubclass(kind, dict | list | tuple) and not dataclasses.is_dataclass(kind) and tree is not None:
        return [tree], None
    import optree  # on first use: it costs more than the rest of the import

    if in_order:
        keep_order()
    while True:
        try:
            leaves, structure = optree.tree_flatten(tree, is_leaf, namespace=IN_ORDER if in_order else NAMESPACE)
        except RecursionError:
            raise nested_too_deeply("containers", tree) from None
        unknown = {type(leaf) for leaf in leaves if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type)}
        if is_leaf is not None:
            unknown -= {type(leaf) for leaf in leaves if is_leaf(leaf)}
        if not unknown:
            return leaves, structure
        for found in unknown:
            register_dataclass(found)


def nested_too_deeply(name: str, tree: Any) -> UsageError:
    """Return the error about containers that cannot be walked.

    >>> inside = []
    >>> inside.append(inside)
    >>> print(nested_too_deeply("array", inside))
    array: a list that contains itself, or is nested very deeply; containers that end are needed. Build it anew.
    """
    return UsageError(
        describe(
            name,
            f"a {type(tree).__name__} that contains itself, or is nested very deeply",
            "containers that end are needed",
            "Build it anew",
        )
    )


@functools.cache
def keep_order() -> None:
    """Let the order of a dictionary's keys be part of its structure in a namespace, until the program ends."""
    import optree

    mode = optree.dict_insertion_ordered(True, namespace=IN_ORDER)
    mode.__enter__()
    atexit.register(mode.__exit__, None, None, None)


def register_dataclass(kind: type[Any]) -> None:
    """Let the fields of a dataclass be children."""
    import optree

    names = [field.name for field in dataclasses.fields(kind)]

    def take_apart(instance: Any) -> tuple[list[Any], None, list[str]]:
        return [getattr(instance, name) for name in names], None, names

    def put_together(_: Any, children: Iterable[Any]) -> Any:
        instance = object.__new__(kind)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(instance, name, child)
        return instance

    for namespace in (NAMESPACE, IN_ORDER):
        optree.register_pytree_node(kind, take_apart, put_together, namespace=namespace)


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """Return the containers that `flatten` took apart, around other leaves."""
    if structure is None:
        return leaves[0]
    import optree

    return optree.tree_unflatten(structure, leaves)


def unflatten_each(structures: Sequence[tuple[Any, int]], leaves: Sequence[Any]) -> list[Any]:
    """Return several trees from their structures, each with its number of leaves, and the leaves of all.

    >>> unflatten_each([(None, 1), (flatten((1.0, 2.0))[1], 2)], [5.0, 6.0, 7.0])
    [5.0, (6.0, 7.0)]
    """
    trees, start = [], 0
    for structure, count in structures:
        trees.append(unflatten(structure, leaves[start : start + count]))
        start += count
    return trees


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the same containers around the function's results for each leaf.

    >>> map_leaves(lambda x: x + 1, [1, (2,)])
    [2, (3,)]
    """
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def flatten_prefix(name: str, prefix: Any, structure: Any, tree: Any) -> list[Any]:
    """Return one value for each leaf of a tree from containers that may stop earlier.

    Args:
        name: what the prefix is called, for the error.
        prefix: values in the tree's containers; one value where the tree has a container stands for all its leaves.
        structure: the tree's structure, as `flatten` gave it.
        tree: the tree.

    Raises:
        UsageError: the containers differ.

    >>> tree = ([1.0, 2.0], 3.0)
    >>> flatten_prefix("axes", (0, None), flatten(tree)[1], tree)
    [0, 0, None]
    """
    if structure is None:
        return [prefix]
    import optree

    if prefix is None or isinstance(prefix, int):
        return [prefix] * structure.num_leaves
    try:
        found = optree.broadcast_prefix(
            prefix, tree, is_leaf=lambda x: x is None or isinstance(x, int), namespace=NAMESPACE
        )
        leaves = optree.tree_leaves(tree, none_is_leaf=True, namespace=NAMESPACE)
        return [value for value, leaf in zip(found, leaves, strict=True) if leaf is not None]
    except ValueError as error:
        raise UsageError(
            describe(
                "vmap",
                f"{name}={prefix!r}",
                "the containers of the values it speaks of, or fewer of them, are needed",
                f"Build it alike ({error})",
            )
        ) from error
