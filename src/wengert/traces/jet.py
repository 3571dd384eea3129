"""Jet traces: Taylor mode. Each value carries its truncated power series.

The coefficients of a result follow from the rule that the primitive declares: for y = f(x), y' = d(x', y, x) as
series, so coefficient k + 1 of y is coefficient k of the right-hand side over k + 1. That refers to earlier
coefficients of y only, and series are lazy, so the rule is called once on the very series that it defines; sine and
cosine, whose rules refer to each other, meet in a table that lives while one operation of the user's is computed.
Each coefficient of a product costs O(k), so order n costs O(n^2). Only products, quotients and powers have
recurrences of their own (Griewank and Walther, Evaluating Derivatives, 2008, section 13.2).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import CodeType
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import caller
from wengert.core.memory.buffers import own_memory
from wengert.core.memory.memory_layout import Strides, strides_of
from wengert.core.memory.views import current, share
from wengert.core.primitives.cotangent import guard, match_dtype
from wengert.core.primitives.kinds import Elementwise, Linear, Multilinear
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.structured import Passed, Structured
from wengert.core.values.aval import Aval, aval_of, is_differentiable, is_number, strong, zero_of
from wengert.core.values.dispatch import apply, as_tensor, weaken
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import (
    Tensor,
    is_staged,
    make_tensor,
    raw,
    unwrap_plain,
    wrapped_constant,
    wrapped_constants,
)
from wengert.primitives.arithmetic import divide
from wengert.primitives.powers import EVEN, ODD
from wengert.traces.dual import propagate
from wengert.traces.grad_modes import is_stopped
from wengert.traces.monomials import (
    LONGEST_CHAIN,
    ChainStep,
    MonomialFactor,
    may_continue,
    monomial_of,
    origin_of,
    power_value,
    square_of,
    turned_power,
    value_of,
    view_of,
)
from wengert.traces.steepness import joins_infinity, may_be_infinite
from wengert.traces.transient import Transient


class Series:
    """Hold the coefficients known so far, how to compute the next, and where in the user's program that was said.

    `degree` is that of a polynomial, whose further coefficients are structural zeros, and infinite otherwise. What a
    rule makes on the way has no place. `origin` is the operation that made it, if it may be part of a monomial; see
    `wengert.traces.monomials`.
    """

    __slots__ = ("compute", "degree", "known", "origin", "place")

    def __init__(
        self,
        known: list[Any],
        compute: Callable[[int], Any],
        degree: float = math.inf,
        place: tuple[CodeType | None, int] = (None, 0),
    ) -> None:
        self.known = known
        self.compute = compute
        self.degree = degree
        self.place = place
        self.origin: ChainStep | None = None

    def __getitem__(self, k: int) -> Any:
        while len(self.known) <= k:
            self.known.append(unwrap_plain(self.compute(len(self.known))))
        return self.known[k]


class Jet(Transient):
    """Propagate power series up to an order.

    The value slot of a Tensor of this trace holds its aval, the node its series. It is `steep` once a coefficient was
    infinite where a value is finite, or may have been: from then on 0 times infinity is 0 in products of coefficients.
    It is `masked` as dual traces are.
    """

    __slots__ = ("depth", "masked", "memo", "order", "place", "steep")

    def __init__(self, level: int, order: int, label: str | Callable[[], str]) -> None:
        super().__init__(level, label)
        self.place = caller()
        self.order = order
        self.depth = 0
        self.masked = self.steep = False
        self.memo: dict[Any, tuple[Any, Any]] = {}

    def end(self) -> None:
        """Refuse operations from now on: the transformation is over."""
        super().end()
        self.memo.clear()

    def made_at(self, tensor: Tensor) -> tuple[CodeType, int]:
        """Return where the series was made; for those that a sweep made, where the transformation was asked for."""
        code, offset = tensor._node.place
        return self.place if code is None else (code, offset)

    def value_below(self, operand: Any) -> Any:
        """Return an operand's zeroth coefficient."""
        if type(operand) is Tensor and operand._trace is self:
            return operand._node[0]
        return super().value_below(operand)

    def below(self, tensor: Tensor) -> Any:
        """Return the zeroth coefficient."""
        return tensor._node[0]

    owner = below

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return the same value; series are never overwritten."""
        return make_tensor(tensor._value, self, tensor._node)

    def strides(self, tensor: Tensor) -> Strides:
        """Return the strides of the zeroth coefficient."""
        return strides_of(tensor._node[0])

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says."""
        return f"series to order {self.order}"

    def tensor(self, aval: Aval, series: Series) -> Tensor:
        """Return a Tensor with a series."""
        return make_tensor(aval, self, series)

    def series_of(self, operand: Any) -> Series | None:
        """Return the series of an operand; None if it is a constant to this trace."""
        return operand._node if type(operand) is Tensor and operand._trace is self else None

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Compute the value of a primitive's result, and its series: at once, unless for a rule of another one."""
        if self.ended:
            self.require_alive(operands)
        if SPECIAL and is_stopped(self):
            return wrapped_constants(apply(primitive, *map(self.value_below, operands), **params))
        if isinstance(primitive, Structured):
            return self.apply_structured(primitive, operands, params)
        out = apply(primitive, *map(self.value_below, operands), **params)
        if primitive.kind == "constant":
            return wrapped_constants(out)
        out = tuple(map(unwrap_plain, out)) if isinstance(out, tuple) else unwrap_plain(out)
        if primitive.joins and not self.masked:
            self.masked = joins_infinity(list(map(self.value_below, operands)), list(map(self.series_of, operands)))
        self.depth += 1
        try:
            result = self.build(primitive, operands, params, out)
            if self.masked and isinstance(primitive, Elementwise) and result._trace is self:
                result = self.keep_still(result, [s for s in map(self.series_of, operands) if s is not None])
            if primitive.outputs == 1 and result._trace is self:
                self.note_origin(result, primitive, operands, params)
            if self.depth == 1:
                self.complete(primitive, result)
        finally:
            self.depth -= 1
            if not self.depth:
                self.memo.clear()
        return result

    def note_origin(
        self, result: Tensor, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> None:
        """Note what made a result that may be part of a monomial, as it is now: handles may be written to."""
        step = self.step(primitive, operands, result, params)
        if step is not None and step.depth <= LONGEST_CHAIN:
            result._node.origin = step

    def step(
        self, primitive: Primitive, operands: Sequence[Any], out: Any, params: Mapping[str, Any]
    ) -> ChainStep | None:
        """Return an operation as its result may remember it; None of what makes no part of a monomial."""
        if not may_continue(primitive) or primitive.outputs != 1:
            return None
        series = list(map(self.series_of, operands))
        depth = max(s.origin.depth if s is not None and s.origin is not None else 0 for s in series)
        same = len(operands) == 2 and operands[0] is operands[1]
        if not (depth or same or primitive.raises or primitive.degree or primitive.square):
            return None
        return ChainStep(
            primitive, params, list(map(self.snapshot, operands)), series, out, aval_of(out).shape, depth + 1
        )

    def snapshot(self, operand: Any) -> Any:
        """Return an operand as it is now."""
        if type(operand) is Tensor:
            own = operand._trace is self
            return make_tensor(operand._value, self, operand._node) if own else share(operand)
        return operand.copy(order="K") if type(operand) is np.ndarray else operand

    def past_kink(
        self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], out: Any
    ) -> Tensor | None:
        """Return the monomial that an operation ends a chain of, as a product of powers; None of others."""
        step = self.step(primitive, operands, out, params)
        if step is None or step.depth < 2 or aval_of(out).dtype.kind != "f":
            return None
        factors = monomial_of(step, origin_of)
        if factors is None:
            return None
        found: Any = functools.reduce(operator.mul, map(self.power_of_factor, factors))
        series = self.series_of(found)
        if series is None:  # powers of exponent 0
            return self.result(out, lambda _k: zero_of(out), 0)
        return self.result(out, lambda k: series[k], series.degree)

    def power_of_factor(self, factor: MonomialFactor) -> Any:
        """Return a power of a value, of its square as far as this is what is smooth."""
        if not factor.by_square:
            return value_of(factor) if factor.handle is None else turned_power(factor)
        exponent, known = factor.power.exponent, factor.handle.origin
        root = square_of(known.primitive, known.params)
        assert root is not None
        square: Any = self.process(root, known.operands, known.params)
        for view, handle, _ in factor.views:
            square = view_of(view, square, handle.origin.shape)
        found, rest = square ** int(exponent // 2), exponent % 2
        return found * power_value(factor.value, rest, ODD if rest == 1 else EVEN) if rest else found

    def apply_structured(
        self, primitive: Structured, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Let an operation that runs graphs carry the coefficients along."""
        series = [self.series_of(x) for x in operands]
        parts = [None if s is None else tuple(s[k] for k in range(1, self.order + 1)) for s in series]
        values = [self.value_below(x) for x in operands]
        found, moved, passed = primitive.push(values, parts, params, self.order, Passed(self.masked, self.steep))
        self.steep = self.steep or (passed.steep and any(map(may_be_infinite, chain(*filter(None, moved)))))
        self.masked = self.masked or (passed.masked and any(map(may_be_infinite, found)))
        results = []
        for out, coefficients in zip(map(unwrap_plain, found), moved, strict=True):
            if coefficients is None or not is_differentiable(aval_of(out).dtype):
                results.append(wrapped_constant(out))
            else:
                rest = map(unwrap_plain, coefficients)
                results.append(self.tensor(aval_of(out), Series([out, *rest], zeros_like(out), place=caller(1, False))))
        return tuple(results)

    def complete(self, primitive: Primitive, result: Any) -> None:
        """Compute all coefficients of a result that are known."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # the value itself has warned before
            for i, item in enumerate(result if isinstance(result, tuple) else (result,)):
                if item._trace is self and i not in primitive.only_saved:
                    item._node[self.order]

    def build(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], out: Any) -> Any:
        """Return the result with its series, by the kind of the primitive; `out` is its value."""
        if isinstance(primitive, Linear):
            return self.linear(primitive, operands, params, out)
        past = self.past_kink(primitive, operands, params, out)
        if past is not None:
            return past
        if isinstance(primitive, Multilinear) or len(primitive.linear_in) > 1:
            return self.product(primitive, operands, params, out)
        if primitive is divide:
            return self.quotient(operands, out)
        if primitive.raises and len(operands) == 2:
            return self.power(primitive, operands, params, out)
        if isinstance(primitive, Elementwise) and self.affine(primitive, [self.series_of(x) for x in operands]):
            return self.affine_result(primitive, operands, params, out)
        return self.integrate_rule(primitive, operands, params, out)

    def result(self, out: Any, compute: Callable[[int], Any], degree: float = math.inf) -> Tensor:
        """Return a Tensor from its value, a function that computes the other coefficients, and their degree."""
        aval = shape, dtype, weak = aval_of(out)
        if not is_differentiable(dtype):
            return wrapped_constant(out)

        def coefficient(k: int) -> Any:
            found = strong(compute(k))
            if found.dtype != dtype:
                found = match_dtype(found, dtype)
            if weak:
                return unwrap_plain(weaken(found))
            return found if found.shape == shape else np.broadcast_to(found, shape)

        place = caller(4, False) if self.depth == 1 else (None, 0)
        return self.tensor(aval, Series([out], coefficient, degree, place))

    def keep_still(self, result: Tensor, moving: Sequence[Series]) -> Tensor:
        """Return a result with coefficients of 0 where those of all operands are: infinite partials give NaN."""
        found = result._node

        def compute(k: int) -> Any:
            moves = functools.reduce(np.logical_or, [s[j] != 0 for s in moving for j in range(1, k + 1)])
            return guard(found[k], found[k], strong(moves).astype(strong(found[k]).dtype), masked=True)

        return self.result(found[0], compute, found.degree)

    def value_or_none(self, operand: Any) -> Any:
        """Return the value of a constant operand."""
        return None if self.series_of(operand) is not None else self.value_below(operand)

    def linear(self, primitive: Linear, operands: Sequence[Any], params: Mapping[str, Any], out: Any) -> Tensor:
        """Apply a linear operation coefficient by coefficient."""
        count = len(operands) if primitive.variadic else len(primitive.transposes)
        constants = [self.value_below(x) for x in operands[count:]]
        series = [self.series_of(x) for x in operands[:count]]
        if all(s is None for s in series):
            return wrapped_constant(out)
        zeros = [zero_of(x) if s is None else None for s, x in zip(series, operands[:count], strict=True)]

        def compute(k: int) -> Any:
            terms = [zero if s is None else s[k] for s, zero in zip(series, zeros, strict=True)]
            return apply(primitive, *terms, *constants, **params)

        return self.result(out, compute, max(degrees_of(series)))

    def product(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], out: Any) -> Tensor:
        """Convolve the coefficients of the factors."""
        series = list(map(self.series_of, operands))
        constants = list(map(self.value_or_none, operands))
        multiplied = functools.partial(apply, primitive, **params)
        moving = next((i for i, s in enumerate(series) if s is not None), 0)

        def compute(k: int) -> Any:
            terms = []
            for degrees in shares(k, tuple(degrees_of(series))):
                found = zip(series, constants, degrees, strict=True)
                factors = [x if s is None else s[j] for s, x, j in found]
                if self.steep and isinstance(primitive, Multilinear):
                    terms.append(primitive.shielded_product(multiplied, factors, factors[moving]))
                    continue
                term = multiplied(*factors)
                terms.append(guard(term, term, factors[0], steep=True) if self.steep else term)
            return add_terms(terms) if terms else zero_of(out)

        return self.result(out, compute, sum(degrees_of(series)))

    def quotient(self, operands: Sequence[Any], out: Any) -> Tensor:
        """Divide series: y = a / b gives b_0 y_k = a_k - sum of b_j y_{k-j}."""
        a, b = map(self.series_of, operands)
        divisor = self.value_below(operands[1])
        if is_number(out):  # Python numbers raise where they are divided by zero
            divisor = strong(divisor)

        def compute(k: int) -> Any:
            top = a[k] if a is not None else 0.0
            if b is None:
                return top / divisor
            return (top - add_terms([b[j] * known[k - j] for j in range(1, k + 1)])) / divisor

        result = self.result(out, compute, math.inf if a is None or b is not None else a.degree)
        known: Series = result._node
        return result

    def power(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], out: Any) -> Any:
        """Raise a series to a power: x y' = r y x' for a constant exponent, y = exp(r log x) for a varying one."""
        x, r = operands
        base = self.series_of(x)
        if base is None:
            return self.integrate_rule(primitive, operands, params, out)
        if self.series_of(r) is not None:
            return self.varying_power(primitive, operands, params, out)
        if isinstance(r, int | float) and r == int(r) and 0 <= r <= 64:
            return self.integer_power(x, int(r), out)
        r = self.value_below(r)
        may_be_zero = is_staged(base[0]) or np.any(raw(base[0]) == 0)
        at_zero = self.power_at_zero(x, base, r, out) if may_be_zero else None

        divisor = strong(base[0]) if is_number(out) else base[0]

        def compute(k: int) -> Any:
            terms = [(r * j - (k - j)) * base[j] * known[k - j] for j in range(1, k + 1)]
            found = add_terms(terms) / (k * divisor)
            return found if at_zero is None else np.where(base[0] == 0, at_zero(k), found)

        result = self.result(out, compute)
        known: Series = result._node
        return result

    def varying_power(
        self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], out: Any
    ) -> Tensor:
        """Raise a series to a power that varies: exp(r log x).

        Where x has no logarithm, it is as if the exponent were constant as far as it is, and what the rule says beyond.
        """
        x, r = operands
        value = self.value_below(x)
        exists = value != 0 if aval_of(value).dtype.kind == "c" else value > 0
        if not is_staged(exists) and np.all(raw(exists)):
            smooth = np.exp(r * np.log(x))
            return self.result(out, lambda k: smooth._node[k])
        smooth = np.exp(r * np.log(np.where(exists, x, 1.0)))
        moved = self.integrate_rule(primitive, operands, params, out)
        still = self.power(primitive, (x, self.value_below(r)), params, out)
        exponent = self.series_of(r)
        assert exponent is not None

        def compute(k: int) -> Any:
            stays = functools.reduce(operator.and_, [np.equal(exponent[j], 0) for j in range(1, k + 1)])
            return np.where(exists, smooth._node[k], np.where(stays, still._node[k], moved._node[k]))

        return self.result(out, compute)

    def power_at_zero(self, x: Any, base: Series, r: Any, out: Any) -> Callable[[int], Any]:
        """Return the coefficients of x**r, k > 0, for elements where x is 0 and the recurrence divides by it.

        With x = x_1 s + ..., coefficient k is 0 for k < r; for a whole r the power is a product; the others have
        binomial(r, k) 0**(r - k) x_1**k, which is infinite unless x_1 is 0.
        """
        known = range(self.order + 1) if is_staged(r) else np.unique(raw(r).real if hasattr(r, "dtype") else r)
        exponents = [int(e) for e in known if e in range(self.order + 1)]
        whole = {e: self.integer_power(x, e, out) for e in exponents}

        def compute(k: int) -> Any:
            binomial = functools.reduce(operator.mul, [(r - j) / (j + 1) for j in range(k)])
            found = np.where(base[1] == 0, 0.0, binomial * base[1] ** k * np.inf)
            found = np.where(np.greater(r, k), 0.0, found)
            for e, result in whole.items():
                found = np.where(np.equal(r, e), result._node[k], found)
            return found

        return compute

    def integer_power(self, x: Any, r: int, out: Any) -> Tensor:
        """Raise a series to a small whole power by squaring, which is right at zero too."""
        result: Any = None
        square, rest = x, r
        while rest:
            if rest & 1:
                result = square if result is None else result * square
            rest >>= 1
            if rest:
                square = square * square
        if result is None:
            return self.result(out, lambda _k: zero_of(out), 0)
        return self.result(out, lambda k: result._node[k], result._node.degree)

    def integrate_rule(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], out: Any) -> Any:
        """Integrate the primitive's own rule, which is called when the first derivative is asked for.

        Not before, because a rule may use the next of an endless sequence of primitives.
        """
        key, sources = self.key_of(primitive, operands, params)
        if key in self.memo:
            known = self.memo[key][0]
            return tuple(map(self.snapshot, known)) if isinstance(known, tuple) else self.snapshot(known)
        rates: list[Series] = []

        def compute(i: int, k: int) -> Any:
            if not rates:
                rates.extend(self.rates(primitive, operands, params, result))
            found = rates[i][k - 1] / k
            if primitive.steep and not self.steep:
                self.steep = may_be_infinite(found)
            return found

        outs = out if isinstance(out, tuple) else (out,)
        results = tuple(self.result(value, functools.partial(compute, i)) for i, value in enumerate(outs))
        result = results if isinstance(out, tuple) else results[0]
        self.memo[key] = (result, sources)
        return result

    def key_of(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return what tells applications within a rule apart, and the objects that must live as long."""
        sources = [x if self.series_of(x) is None else self.series_of(x) for x in operands]
        fixed: Any = tuple(sorted(params.items()))
        try:
            hash(fixed)
        except TypeError:  # an array among the parameters: this application is like no other
            sources.append(fixed)
            fixed = id(fixed)
        return (primitive, *map(id, sources), fixed), sources

    def rates(
        self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], result: Any
    ) -> list[Series]:
        """Return the derivatives of a primitive's results as series."""
        series = [self.series_of(x) for x in operands]
        tangents = [None if s is None else self.rate(x, s) for x, s in zip(operands, series, strict=True)]
        protected = primitive.shielded_primitive(False) if self.steep else primitive
        moved = propagate(protected, tangents, result, operands, params)
        found = []
        for rate in moved if isinstance(result, tuple) else (moved,):
            aval = Aval((), np.dtype(float)) if rate is None else aval_of(rate)
            known = None if rate is None else self.series_of(current(as_tensor(rate)))
            constant = zero_of(aval) if rate is None else self.value_below(current(as_tensor(rate)))
            found.append(known or Series([constant], zeros_like(aval), 0))
        return found

    def rate(self, operand: Any, series: Series) -> Tensor:
        """Return the derivative of an operand's series."""
        rate = Series([], lambda k: series[k + 1] * (k + 1), max(0, series.degree - 1))
        return self.tensor(aval_of(operand), rate)

    @staticmethod
    def affine(primitive: Elementwise, series: Sequence[Series | None]) -> bool:
        """Tell whether the rules need neither the output nor any operand that varies."""
        varying = [i for i, s in enumerate(series) if s is not None]
        return all(
            primitive.rules[i] is None or not (primitive.needs_out(i) or any(primitive.needs(i, j) for j in varying))
            for i in varying
        )

    def affine_result(
        self, primitive: Elementwise, operands: Sequence[Any], params: Mapping[str, Any], out: Any
    ) -> Tensor:
        """Apply the rules to the coefficients themselves."""
        series = list(map(self.series_of, operands))
        constants = [self.value_or_none(x) for x in operands]
        ruled = [(rule, s) for rule, s in zip(primitive.rules, series, strict=True) if rule and s is not None]

        def compute(k: int) -> Any:
            terms = [rule(s[k], None, *constants, **params) for rule, s in ruled]
            return add_terms(terms) if terms else zero_of(out)

        return self.result(out, compute, max(degrees_of(series)))

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Re-bind a Tensor to a series with a part of each coefficient replaced."""
        own_memory(handle)  # coefficients are computed later, and a series has no memory to borrow
        base = make_tensor(handle._value, handle._trace, handle._node)
        base._kept = True
        result = self.process(primitive, (base, *operands), params)
        self.rebind(handle, result)

    def rebind(self, handle: Tensor, result: Tensor) -> None:
        """Let a handle stand for another value; what is written under `no_grad` has the coefficients of what was."""
        series = self.series_of(handle)
        if series is not None and is_stopped(self):
            out = self.value_below(result)
            result = self.tensor(aval_of(out), Series([out], lambda k: series[k], series.degree))
        super().rebind(handle, result)


@functools.lru_cache(maxsize=1024)
def shares(k: int, most: tuple[float, ...]) -> list[tuple[int, ...]]:
    """Return in which ways several degrees come to k, none of them above its most.

    >>> shares(2, (2, 0, 1))
    [(1, 0, 1), (2, 0, 0)]
    """
    first, rest = most[0], most[1:]
    if not rest:
        return [(k,)] if k <= first else []
    return [(j, *others) for j in range(k + 1) if j <= first for others in shares(k - j, rest)]


def degrees_of(series: Sequence[Series | None]) -> list[float]:
    """Return the degrees of operands, 0 of constants."""
    return [0 if s is None else s.degree for s in series]


def zeros_like(like: Any) -> Callable[[int], Any]:
    """Return the further coefficients of a series that has no more: zeros of a shape and dtype."""
    return lambda _: zero_of(like)


def add_terms(terms: Sequence[Any]) -> Any:
    """Return the sum of some terms."""
    return functools.reduce(operator.add, terms)
