"""Arrays of Python objects that hold Tensors: programs that fill them item by item mean the Tensor of the items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, WengertError


def holds_objects(value: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    """Tell whether a value is an ndarray of Python objects."""
    return type(value) is np.ndarray and value.dtype.kind == "O"


def leaves_of_result(result: Any, *, in_order: bool = False) -> tuple[list[Any], Any]:
    """Return the leaves and the structure of what a function returned; arrays that hold Tensors as one Tensor each.

    Args:
        result: what it returned.
        in_order: whether leaves of dictionaries are in the order of the dictionary, not in that of the keys.

    >>> import wengert as wg
    >>> leaves_of_result([np.array([wg.tensor(1.0), 2.0], dtype=object)[:1], 3.0])[0]
    [tensor([1.]), 3.0]
    """
    if type(result) is Tensor:
        return [result], None
    leaves, structure = flatten(result, in_order=in_order)
    return [read_objects("array", x) if holds_objects(x) and holds_tensors(x) else x for x in leaves], structure


def array_of_lists(name: str, build: Callable[[Any], Any], data: Any) -> Any:
    """Return the array that `build` makes of nested lists.

    Args:
        name: the public function, for errors.
        build: makes an array of them.
        data: the lists.

    Raises:
        ShapeError: they make no array.

    >>> array_of_lists("tensor", np.array, [[1.0], [2.0]])
    array([[1.],
           [2.]])
    """
    try:
        return build(data)
    except WengertError:
        raise
    except ValueError as error:
        given = f"nested lists that make no array ({error})".replace(".)", ")")
        action = "Fill the shorter ones, or keep arrays of several shapes in a list"
        raise ShapeError(name, given, "rows of one length, of numbers and Tensors, are needed", action) from error


def holds_tensors(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether some object in an array, or in an array of objects in it, is a Tensor."""
    level, seen = [array], []
    while level:
        items = [item for one in level for item in one.ravel().tolist()]
        if any(type(item) is Tensor for item in items):
            return True
        seen += level
        level = [item for item in items if holds_objects(item) and not any(item is one for one in seen)]
    return False


def read_objects(name: str, array: np.ndarray[Any, Any], around: tuple[Any, ...] = ()) -> Any:
    """Return an array of objects as what it holds: a Tensor if any item is one, an ndarray if all are numbers.

    Args:
        name: the public function that reads it, for errors.
        array: an array of dtype object; items may have axes, the same ones, which come last in the result. Items may be
            arrays of objects themselves.
        around: the arrays in which it is.

    Raises:
        DtypeError: an item is no number, array or Tensor.
        ShapeError: the items differ in shape.
    """
    own = (*around, array)
    items = [
        read_objects(name, item, own) if holds_objects(item) and not any(item is one for one in own) else item
        for item in array.ravel().tolist()
    ]
    for item in items:
        if not (type(item) is Tensor or is_numeric(item)):
            given = f"an array of dtype object that holds a {type(item).__name__}"
            action = "Fill it completely, or build it with wengert.numpy.stack or wengert.numpy.array"
            raise DtypeError(name, given, "numbers or Tensors as items are needed", action)
    require_one_shape(name, items)
    if not items:
        return np.zeros(array.shape)
    stacked = np.stack(items) if any(type(item) is Tensor for item in items) else np.array(items)
    return stacked.reshape(array.shape + stacked.shape[1:])


def is_numeric(item: Any) -> bool:
    """Tell whether an object in an array is a number or a numeric array."""
    if isinstance(item, np.ndarray | np.generic):
        return item.dtype.kind in "biufc" and (isinstance(item, np.generic) or type(item) is np.ndarray)
    return isinstance(item, bool | int | float | complex)


def require_one_shape(name: str, items: Sequence[Any]) -> None:
    """Raise a ShapeError unless all objects of an array have the same shape."""
    shapes = sorted({np.shape(item) if type(item) is not Tensor else item.shape for item in items})
    if len(shapes) > 1:
        given = f"an array of dtype object whose items have the shapes {shapes[0]} and {shapes[1]}"
        raise ShapeError(name, given, "items of one shape are needed", "Keep arrays of several shapes in a list")
