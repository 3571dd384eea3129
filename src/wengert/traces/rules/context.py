"""The context of a `Function`: what `forward` tells `backward`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.identity import identity
from wengert.core.values.aval import is_differentiable, is_number
from wengert.core.values.tensor import Tensor, raw
from wengert.errors import GraphError
from wengert.support.function_contents import captured_by

NEEDED = "needs_input_grad"
LANES = "which differs from lane to lane under vmap", "attributes of ctx must be the same for all lanes"
TRACED = "which depends on values that are being traced", "attributes of ctx must not while a gradient is traced"


class Context:
    """Carry what `forward` wants to tell `backward`; further attributes may be set freely.

    Tensors among these are saved like those of `save_for_backward`.

    Attributes:
        needs_input_grad: for each argument of `forward`, whether its cotangent is wanted.

    >>> import wengert as wg
    >>> class Square(wg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx: Context, x: Tensor) -> Tensor:
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx: Context, ct: Tensor) -> Tensor:
    ...         (x,) = ctx.saved_tensors
    ...         return ct * 2 * x
    >>> x = wg.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._to_save: tuple[Any, ...] = ()
        self._to_push: tuple[Any, ...] | None = None
        self._saved: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True

    if TYPE_CHECKING:  # attributes that a program sets

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Any) -> None:
        """Save Tensors (inputs, outputs or others; None is allowed) for `saved_tensors`."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save Tensors for `saved_tensors` in `jvp`, in place of those of `save_for_backward`."""
        self._to_push = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Tell which inputs `forward` has written to; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Tell which outputs, or values that are saved besides, are constants."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether outputs that received no cotangent give `backward` zeros (the default) or None."""
        self._materialize = value

    def _save_attributes(self) -> list[str]:
        """Save Tensors among the attributes like the others, after them; return their names."""
        found = {key: value for key, value in vars(self).items() if type(value) is Tensor}
        if not found:
            return []
        self._to_save = (*self._to_save, *found.values())
        for key in found:
            delattr(self, key)
        return list(found)

    def _restore(self, saved: tuple[Any, ...], attributes: Sequence[str]) -> None:
        """Take what was saved, at the level where it is needed; the last of it as attributes."""
        if not attributes:
            self._saved = saved
            return
        count = len(saved) - len(attributes)
        self._saved = saved[:count]
        vars(self).update(zip(attributes, saved[count:], strict=True))

    def _detached_copy(self) -> Context:
        """Return the same with plain Tensors."""
        plain = copy.copy(self)
        plain._saved = tuple(x.detach() if type(x) is Tensor else x for x in self._saved)
        tensors = {key: value for key, value in public_attributes(self).items() if type(value) is Tensor}
        vars(plain).update({key: value.detach() for key, value in tensors.items()})
        return plain

    def _let_go(self) -> None:
        """Forget the values of the call: those that were saved are residuals of its record."""
        self._to_save = self._dirty = self._constant = ()
        self._to_push = None

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What `forward` saved, as Tensors (None where it saved None, which is not in the type, as in PyTorch)."""
        return self._saved


def require_same_attributes(name: str, before: Context, after: Context, why: tuple[str, str]) -> None:
    """Raise a GraphError if `forward` stored different attributes on its context in calls that share a backward."""
    different = different_attributes(before, after)
    if different:
        raise attribute_error(name, different[0], why)


def attribute_error(name: str, attribute: str, why: tuple[str, str]) -> GraphError:
    """Return the error about an attribute of a context that differs between calls."""
    action = "Pass what depends on values to ctx.save_for_backward"
    return GraphError(f"{name}.forward", f"ctx.{attribute}, {why[0]}", why[1], action)


def different_attributes(one: Context, other: Context) -> list[str]:
    """Return the names of what a user stored differently on two contexts."""
    old, new = public_attributes(one), public_attributes(other)
    return [key for key in {**old, **new} if key not in old or key not in new or not alike(old[key], new[key])]


def unknown_attributes(context: Context, given: Sequence[Any], functions: Sequence[Any]) -> list[str]:
    """Return the names of attributes that hold floats which may depend on the arguments, so nobody knows how.

    Known are what the call was given and is not followed, what the functions (`forward`, and what fills the context)
    name (constants, and variables of theirs), integers and booleans. (A Tensor that is an attribute itself is saved
    like the others, and followed.)
    """
    attributes = {key: flatten(value)[0] for key, value in public_attributes(context).items() if key != NEEDED}
    if not attributes:
        return []
    known = [*given]
    for function in functions:
        code = getattr(function, "__code__", None)
        if code is not None:
            names = [function.__globals__.get(name) for name in code.co_names]
            defaults = (function.__defaults__, function.__kwdefaults__)
            known += [*code.co_consts, *names, *defaults, *captured_by(function)]
    leaves = [leaf for value in known for leaf in flatten(value)[0]]

    def is_known(x: Any) -> bool:
        return not is_float(x) or any(x is y or (is_number(x) and equal(x, y)) for y in leaves)

    return [key for key, values in attributes.items() if not all(map(is_known, values))]


def is_float(value: Any) -> bool:
    """Tell whether a value consists of numbers that have derivatives."""
    return isinstance(value, float | complex) or is_differentiable(np.dtype(getattr(value, "dtype", bool)))


def public_attributes(context: Context) -> dict[str, Any]:
    """Return what a user stored on a context."""
    return {key: value for key, value in vars(context).items() if not key.startswith("_")}


def alike(a: Any, b: Any) -> bool:
    """Tell whether two attributes are the same, or hold equal numbers and objects in the same containers."""
    (ours, structure), (theirs, other) = flatten(a), flatten(b)
    return bool(structure == other) and all(map(equal, ours, theirs))


def equal(a: Any, b: Any) -> bool:
    """Tell whether two leaves of attributes are the same, have equal elements, or say that they are equal."""
    if a is b:
        return True
    if isinstance(a, Tensor | np.ndarray) or isinstance(b, Tensor | np.ndarray):
        one, other = np.asarray(raw(a)), np.asarray(raw(b))
        return one.dtype == other.dtype and bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if type(a) is not type(b):
        return False
    if is_number(a) or isinstance(a, np.generic):
        return identity(a) == identity(b)
    found = a == b
    if isinstance(found, bool | np.bool_):
        return bool(found)
    return pickle.dumps(a) == pickle.dumps(b)  # tables and sparse matrices compare element by element
