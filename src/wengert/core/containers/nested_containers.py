"""The containers that lie in a container, and what lies directly in one."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from typing import Any

import numpy as np

from wengert.core.containers.container_classes import is_container
from wengert.core.containers.tree_leaves import flatten

PLAIN = frozenset({tuple, list, dict, OrderedDict, deque, type(None)})
"""Classes of containers that have nothing beside their items."""
LEAVES = frozenset({float, int, bool, str, np.ndarray, np.float64})
"""Classes of most items, which are known to be no containers without a look at them."""


def containers_in(value: Any) -> list[Any]:
    """Return a container and all that lie in it, as `flatten` takes them apart.

    >>> containers_in([1.0, {"a": (2.0,)}])
    [[1.0, {'a': (2.0,)}], {'a': (2.0,)}, (2.0,)]
    """
    all_parts = [value]
    for part in all_parts:  # which grows
        items = children_of(part)
        if not LEAVES.issuperset(map(type, items)):
            all_parts += [x for x in items if type(x) not in LEAVES and is_container(type(x))]
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
