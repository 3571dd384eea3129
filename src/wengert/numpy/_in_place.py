"""In-place methods of Tensors, with PyTorch's names: each ends in an underscore, writes, and returns the Tensor.

They mean what `x[...] = result` means: views and the base see the change, and the gradient follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.values.dispatch import as_tensor
from wengert.core.values.numpy_overrides import RAISED, carry_out
from wengert.core.values.tensor import Tensor
from wengert.numpy._out import replace


def of_numpy(names: str) -> dict[str, Any]:
    """Return functions of NumPy's by their names, which methods have too."""
    return {name: getattr(np, name) for name in names.split()}


UNARY: dict[str, Any] = {
    "abs": np.absolute,
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "conj": np.conjugate,
    "neg": np.negative,
    **of_numpy("ceil cos cosh exp exp2 expm1 floor log log10 log1p log2 nan_to_num reciprocal round"),
    **of_numpy("sign sin sinh sqrt square tan tanh trunc"),
}
BINARY: dict[str, Any] = {
    "div": np.divide,
    "floor_divide": np.floor_divide,
    "mul": np.multiply,
    "pow": np.power,
    "remainder": np.remainder,
}


def make_writer(name: str, function: Any) -> Callable[..., Tensor]:
    """Return a method that writes the result of a function over its Tensor."""

    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        try:
            return replace(name, self, function(self, *args, **options))
        except RAISED:
            carry_out(method, self, *args, **options)
            raise

    method.__doc__ = f"""Replace every element by what `numpy.{function.__name__}` gives; return the Tensor."""
    return method


def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Add `alpha` times another value in place; return the Tensor."""
    return replace("add_", self, self + scale_operand(other, alpha))


def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Subtract `alpha` times another value in place; return the Tensor."""
    return replace("sub_", self, self - scale_operand(other, alpha))


def scale_operand(other: Any, alpha: Any) -> Any:
    """Return a value times a factor, which is usually one."""
    return other if type(alpha) is int and alpha == 1 else np.multiply(as_tensor(other), alpha)


def addcmul_(self: Tensor, first: Any, second: Any, *, value: Any = 1) -> Tensor:
    """Add `value` times a product in place; return the Tensor."""
    return replace("addcmul_", self, self + scale_operand(np.multiply(as_tensor(first), second), value))


def addcdiv_(self: Tensor, first: Any, second: Any, *, value: Any = 1) -> Tensor:
    """Add `value` times a quotient in place; return the Tensor."""
    return replace("addcdiv_", self, self + scale_operand(np.divide(as_tensor(first), second), value))


def lerp_(self: Tensor, end: Any, weight: Any) -> Tensor:
    """Move a part of the way to another value in place; return the Tensor."""
    return replace("lerp_", self, self + (end - self) * weight)


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limit the elements to an interval in place; return the Tensor."""
    return replace("clamp_", self, np.clip(self, min, max))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to a value; return the Tensor."""
    self[...] = value
    return self


def zero_(self: Tensor) -> Tensor:
    """Set every element to zero; return the Tensor."""
    return fill_(self, 0)


def copy_(self: Tensor, source: Any) -> Tensor:
    """Take over the elements of an array that broadcasts to this shape; return the Tensor."""
    return fill_(self, source)


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """Set the elements where a mask holds to a value; return the Tensor."""
    return replace("masked_fill_", self, np.where(mask, value, self))


METHODS: dict[str, Callable[..., Tensor]] = {
    **{f"{name}_": make_writer(f"{name}_", function) for name, function in (UNARY | BINARY).items()},
    **{method.__name__: method for method in (add_, sub_, addcmul_, addcdiv_, lerp_, clamp_)},
    **{method.__name__: method for method in (fill_, zero_, copy_, masked_fill_)},
    "clip_": clamp_,
}
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
