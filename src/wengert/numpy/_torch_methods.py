"""Methods of Tensors with PyTorch's names and PyTorch's meaning; names that are spelled otherwise here say how.

Where NumPy has a method of the same name, it is NumPy's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

import numpy as np

from wengert._otherwise import Otherwise
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError
from wengert.numpy import _contractions, _conversion
from wengert.numpy._in_place import BINARY, UNARY, scale_operand
from wengert.numpy._ufuncs import OF_UFUNCS

__all__: list[str] = []

MORE_UNARY: dict[str, Any] = {
    "absolute": np.absolute,
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "logical_not": np.logical_not,
    "negative": np.negative,
    "positive": np.positive,
}
MORE_BINARY: dict[str, Any] = {
    "atan2": np.arctan2,
    "divide": np.divide,
    "eq": np.equal,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmod": np.fmod,
    "ge": np.greater_equal,
    "gt": np.greater,
    "hypot": np.hypot,
    "inner": np.inner,
    "kron": np.kron,
    "le": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "lt": np.less,
    "matmul": np.matmul,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mm": np.matmul,
    "multiply": np.multiply,
    "mv": np.matmul,
    "ne": np.not_equal,
    "outer": np.outer,
    "subtract": np.subtract,
}
OTHERWISE: dict[str, str] = {
    "H": "x.conj().T",
    "addcdiv": "x + value * y / z",
    "addcmul": "x + value * y * z",
    "addmm": "x + y @ z",
    "allclose": "np.allclose(x, y)",
    "amax": "x.max(axis)",
    "amin": "x.min(axis)",
    "angle": "np.angle(x)",
    "arccos": "np.arccos(x)",
    "arcsin": "np.arcsin(x)",
    "arctan": "np.arctan(x)",
    "argwhere": "np.argwhere(x)",
    "assign": "x[...] = value",
    "assign_add": "x += value",
    "at": "x[i] = v or x[i] += v, which write into x",
    "baddbmm": "x + y @ z",
    "bernoulli": "wengert.random.bernoulli(key, x)",
    "bernoulli_": "x[...] = wengert.random.bernoulli(key, p, x.shape)",
    "bfloat16": "x.astype(np.float32)",
    "bincount": "np.bincount(x)",
    "block_until_ready": "x itself: results are there when a call returns",
    "bmm": "x @ y",
    "bool": "x.astype(bool)",
    "broadcast_to": "np.broadcast_to(x, shape)",
    "byte": "x.astype(np.uint8)",
    "cat": "np.concatenate([x, y], axis)",
    "cdouble": "x.astype(np.complex128)",
    "cfloat": "x.astype(np.complex64)",
    "char": "x.astype(np.int8)",
    "cholesky": "np.linalg.cholesky(x)",
    "chunk": "np.array_split(x, n, axis)",
    "clamp_max": "np.minimum(x, greatest)",
    "clamp_min": "np.maximum(x, least)",
    "contiguous": "np.ascontiguousarray(x)",
    "copy_to_host_async": "x itself: there is one device",
    "corrcoef": "np.corrcoef(x)",
    "count_nonzero": "np.count_nonzero(x, axis)",
    "cov": "np.cov(x)",
    "cpu": "x itself: there is one device",
    "cross": "np.cross(x, y)",
    "cuda": "x itself: there is one device",
    "cummax": "np.maximum.accumulate(x, axis)",
    "cummin": "np.minimum.accumulate(x, axis)",
    "data": "x.detach(), or write into x under wengert.no_grad()",
    "data_ptr": "x.numpy().ctypes.data",
    "deg2rad": "np.deg2rad(x)",
    "det": "np.linalg.det(x)",
    "detach_": "x = x.detach()",
    "devices": "x itself: there is one device",
    "diag": "np.diag(x)",
    "diag_embed": "x[..., None] * np.eye(x.shape[-1])",
    "diff": "np.diff(x)",
    "digamma": "wengert.scipy.special.digamma(x)",
    "dim": "x.ndim",
    "dist": "np.linalg.norm(x - y)",
    "double": "x.astype(np.float64)",
    "eig": "np.linalg.eig(x)",
    "element_size": "x.itemsize",
    "elu": "wengert.nn.functional.elu(x)",
    "equal": "np.array_equal(x, y)",
    "erf": "wengert.scipy.special.erf(x)",
    "erfc": "wengert.scipy.special.erfc(x)",
    "erfinv": "wengert.scipy.special.erfinv(x)",
    "expand": "np.broadcast_to(x, shape)",
    "expand_as": "np.broadcast_to(x, y.shape)",
    "flip": "np.flip(x, axis)",
    "fliplr": "np.fliplr(x)",
    "flipud": "np.flipud(x)",
    "float": "x.astype(np.float32)",
    "frac": "x - np.trunc(x)",
    "gather": "np.take_along_axis(x, indices, axis)",
    "gelu": "wengert.nn.functional.gelu(x)",
    "half": "x.astype(np.float16)",
    "heaviside": "np.heaviside(x, value)",
    "histc": "np.histogram(x, bins)",
    "index_add": "np.add.at(x, indices, values), which writes into x",
    "index_add_": "np.add.at(x, indices, values)",
    "index_copy": "x[indices] = values, which writes into x",
    "index_copy_": "x[indices] = values",
    "index_fill_": "x[indices] = value",
    "index_put": "x[indices] = values, which writes into x",
    "index_put_": "x[indices] = values",
    "index_select": "np.take(x, indices, axis)",
    "int": "x.astype(np.int32)",
    "inverse": "np.linalg.inv(x)",
    "is_complex": "x.dtype.kind == 'c'",
    "is_contiguous": "x.numpy().flags.c_contiguous",
    "is_cuda": "False: there is one device",
    "is_floating_point": "x.dtype.kind == 'f'",
    "is_same_size": "x.shape == y.shape",
    "is_sparse": "False: elements are dense",
    "isclose": "np.isclose(x, y)",
    "isreal": "np.isreal(x)",
    "kthvalue": "np.sort(x, axis)[..., k - 1]",
    "leaky_relu": "wengert.nn.functional.leaky_relu(x)",
    "len": "len(x)",
    "lerp": "x + weight * (y - x)",
    "lgamma": "wengert.scipy.special.gammaln(x)",
    "logaddexp": "np.logaddexp(x, y)",
    "logcumsumexp": "np.logaddexp.accumulate(x, axis)",
    "logdet": "np.linalg.slogdet(x)[1]",
    "logit": "wengert.scipy.special.logit(x)",
    "logsumexp": "wengert.scipy.special.logsumexp(x, axis)",
    "long": "x.astype(np.int64)",
    "lstsq": "np.linalg.lstsq(x, y)",
    "lu": "wengert.scipy.linalg.lu(x)",
    "mH": "x.conj().mT",
    "masked_fill": "np.where(mask, value, x)",
    "masked_scatter": "x[mask] = values, which writes into x",
    "masked_scatter_": "x[mask] = values",
    "masked_select": "x[mask]",
    "matrix_power": "np.linalg.matrix_power(x, n)",
    "median": "np.median(x, axis)",
    "movedim": "np.moveaxis(x, source, destination)",
    "multinomial": "wengert.random.categorical",
    "nanmean": "np.nanmean(x, axis)",
    "nanmedian": "np.nanmedian(x, axis)",
    "nansum": "np.nansum(x, axis)",
    "narrow": "x[start:start + length]",
    "ndimension": "x.ndim",
    "negative_": "x.neg_()",
    "nelement": "x.size",
    "new": "wengert.tensor(data)",
    "new_empty": "np.empty_like(x, shape=shape)",
    "new_full": "np.full_like(x, value, shape=shape)",
    "new_ones": "np.ones_like(x, shape=shape)",
    "new_tensor": "wengert.tensor(data)",
    "new_zeros": "np.zeros_like(x, shape=shape)",
    "normal_": "x[...] = wengert.random.normal(key, mean, deviation, x.shape)",
    "pin_memory": "x itself: there is one device",
    "pinverse": "np.linalg.pinv(x)",
    "put_": "np.put(x, indices, values)",
    "qr": "np.linalg.qr(x)",
    "quantile": "np.quantile(x, q, axis)",
    "rad2deg": "np.rad2deg(x)",
    "random_": "x[...] = wengert.random.integers(key, low, high, x.shape)",
    "relu": "wengert.nn.functional.relu(x)",
    "repeat_interleave": "np.repeat(x, n, axis)",
    "reshape_as": "x.reshape(y.shape)",
    "roll": "np.roll(x, shift, axis)",
    "rot90": "np.rot90(x)",
    "rsqrt": "1 / np.sqrt(x)",
    "scatter": "np.put_along_axis(x, indices, values, axis), which writes into x",
    "scatter_": "np.put_along_axis(x, indices, values, axis)",
    "scatter_add": "np.add.at(x, indices, values), which writes into x",
    "scatter_add_": "np.add.at(x, indices, values)",
    "select": "np.take(x, index, axis)",
    "set_": "x[...] = values",
    "sharding": "x itself: there is one device",
    "share_memory_": "x itself: threads share it",
    "short": "x.astype(np.int16)",
    "silu": "wengert.nn.functional.silu(x)",
    "sinc": "np.sinc(x)",
    "slogdet": "np.linalg.slogdet(x)",
    "softplus": "wengert.nn.functional.softplus(x)",
    "solve": "np.linalg.solve(x, y)",
    "split": "np.split(x, indices, axis)",
    "stop_gradient": "x.detach()",
    "storage": "x.numpy()",
    "stride": "x.numpy().strides, in bytes",
    "svd": "np.linalg.svd(x)",
    "swapdims": "np.swapaxes(x, first, second)",
    "symeig": "np.linalg.eigh(x)",
    "t": "x.T",
    "take_along_dim": "np.take_along_axis(x, indices, axis)",
    "tile": "np.tile(x, repetitions)",
    "to": "x.astype(dtype); there is one device",
    "to_dense": "x itself: elements are dense",
    "to_sparse": "a matrix of scipy.sparse, which is constant",
    "topk": "np.sort(x, axis)[..., -k:]",
    "triangular_solve": "wengert.scipy.linalg.solve_triangular(a, x)",
    "tril": "np.tril(x)",
    "triu": "np.triu(x)",
    "type": "x.astype(dtype)",
    "type_as": "x.astype(y.dtype)",
    "unbind": "list(x)",
    "unflatten": "x.reshape(shape)",
    "unfold": "np.lib.stride_tricks.sliding_window_view(x, length, axis)",
    "uniform_": "x[...] = wengert.random.uniform(key, low, high, x.shape)",
    "unique": "np.unique(x)",
    "unsqueeze": "np.expand_dims(x, axis)",
    "vdot": "np.vdot(x, y)",
    "view_as": "x.reshape(y.shape)",
    "weak_type": "x.weak",
    "where": "np.where(condition, x, y)",
    "zero_grad": "x.grad = None",
}
"""What is written here for names of PyTorch's methods."""


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


PAIRS = {**BINARY, **MORE_BINARY}


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
        raise DtypeError("view", f"the dtype {np.dtype(shape[0])}", needed, converted(self, shape[0]))
    return self.reshape(*shape, copy=False) if shape else self[...]


def converted(x: Tensor, dtype: Any) -> str:
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


WRITTEN = (add, sub, clamp, clone, numel, permute, view, norm, softmax, log_softmax, sigmoid)
METHODS: dict[str, Any] = {
    **{name: method_of(name, function) for name, function in (UNARY | MORE_UNARY | PAIRS).items()},
    **{method.__name__: method for method in WRITTEN},
    **{name: Otherwise("Tensor", name, written) for name, written in OTHERWISE.items()},
}
for _name, _method in METHODS.items():
    if not hasattr(Tensor, _name):  # those that ndarrays have, too, are NumPy's
        setattr(Tensor, _name, _method)
