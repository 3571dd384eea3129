"""Jet traces: Taylor mode. Each value carries its truncated power series.

The coefficients of a result follow from the rule that the primitive declares: for y = f(x), y' = d(x', y, x) as
series, so coefficient k + 1 of y is coefficient k of the right-hand side over k + 1. That refers to earlier
coefficients of y only, and series are lazy, so the rule is called once on the very series that it defines; sine and
cosine, whose rules refer to each other, meet in a table. Each coefficient of a product costs O(k), so order n costs
O(n^2). Only products, quotients and powers have recurrences of their own (Griewank and Walther, Evaluating
Derivatives, 2008, section 13.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.aval import Aval, aval_of, is_differentiable
from wengert.core.dispatch import apply
from wengert.core.primitive import Bilinear, Elementwise, Linear, Primitive
from wengert.core.tensor import Tensor, make_tensor, settled, wrapped_constant
from wengert.core.trace import Trace
from wengert.errors import EscapedValueError, GraphError, UsageError, describe
from wengert.traces.dual import propagate

__all__ = ["Jet", "Series"]


class Series:
    """Hold the coefficients known so far, and how to compute the next."""

    __slots__ = ("compute", "known")

    def __init__(self, known: list[Any], compute: Callable[[int], Any]) -> None:
        self.known = known
        self.compute = compute

    def __getitem__(self, k: int) -> Any:
        while len(self.known) <= k:
            self.known.append(settled(self.compute(len(self.known))))
        return self.known[k]


class Jet(Trace):
    """Propagate power series up to an order.

    The value slot of a Tensor of this trace holds its aval, the node its series.
    """

    __slots__ = ("depth", "ended", "memo", "order", "owner_name")

    def __init__(self, level: int, order: int, owner_name: str) -> None:
        super().__init__(level)
        self.order = order
        self.owner_name = owner_name
        self.ended = False
        self.depth = 0
        self.memo: dict[Any, tuple[Tensor, tuple[Any, ...]]] = {}

    def end(self) -> None:
        """Refuse operations from now on: the transformation is over."""
        self.ended = True
        self.memo.clear()

    def value_below(self, operand: Any) -> Any:
        """Return an operand's zeroth coefficient."""
        if type(operand) is Tensor and operand._trace is self:
            return operand._node[0]
        return super().value_below(operand)

    def below(self, tensor: Tensor) -> Any:
        """Return the zeroth coefficient."""
        return tensor._node[0]

    def owner(self, tensor: Tensor) -> Any:
        """Return the zeroth coefficient."""
        return tensor._node[0]

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return the same value; series are never overwritten."""
        return make_tensor(tensor._value, self, tensor._node)

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says."""
        return f"series to order {self.order}"

    def state(self, tensor: Tensor) -> Any:
        """Refuse: a series means nothing outside its transformation."""
        raise GraphError(
            describe(
                "copy or pickle",
                f"a Tensor of {self.owner_name}",
                "a plain Tensor is needed",
                "Use wengert.stop_gradient first",
            )
        )

    def tensor(self, aval: Aval, series: Series) -> Tensor:
        """Return a Tensor with a series."""
        return make_tensor(aval, self, series)

    def series_of(self, operand: Any) -> Series | None:
        """Return the series of an operand; None if it is a constant to this trace."""
        return operand._node if type(operand) is Tensor and operand._trace is self else None

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Compute the series of a primitive's result: at once, unless a rule is still defining it."""
        if self.ended:
            raise self.escaped()
        if primitive.kind == "constant":
            return wrapped_constant(apply(primitive, *map(self.value_below, operands), **params))
        self.depth += 1
        try:
            result = self.build(primitive, operands, params)
        finally:
            self.depth -= 1
        if self.depth == 0:
            for item in result if isinstance(result, tuple) else (result,):
                if item._trace is self:
                    item._node[self.order]
        return result

    def build(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Return the result with its series, by the kind of the primitive."""
        if isinstance(primitive, Linear):
            return self.linear(primitive, operands, params)
        if isinstance(primitive, Bilinear) or primitive.name == "multiply":
            return self.product(primitive, operands, params)
        if primitive.name == "divide":
            return self.quotient(primitive, operands)
        if primitive.name in ("power", "float_power"):
            return self.power(primitive, operands)
        return self.derived(primitive, operands, params)

    def evaluated(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> tuple[Aval, Any]:
        """Return the aval of a result, and its zeroth coefficient, None if that can wait."""
        if isinstance(primitive, Elementwise) and not params:
            avals = [aval_of(x) for x in operands]
            shape = np.broadcast_shapes(*(aval.shape for aval in avals))
            floats = [
                x if isinstance(x, int | float | complex) else aval.dtype
                for x, aval in zip(operands, avals, strict=True)
            ]
            if all(aval.dtype.kind in "fc" for aval in avals):
                real = primitive.name == "absolute"
                dtype = np.result_type(*floats)
                return Aval(shape, np.empty((), dtype).real.dtype if real else dtype), None
        out = settled(apply(primitive, *map(self.value_below, operands), **params))
        return Aval(out.shape, out.dtype), out

    def first(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Return the zeroth coefficient of a result."""
        return settled(apply(primitive, *map(self.value_below, operands), **params))

    def linear(self, primitive: Linear, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
        """Apply a linear operation coefficient by coefficient."""
        count = len(operands) if primitive.variadic else len(primitive.transposes)
        constants = [self.value_below(x) for x in operands[count:]]
        series = [self.series_of(x) for x in operands[:count]]
        out = self.first(primitive, operands, params)
        if all(s is None for s in series):
            return wrapped_constant(out)  # type: ignore[no-any-return]
        avals = [aval_of(x) for x in operands[:count]]

        def compute(k: int) -> Any:
            terms = [np.zeros(a.shape, a.dtype)[()] if s is None else s[k] for s, a in zip(series, avals, strict=True)]
            return apply(primitive, *terms, *constants, **params)

        return self.tensor(Aval(out.shape, out.dtype), Series([out], compute))

    def product(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
        """Convolve the coefficients of two factors."""
        aval, out = self.evaluated(primitive, operands, params)
        a, b = map(self.series_of, operands)
        x, y = map(self.value_or_none, operands)

        def compute(k: int) -> Any:
            if a is None or b is None:
                return apply(primitive, x if a is None else a[k], y if b is None else b[k], **params)
            return added([apply(primitive, a[j], b[k - j], **params) for j in range(k + 1)])

        return self.tensor(aval, Series([] if out is None else [out], compute))

    def value_or_none(self, operand: Any) -> Any:
        """Return the value of a constant operand."""
        return None if self.series_of(operand) is not None else self.value_below(operand)

    def quotient(self, primitive: Primitive, operands: Sequence[Any]) -> Tensor:
        """Divide series: y = a / b gives b_0 y_k = a_k - sum of b_j y_{k-j}."""
        aval, _ = self.evaluated(primitive, operands, {})
        a, b = map(self.series_of, operands)
        y = self.value_or_none(operands[1])

        def compute(k: int) -> Any:
            if k == 0:
                return self.first(primitive, operands, {})
            known = out.known
            top = a[k] if a is not None else 0.0
            if b is None:
                return top / y
            return (top - added([b[j] * known[k - j] for j in range(1, k + 1)])) / b[0]

        out = Series([], compute)
        return self.tensor(aval, out)

    def power(self, primitive: Primitive, operands: Sequence[Any]) -> Tensor:
        """Raise a series to a power: x y' = r y x' for a constant exponent, exp(r log x) for a varying one."""
        x, r = operands
        base, exponent = self.series_of(x), self.series_of(r)
        if base is None or exponent is not None:
            return np.exp(r * np.log(x))  # type: ignore[no-any-return]
        if isinstance(r, int | float) and r == int(r) and 0 <= r <= 64:
            return self.integer_power(primitive, x, r)
        aval, _ = self.evaluated(primitive, operands, {})
        r = self.value_below(r)

        def compute(k: int) -> Any:
            if k == 0:
                return self.first(primitive, operands, {})
            known = out.known
            return added([(r * j - (k - j)) * base[j] * known[k - j] for j in range(1, k + 1)]) / (k * base[0])

        out = Series([], compute)
        return self.tensor(aval, out)

    def integer_power(self, primitive: Primitive, x: Any, r: float) -> Tensor:
        """Raise a series to a small whole power by squaring, which is right at zero too."""
        aval, _ = self.evaluated(primitive, (x, r), {})
        result: Any = None
        square, rest = x, int(r)
        while rest:
            if rest & 1:
                result = square if result is None else result * square
            rest >>= 1
            if rest:
                square = square * square
        zero = np.zeros(aval.shape, aval.dtype)[()]
        first = self.first(primitive, (x, r), {})
        return self.tensor(aval, Series([first], lambda k: zero if result is None else result._node[k]))

    def derived(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Integrate the primitive's own rule."""
        series = [self.series_of(x) for x in operands]
        sources = tuple(x if s is None else s for x, s in zip(operands, series, strict=True))
        key = (primitive, *map(id, sources), repr(sorted(params.items())))
        if key in self.memo:
            known = self.memo[key][0]
            return make_tensor(known._value, self, known._node)
        if primitive.outputs != 1:
            raise self.refused(primitive)
        aval, out0 = self.evaluated(primitive, operands, params)
        if not is_differentiable(aval.dtype):
            return wrapped_constant(self.first(primitive, operands, params))
        if isinstance(primitive, Elementwise) and self.affine(primitive, series):
            return self.tensor(aval, self.affine_series(primitive, operands, series, params, aval))

        def compute(k: int) -> Any:
            return self.first(primitive, operands, params) if k == 0 else rates[k - 1] / k

        result = self.tensor(aval, Series([] if out0 is None else [out0], compute))
        self.memo[key] = (result, sources)
        tangents = [None if s is None else self.rate(x, s) for x, s in zip(operands, series, strict=True)]
        moved = propagate(primitive, tangents, result, operands, params)
        if moved is None or self.series_of(moved) is None:
            constant = np.broadcast_to(0.0 if moved is None else self.value_below(moved), aval.shape)
            rates: Any = Series([constant], lambda k: np.zeros(aval.shape, aval.dtype)[()])
        else:
            rates = self.spread(moved, aval.shape)
        return result

    def rate(self, operand: Any, series: Series) -> Tensor:
        """Return the derivative of an operand's series."""
        return self.tensor(aval_of(operand), Series([], lambda k: series[k + 1] * (k + 1)))

    def spread(self, moved: Tensor, shape: tuple[int, ...]) -> Series:
        """Return the series of a rule's result, in the full shape."""
        series: Series = moved._node
        if moved.shape == shape:
            return series
        return Series([], lambda k: np.broadcast_to(series[k], shape))

    @staticmethod
    def affine(primitive: Elementwise, series: Sequence[Series | None]) -> bool:
        """Tell whether the rules need neither the output nor any operand that varies."""
        varying = [i for i, s in enumerate(series) if s is not None]
        return all(
            primitive.rules[i] is None or not (primitive.needs_out(i) or any(primitive.needs(i, j) for j in varying))
            for i in varying
        )

    def affine_series(
        self,
        primitive: Elementwise,
        operands: Sequence[Any],
        series: Sequence[Series | None],
        params: Mapping[str, Any],
        aval: Aval,
    ) -> Series:
        """Apply the rules to the coefficients themselves."""
        constants = [self.value_or_none(x) for x in operands]

        def compute(k: int) -> Any:
            if k == 0:
                return self.first(primitive, operands, params)
            terms = []
            for rule, s in zip(primitive.rules, series, strict=True):
                if rule is not None and s is not None:
                    terms.append(rule(s[k], None, *constants, **params))
            found = added(terms) if terms else np.zeros(aval.shape, aval.dtype)[()]
            return found if found.shape == aval.shape else np.broadcast_to(found, aval.shape)

        return Series([], compute)

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Re-bind a Tensor to a series with a part of each coefficient replaced."""
        base = make_tensor(handle._value, handle._trace, handle._node)
        base._kept = True
        result = self.process(primitive, (base, *operands), params)
        handle._value, handle._trace, handle._node = result._value, result._trace, result._node

    def refused(self, primitive: Primitive) -> UsageError:
        """Return the error about a primitive without power series."""
        return UsageError(
            describe(
                "taylor",
                f"{primitive.name}, a primitive with several results",
                "functions of elementwise, linear and bilinear primitives are needed",
                "Rewrite the function, or use nested wengert.jvp",
            )
        )

    def escaped(self) -> EscapedValueError:
        """Return the error about a value used after its transformation ended."""
        return EscapedValueError(
            describe(
                self.owner_name,
                "a value that escaped",
                "values of a transformation may be used only until it ends",
                "Return it from the function",
            )
        )


def added(terms: Sequence[Any]) -> Any:
    """Return the sum of some terms."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result
