"""What modules above give to Tensors, for type checkers: operators, indexing, the tape API, methods.

Those modules set the members on `Tensor` when they are imported. At run time the class here is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from wengert.core.values.tensor import Tensor
    from wengert.numpy._methods import ArrayMethods
else:
    ArrayMethods = object

__all__ = ["ArrayLike", "Members"]

ArrayLike: TypeAlias = Any


class Members(ArrayMethods):
    """Declare the members of Tensors that other modules define."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def dtype(self) -> np.dtype[Any]:
            """The NumPy dtype of the elements."""

        # The tape API (see wengert.traces.members)

        _set_shape: Callable[[Any], None]

        @property
        def grad(self) -> Tensor | None:
            """The gradient that `backward` has accumulated."""

        @grad.setter
        def grad(self, value: Tensor | None) -> None: ...
        @property
        def requires_grad(self) -> bool:
            """Whether operations on the Tensor are recorded."""

        @requires_grad.setter
        def requires_grad(self, value: bool) -> None: ...
        @property
        def is_leaf(self) -> bool:
            """Whether the Tensor was not computed by a recorded operation."""

        @property
        def grad_fn(self) -> Any:
            """The recorded operation that computed the Tensor; None for leaves."""

        def backward(
            self,
            gradient: ArrayLike | None = None,
            retain_graph: bool | None = None,
            create_graph: bool = False,
            inputs: Any = None,
        ) -> None:
            """Add the gradients of this Tensor into the `.grad` of leaves."""

        def detach(self) -> Tensor:
            """Return the same value as a plain Tensor."""

        def requires_grad_(self, requires_grad: bool = True) -> Tensor:
            """Make the Tensor a leaf that gradients are taken with respect to."""

        def retain_grad(self) -> None:
            """Keep the gradient of a Tensor that is not a leaf."""

        def register_hook(self, hook: Callable[[Any], Any]) -> Any:
            """Call a function with the complete cotangent in each sweep."""

        def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
            """Call a function after `.grad` has changed."""

        # Operators (see wengert.traces.operators)

        def __add__(self, other: ArrayLike) -> Tensor: ...
        def __radd__(self, other: ArrayLike) -> Tensor: ...
        def __iadd__(self, other: ArrayLike) -> Tensor: ...
        def __sub__(self, other: ArrayLike) -> Tensor: ...
        def __rsub__(self, other: ArrayLike) -> Tensor: ...
        def __isub__(self, other: ArrayLike) -> Tensor: ...
        def __mul__(self, other: ArrayLike) -> Tensor: ...
        def __rmul__(self, other: ArrayLike) -> Tensor: ...
        def __imul__(self, other: ArrayLike) -> Tensor: ...
        def __truediv__(self, other: ArrayLike) -> Tensor: ...
        def __rtruediv__(self, other: ArrayLike) -> Tensor: ...
        def __itruediv__(self, other: ArrayLike) -> Tensor: ...
        def __floordiv__(self, other: ArrayLike) -> Tensor: ...
        def __rfloordiv__(self, other: ArrayLike) -> Tensor: ...
        def __ifloordiv__(self, other: ArrayLike) -> Tensor: ...
        def __mod__(self, other: ArrayLike) -> Tensor: ...
        def __rmod__(self, other: ArrayLike) -> Tensor: ...
        def __imod__(self, other: ArrayLike) -> Tensor: ...
        def __pow__(self, other: ArrayLike) -> Tensor: ...
        def __rpow__(self, other: ArrayLike) -> Tensor: ...
        def __ipow__(self, other: ArrayLike) -> Tensor: ...
        def __matmul__(self, other: ArrayLike) -> Tensor: ...
        def __rmatmul__(self, other: ArrayLike) -> Tensor: ...
        def __imatmul__(self, other: ArrayLike) -> Tensor: ...
        def __divmod__(self, other: ArrayLike) -> tuple[Tensor, Tensor]: ...
        def __rdivmod__(self, other: ArrayLike) -> tuple[Tensor, Tensor]: ...
        def __and__(self, other: ArrayLike) -> Tensor: ...
        def __rand__(self, other: ArrayLike) -> Tensor: ...
        def __iand__(self, other: ArrayLike) -> Tensor: ...
        def __or__(self, other: ArrayLike) -> Tensor: ...
        def __ror__(self, other: ArrayLike) -> Tensor: ...
        def __ior__(self, other: ArrayLike) -> Tensor: ...
        def __xor__(self, other: ArrayLike) -> Tensor: ...
        def __rxor__(self, other: ArrayLike) -> Tensor: ...
        def __ixor__(self, other: ArrayLike) -> Tensor: ...
        def __lshift__(self, other: ArrayLike) -> Tensor: ...
        def __rlshift__(self, other: ArrayLike) -> Tensor: ...
        def __ilshift__(self, other: ArrayLike) -> Tensor: ...
        def __rshift__(self, other: ArrayLike) -> Tensor: ...
        def __rrshift__(self, other: ArrayLike) -> Tensor: ...
        def __irshift__(self, other: ArrayLike) -> Tensor: ...
        def __lt__(self, other: ArrayLike) -> Tensor: ...
        def __le__(self, other: ArrayLike) -> Tensor: ...
        def __gt__(self, other: ArrayLike) -> Tensor: ...
        def __ge__(self, other: ArrayLike) -> Tensor: ...
        def __eq__(self, other: ArrayLike) -> Tensor: ...  # type: ignore[override]  # by element, as in NumPy
        def __ne__(self, other: ArrayLike) -> Tensor: ...  # type: ignore[override]  # by element, as in NumPy
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: ArrayLike) -> None: ...

        # Methods that work in place (see wengert.numpy._in_place)

        abs_: Callable[..., Tensor]
        acos_: Callable[..., Tensor]
        add_: Callable[..., Tensor]
        addcdiv_: Callable[..., Tensor]
        addcmul_: Callable[..., Tensor]
        asin_: Callable[..., Tensor]
        atan_: Callable[..., Tensor]
        ceil_: Callable[..., Tensor]
        clamp_: Callable[..., Tensor]
        clip_: Callable[..., Tensor]
        conj_: Callable[..., Tensor]
        copy_: Callable[..., Tensor]
        cos_: Callable[..., Tensor]
        cosh_: Callable[..., Tensor]
        div_: Callable[..., Tensor]
        exp2_: Callable[..., Tensor]
        exp_: Callable[..., Tensor]
        expm1_: Callable[..., Tensor]
        fill_: Callable[..., Tensor]
        floor_: Callable[..., Tensor]
        floor_divide_: Callable[..., Tensor]
        lerp_: Callable[..., Tensor]
        log10_: Callable[..., Tensor]
        log1p_: Callable[..., Tensor]
        log2_: Callable[..., Tensor]
        log_: Callable[..., Tensor]
        masked_fill_: Callable[..., Tensor]
        mul_: Callable[..., Tensor]
        nan_to_num_: Callable[..., Tensor]
        neg_: Callable[..., Tensor]
        pow_: Callable[..., Tensor]
        reciprocal_: Callable[..., Tensor]
        remainder_: Callable[..., Tensor]
        round_: Callable[..., Tensor]
        sign_: Callable[..., Tensor]
        sin_: Callable[..., Tensor]
        sinh_: Callable[..., Tensor]
        sqrt_: Callable[..., Tensor]
        square_: Callable[..., Tensor]
        sub_: Callable[..., Tensor]
        tan_: Callable[..., Tensor]
        tanh_: Callable[..., Tensor]
        trunc_: Callable[..., Tensor]
        zero_: Callable[..., Tensor]

        # Methods with PyTorch's names (see wengert.numpy._torch_methods)

        abs: Callable[..., Tensor]
        absolute: Callable[..., Tensor]
        acos: Callable[..., Tensor]
        acosh: Callable[..., Tensor]
        add: Callable[..., Tensor]
        asin: Callable[..., Tensor]
        asinh: Callable[..., Tensor]
        atan: Callable[..., Tensor]
        atan2: Callable[..., Tensor]
        atanh: Callable[..., Tensor]
        ceil: Callable[..., Tensor]
        clamp: Callable[..., Tensor]
        clone: Callable[..., Tensor]
        cos: Callable[..., Tensor]
        cosh: Callable[..., Tensor]
        div: Callable[..., Tensor]
        divide: Callable[..., Tensor]
        eq: Callable[..., Tensor]
        exp: Callable[..., Tensor]
        exp2: Callable[..., Tensor]
        expm1: Callable[..., Tensor]
        floor: Callable[..., Tensor]
        floor_divide: Callable[..., Tensor]
        fmax: Callable[..., Tensor]
        fmin: Callable[..., Tensor]
        fmod: Callable[..., Tensor]
        ge: Callable[..., Tensor]
        gt: Callable[..., Tensor]
        hypot: Callable[..., Tensor]
        inner: Callable[..., Tensor]
        isfinite: Callable[..., Tensor]
        isinf: Callable[..., Tensor]
        isnan: Callable[..., Tensor]
        kron: Callable[..., Tensor]
        le: Callable[..., Tensor]
        log: Callable[..., Tensor]
        log10: Callable[..., Tensor]
        log1p: Callable[..., Tensor]
        log2: Callable[..., Tensor]
        log_softmax: Callable[..., Tensor]
        logical_and: Callable[..., Tensor]
        logical_not: Callable[..., Tensor]
        logical_or: Callable[..., Tensor]
        lt: Callable[..., Tensor]
        matmul: Callable[..., Tensor]
        maximum: Callable[..., Tensor]
        minimum: Callable[..., Tensor]
        mm: Callable[..., Tensor]
        mul: Callable[..., Tensor]
        multiply: Callable[..., Tensor]
        mv: Callable[..., Tensor]
        nan_to_num: Callable[..., Tensor]
        ne: Callable[..., Tensor]
        neg: Callable[..., Tensor]
        negative: Callable[..., Tensor]
        norm: Callable[..., Tensor]
        numel: Callable[[], int]
        outer: Callable[..., Tensor]
        permute: Callable[..., Tensor]
        positive: Callable[..., Tensor]
        pow: Callable[..., Tensor]
        reciprocal: Callable[..., Tensor]
        remainder: Callable[..., Tensor]
        sigmoid: Callable[..., Tensor]
        sign: Callable[..., Tensor]
        sin: Callable[..., Tensor]
        sinh: Callable[..., Tensor]
        softmax: Callable[..., Tensor]
        sqrt: Callable[..., Tensor]
        square: Callable[..., Tensor]
        sub: Callable[..., Tensor]
        subtract: Callable[..., Tensor]
        tan: Callable[..., Tensor]
        tanh: Callable[..., Tensor]
        trunc: Callable[..., Tensor]
        view: Callable[..., Tensor]
