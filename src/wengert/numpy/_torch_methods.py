"""Methods of Tensors with PyTorch's names and PyTorch's meaning; names that are spelled otherwise here say how.

Where NumPy has a method of the same name, it is NumPy's. A method whose name ends in an underscore writes in place and
returns the Tensor, as `x[...] = result` does: views and the base see the change, and the gradient follows.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

import numpy as np

from wengert.core.diagnostics.conversion_hints import asked_for_array
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.numpy_overrides import RAISED, carry_out
from wengert.core.values.tensor import Tensor, innermost_trace
from wengert.errors import DtypeError
from wengert.numpy import _contractions, _conversion
from wengert.numpy._results import replace
from wengert.numpy._ufuncs import OF_UFUNCS
from wengert.support.hints import MissingAttribute


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
MORE_UNARY: dict[str, Any] = {
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    **of_numpy("absolute isfinite isinf isnan logical_not negative positive"),
}
MORE_BINARY: dict[str, Any] = {
    "atan2": np.arctan2,
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "mm": np.matmul,
    "mv": np.matmul,
    "ne": np.not_equal,
    **of_numpy("divide fmax fmin fmod hypot inner kron logical_and logical_or matmul maximum minimum multiply outer"),
    **of_numpy("subtract"),
}
PAIRS = {**BINARY, **MORE_BINARY}

# In place


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


IN_PLACE: dict[str, Callable[..., Tensor]] = {
    **{f"{name}_": make_writer(f"{name}_", function) for name, function in (UNARY | BINARY).items()},
    **{method.__name__: method for method in (add_, sub_, addcmul_, addcdiv_, lerp_, clamp_)},
    **{method.__name__: method for method in (fill_, zero_, copy_, masked_fill_)},
    "clip_": clamp_,
}
for _name, _method in IN_PLACE.items():
    setattr(Tensor, _name, _method)

# With new results

OWN: dict[Any, Callable[..., Any]] = {
    **OF_UFUNCS,
    np.inner: _contractions.inner,
    np.kron: _contractions.kron,
    np.matmul: _contractions.matmul,
    np.nan_to_num: _conversion.nan_to_num,
    np.outer: _contractions.outer,
    np.round: _conversion.round,
}
"""The functions that are NumPy's for Tensors."""


def method_of(name: str, function: Any) -> Callable[..., Tensor]:
    """Return a method that calls what is a function of NumPy's for Tensors, with the Tensor first."""
    own = OWN[function]

    def method(self: Tensor, *args: Any) -> Tensor:
        return own(self, *args)  # type: ignore[no-any-return]  # a Tensor

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"Return `numpy.{function.__name__}` of the Tensor{' and another value' * (name in PAIRS)}."
    return method


def add(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return the sum with `alpha` times another value."""
    total: Tensor = self + scale_operand(other, alpha)
    return total


def sub(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return the difference from `alpha` times another value."""
    difference: Tensor = self - scale_operand(other, alpha)
    return difference


def clamp(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return the elements limited to an interval."""
    return self.clip(min, max)


def clone(self: Tensor) -> Tensor:
    """Return a copy, with the gradient following."""
    return self.copy()


def numel(self: Tensor) -> int:
    """Return the number of elements."""
    return self.size


def permute(self: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """Return the Tensor with its axes in another order; all of them have to be named."""
    order = axes if dims is None else dims
    return self.transpose(order[0] if len(order) == 1 and not isinstance(order[0], int) else order)


def view(self: Tensor, *shape: Any) -> Tensor:
    """Return the same elements in another shape, without copying; without arguments, as they are.

    Raises:
        DtypeError: a dtype is given: elements are never read as what they are not.
        ValueError: the elements do not lie in memory so that it can be done.

    >>> import wengert as wg
    >>> wg.tensor([1.0, 2.0, 3.0, 4.0]).view(2, -1)
    tensor([[1., 2.],
            [3., 4.]])
    """
    if len(shape) == 1 and isinstance(shape[0], type | str | np.dtype):
        needed = "a shape is needed, because elements are not read as others"
        raise DtypeError("view", f"the dtype {np.dtype(shape[0])}", needed, conversion_hint(self, shape[0]))
    return self.reshape(*shape, copy=False) if shape else self[...]


def conversion_hint(x: Tensor, dtype: Any) -> str:
    """Return what to write for elements that are to be read as others."""
    if x.dtype.kind == "c" and np.dtype(dtype).kind == "f":
        return "Write numpy.stack([x.real, x.imag], axis=-1), and reshape it"
    if x.dtype.kind == "f" and np.dtype(dtype).kind == "c":
        return "Write x[..., ::2] + 1j * x[..., 1::2]"
    return "Convert them with .astype"


NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""PyTorch's names of options, by NumPy's."""


def with_axis(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a method of PyTorch's that knows NumPy's names of its options, too."""

    @wraps(method)
    def either(self: Tensor, *args: Any, **options: Any) -> Tensor:
        renamed = {NAMES[key]: options.pop(key) for key in tuple(options) if key in NAMES}
        return method(self, *args, **renamed, **options)

    return either


@with_axis
def norm(self: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the norm of order `p` of all elements, or along axes, as PyTorch has it: no matrix norms but "fro".

    >>> import wengert as wg
    >>> wg.tensor([[3.0, 0.0], [0.0, 4.0]]).norm()
    tensor(5.)
    """
    axis = tuple(range(self.ndim)) if dim is None else dim
    axes = (operator.index(axis),) if not isinstance(axis, Sequence) else tuple(axis)
    found: Any
    if len(axes) == 1:
        found = np.linalg.norm(self, 2 if p == "fro" else p, axes[0], keepdim)
    else:
        order = tuple(i for i in range(self.ndim) if i not in [a % self.ndim for a in axes]) + axes
        rest = [self.shape[i] for i in order[: self.ndim - len(axes)]]
        found = np.linalg.norm(self.transpose(order).reshape([*rest, -1]), 2 if p == "fro" else p, -1)
        found = np.expand_dims(found, axes) if keepdim else found
    return cast(Tensor, found)


def special(name: str) -> Callable[..., Any]:
    """Return a function of `scipy.special` for Tensors."""
    from wengert.scipy import special as functions  # most programs do without

    return getattr(functions, name)  # type: ignore[no-any-return]  # a function


@with_axis
def softmax(self: Tensor, dim: Any) -> Tensor:
    """Return the exponentials divided by their sum along an axis."""
    return cast(Tensor, special("softmax")(self, dim))


@with_axis
def log_softmax(self: Tensor, dim: Any) -> Tensor:
    """Return the logarithm of `softmax`."""
    return cast(Tensor, special("log_softmax")(self, dim))


def sigmoid(self: Tensor) -> Tensor:
    """Return the logistic function of each element."""
    return cast(Tensor, special("expit")(self))


# Names that are not here

MISSING = """
absolute_ acosh_ addbmm addcdiv addcmul addmm addmv addr adjoint allclose amax amin aminmax angle arccos arccos_
arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_ argwhere as_strided
asinh_ assign assign_add at atan2_ atanh_ baddbmm bernoulli bernoulli_ bfloat16 bincount bitwise_and bitwise_and_
bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift
bitwise_right_shift_ bitwise_xor bitwise_xor_ block_until_ready bmm bool broadcast_to byte cat cdouble cfloat char
cholesky cholesky_solve chunk clamp_max clamp_max_ clamp_min clamp_min_ contiguous copy_to_host_async copysign
copysign_ corrcoef count_nonzero cov cpu cross cuda cummax cummin cumprod_ cumsum_ data data_ptr deg2rad deg2rad_ det
detach_ devices diag diag_embed diagflat diff digamma digamma_ dim dist divide_ double dsplit eig element_size elu eq_
equal erf erf_ erfc erfc_ erfinv erfinv_ expand expand_as fix fix_ flip fliplr flipud float float_power fmod_ frac
frac_ frexp gather gcd gcd_ ge_ gelu ger get_device greater greater_ greater_equal greater_equal_ gt_ H half heaviside
heaviside_ histc histogram hsplit hypot_ i0 i0_ igamma igamma_ igammac igammac_ index_add index_add_ index_copy
index_copy_ index_fill index_fill_ index_put index_put_ index_select int inverse is_complex is_contiguous is_cuda
is_floating_point is_nonzero is_same_size is_signed is_sparse isclose isneginf isposinf isreal kthvalue lcm lcm_ ldexp
ldexp_ le_ leaky_relu len lerp less less_ less_equal less_equal_ lgamma lgamma_ logaddexp logaddexp2 logcumsumexp
logdet logical_and_ logical_not_ logical_or_ logical_xor logical_xor_ logit logit_ logsumexp long lstsq lt_ lu
masked_fill masked_scatter masked_scatter_ masked_select matrix_exp matrix_power median mH mode moveaxis movedim msort
multinomial multiply_ mvlgamma nanmean nanmedian nanquantile nansum narrow ndimension ne_ negative_ nelement new
new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter nextafter_ normal_ not_equal not_equal_
pin_memory pinverse polygamma polygamma_ prelu ptp put_ qr quantile rad2deg rad2deg_ random_ relu relu_ renorm
repeat_interleave reshape_as resize_ retains_grad roll rot90 rsqrt rsqrt_ scatter scatter_ scatter_add scatter_add_
scatter_reduce select select_scatter set_ sgn sharding share_memory_ short sigmoid_ signbit silu sinc sinc_
slice_scatter slogdet softplus solve split split_with_sizes squeeze_ stop_gradient storage stride subtract_
sum_to_size svd swapaxes_ swapdims symeig t t_ take_along_dim tensor_split tile to to_dense to_sparse topk transpose_
triangular_solve tril tril_ triu triu_ true_divide true_divide_ type type_as unbind unflatten unfold uniform_ unique
unique_consecutive unsqueeze unsqueeze_ values vdot view_as vsplit weak_type where xlogy xlogy_ zero_grad
"""
"""Names of PyTorch's methods for which hints say what is written here."""
OF_NUMBERS = "bit_count bit_length hex is_integer to_bytes"
"""Names of methods of Python's numbers, likewise."""
OF_MEMORY = "base byteswap ctypes dump dumps getfield resize setfield setflags strides tofile"
OF_OPERATORS = "matvec"
"""What `scipy.sparse.linalg` looks for in what is no ndarray, when it is given a matrix."""


class OfNdarrays(MissingAttribute):
    """Be a name that Tensors have not; SciPy's functions get an error that names theirs."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Raise an AttributeError, or say to whoever calls SciPy what to use instead."""
        frame = sys._getframe(1)
        asked = None
        if instance is not None and str(frame.f_globals.get("__name__", "")).startswith("scipy."):
            asked = asked_for_array(frame)
        if asked is not None and asked.by_library:
            action = asked.action if innermost_trace(instance) is not None else "Give it the array, x.numpy()"
            needed = "an ndarray is needed, because SciPy takes it apart in memory"
            raise DtypeError("asarray", f"a Tensor of shape {instance.shape}", needed, action)
        return super().__get__(instance, owner)


WRITTEN = (add, sub, clamp, clone, numel, permute, view, norm, softmax, log_softmax, sigmoid)
METHODS: dict[str, Any] = {
    **{name: method_of(name, function) for name, function in (UNARY | MORE_UNARY | PAIRS).items()},
    **{method.__name__: method for method in WRITTEN},
    **{name: MissingAttribute("Tensor", name) for name in f"{MISSING} {OF_NUMBERS}".split()},
}
for _name, _method in METHODS.items():
    if not hasattr(Tensor, _name):  # those that ndarrays have, too, are NumPy's
        setattr(Tensor, _name, _method)
for _name in f"{OF_MEMORY} {OF_OPERATORS}".split():
    setattr(Tensor, _name, OfNdarrays("Tensor", _name))
