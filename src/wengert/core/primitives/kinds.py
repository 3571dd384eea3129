"""Primitives by the kind of their Jacobian: what the author gives, and the vjp that follows from it.

The constructor of a kind takes what the author gives; `declare` has the functions that also enter the primitive in the
registry. The rules are as `rule` says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from wengert.core.graph.equation import Variable
from wengert.core.primitives.cotangent import guard, may_have_nan, split_infinite, strong_zero, unbroadcast
from wengert.core.primitives.declaration_checks import Claim
from wengert.core.primitives.primitive import PointRules, Primitive, ShapeRules
from wengert.core.primitives.signatures import Rule, RuleSignature, rule_error
from wengert.core.values.aval import Aval, aval_of, shape_of
from wengert.core.values.tensor import is_staged, raw
from wengert.native.threads.elementwise import share_ufunc
from wengert.support.caches import cached


class Elementwise(Primitive):
    """Act on each element by itself: the Jacobian is diagonal, so one function serves vjp and jvp.

    Args:
        name: its name, unique among primitives.
        evaluate: the operation on arrays, broadcasting like a ufunc.
        d: per operand a function `d(t, out, *xs, **params)`, linear in `t`, giving the tangent of the output for
            the tangent `t` of that operand; None for operands without derivative. A single function for one operand.
        singular: whether a partial can be infinite or NaN where the primal is defined; then a zero `t` gives 0.
        regular: of a singular primitive, a function of its operands: whether literals among them make it none.
        passes: whether every rule passes `t` on, negates it or selects of it, so that it needs no guard behind a mask.
        masks: whether it leaves out NaN, so that a sweep that passes it has passed a mask.
        joins: whether it chooses between elements of operands, so that those of constants have tangents of 0.
        overwrite: a ufunc of `t` and `y` that is the rule of operand 0, so that its result may take the memory of `t`.
        steep: whether a partial can be infinite where the value is finite, so that a sweep looks whether it is.
        degree: of a root of its operand, of which degree: 2 or 3; 1 of its size, |x|.
        scales: the operands of which the result is a multiple each, as of the factors of a product.
        square: of a root, a function of no arguments giving the primitive whose result is its square; see `Primitive`.
        raises: whether it raises operand 0 to a power.
        own: whether our own function may take the place of the ufunc for large arrays: where it takes at most 0.85 of
            its time.
        evaluate_large: the evaluation of large arrays; False if threads must not share the loops of the ufunc.
        originates: whether its results can be roots or powers, of which forward mode notes how they were made.
        **points: what it computes at a point, from which its kernels follow; see `PointRules`.

    Raises:
        RegistrationError: a rule is missing or has the wrong number of arguments.

    >>> cube = Elementwise("cube", lambda x: x**3, d=lambda t, _out, x: t * 3 * x**2)
    >>> cube.vjp(np.float64(1.0), None, [2.0], [Aval((), np.dtype(float))], {})
    [np.float64(12.0)]
    """

    kind = "elementwise"
    at_points = True
    fresh = True

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        d: Rule | Sequence[Rule | None] | None = None,
        *,
        singular: bool = False,
        regular: Callable[..., bool] | None = None,
        passes: bool = False,
        masks: bool = False,
        joins: bool = False,
        overwrite: np.ufunc | None = None,
        steep: bool = False,
        degree: int = 0,
        scales: tuple[int, ...] = (),
        square: Callable[..., Primitive | None] | None = None,
        raises: bool = False,
        own: bool = False,
        evaluate_large: Callable[..., Any] | bool = True,
        **points: Unpack[PointRules],
    ) -> None:
        super().__init__(name, evaluate, **points)
        self.steep = steep
        self.degree = degree
        self.own = own
        self.scales = scales
        self.square = square
        self.raises = raises
        self.originates = square is not None or raises or degree > 0 or len(scales) == 2
        rules: tuple[Rule | None, ...] = tuple(d) if isinstance(d, Sequence) else (d,)
        if not any(rule is not None for rule in rules):
            raise rule_error(name, "no rule was given", "a function d(t, out, *xs) is needed for some operand")
        if isinstance(evaluate, np.ufunc) and evaluate.nin != len(rules):
            raise rule_error(name, f"{len(rules)} rules were given", f"{evaluate.nin} operands need one each")
        if isinstance(evaluate, np.ufunc) and evaluate.signature is not None:
            given = f"the evaluation is a ufunc of signature {evaluate.signature}"
            raise rule_error(name, given, "an elementwise one acts on each element by itself")
        self.firm = len(rules) == 1
        self.sweeps_as = "unary" if len(rules) == 1 else "binary"
        if masks or len(rules) > 2:
            self.sweeps_as = "rules"
        elif steep or raises or degree:
            self.sweeps_as = "power"
        self.signatures = tuple(None if r is None else RuleSignature(name, r, 2, len(rules)) for r in rules)
        self.singular = singular
        self.passes = self.piecewise = passes
        self.masks = masks
        self.joins = joins
        self.overwrite = overwrite
        self.overwrite_large = overwrite and share_ufunc(overwrite)
        if isinstance(evaluate, np.ufunc) and evaluate.nin <= 2 and evaluate.nout == 1:
            self.evaluate_large = share_ufunc(evaluate, own) if evaluate_large else None
        if callable(evaluate_large):
            self.evaluate_large = evaluate_large
        self.regular = regular
        self.declare_rules(rules)

    def declare_rules(self, rules: tuple[Rule | None, ...]) -> None:
        """Take these rules, with the strong zero if partials can be infinite."""
        self.declared = rules
        self.rules = tuple(strong_zero(r, self.regular) if r is not None and self.singular else r for r in rules)

    def hold_to(self, claim: Claim) -> None:
        """Compare the rules."""
        self.declare_rules(tuple(None if rule is None else claim.diagonal(rule) for rule in self.declared))

    @cached
    def guarded_primitive(self) -> Elementwise:
        """The same primitive with the strong zero on every rule, for sweeps that have passed a mask."""
        return self.with_guards(masked=True)

    @cached
    def shields(self) -> tuple[Elementwise, Elementwise]:
        """The same for sweeps that have passed an infinite partial, and no mask or one."""
        return self.with_guards(steep=True), self.with_guards(masked=True, steep=True)

    def shielded_primitive(self, masked: bool) -> Elementwise:
        """Return the same for sweeps that have passed an infinite partial; `masked` if a mask, too."""
        return self.shields[masked]

    def is_steep(self, operands: Sequence[Any]) -> bool:
        """Tell whether a partial can be infinite where the value is finite, given literals among the operands."""
        return self.steep and not (self.regular is not None and self.regular(*operands))

    def with_guards(self, **kept: bool) -> Elementwise:
        """Return the same primitive with the strong zero on every rule."""
        if self.passes:
            return self
        twin = copy.copy(self)
        twin.rules = tuple(rule and strong_zero(rule, None, **kept) for rule in self.declared)
        twin.overwrite = None
        twin.registered = False
        return twin

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return the rules that were given."""
        return [rule for rule in self.declared if rule is not None]

    def needs_out(self, position: int) -> bool:
        """Tell whether the rule of an operand needs the output."""
        signature = self.signatures[position]
        return signature is not None and signature.needs(1)

    def needs(self, position: int, operand: int) -> bool:
        """Tell whether the rule of the operand at `position` needs another operand (or itself)."""
        signature = self.signatures[position]
        return signature is not None and signature.needs(2 + operand)

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save what the rules of the wanted operands name."""
        positions = [i for i, want in enumerate(wanted) if want]
        return any(map(self.needs_out, positions)), lambda operand: any(self.needs(i, operand) for i in positions)

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Apply each rule to the cotangent and sum over what was broadcast."""
        return [
            None if aval is None or rule is None else unbroadcast(rule(ct, out, *operands, **params), aval.shape)
            for rule, aval in zip(self.rules, avals, strict=True)
        ]


class Linear(Primitive):
    """Be linear in the leading operands, the rest being constants; the jvp is the operation, the vjp its transpose.

    Args:
        name: its name, unique among primitives.
        evaluate: the operation on arrays.
        transpose: a function `transpose(ct, aval, *constants, **params)` for the one linear operand, whose aval it
            receives, or a sequence of them; with `variadic` all operands are linear, and one function
            `transpose(ct, avals, **params)` returns a sequence of cotangents (None where the aval is None).
        view: whether the result may share memory with operand 0.
        fresh: whether the transpose returns memory of its own, never the cotangent's.
        variadic: see `transpose`.
        accumulate: `accumulate(buffer, ct, *constants, **params)`: add the transpose of `ct` into a buffer.
        rewrite: `rewrite(value, kept, *others, **params)`: evaluate into the memory of operand 0, or a copy if `kept`.
        consume: `consume(ct, avals, *constants, **params)`: the vjp, free to overwrite the cotangent.
        jvp: a forward rule, if it is more than the operation on tangents.
        negates: of a view, whether what is written through it has the negated part of the cotangent.
        gives_number: whether the result is a Python number, whose dtype gives way to that of arrays.
        scales: the operands, 0 or none, whose elements are those of the result, as they are of most views.
        **shapes: `form`, from which shapes and batching follow, or a rule `batch`; see `ShapeRules`.

    Raises:
        RegistrationError: a transpose is missing.

    >>> halve = Linear("halve", lambda x: x / 2, transpose=lambda ct, _aval: ct / 2)
    >>> halve.vjp(np.ones(2), None, [None], [Aval((2,), np.dtype(float))], {})
    [array([0.5, 0.5])]
    """

    kind = "linear"

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        transpose: Rule | Sequence[Rule] | None = None,
        *,
        view: bool = False,
        fresh: bool = False,
        variadic: bool = False,
        accumulate: Rule | None = None,
        rewrite: Rule | None = None,
        consume: Rule | None = None,
        jvp: Rule | None = None,
        negates: bool = False,
        gives_number: bool = False,
        scales: tuple[int, ...] | None = None,
        **shapes: Unpack[ShapeRules],
    ) -> None:
        super().__init__(name, evaluate, **shapes)
        if transpose is None:
            transpose = self.transpose_by_form if hasattr(self.form, "transpose") else ()
        self.transposes: tuple[Rule, ...] = tuple(transpose) if isinstance(transpose, Sequence) else (transpose,)
        if not self.transposes:
            raise rule_error(name, "no transpose was given", "one for each linear operand is needed")
        for rule in self.transposes:
            RuleSignature(name, rule, 2, None)
        self.variadic = variadic
        self.joins = variadic or rewrite is not None
        self.view = view
        self.scales = ((0,) if view else ()) if scales is None else scales
        self.fresh = fresh
        self.sweeps_as = "linear" if accumulate is consume else "part"
        self.accumulate = accumulate
        self.alone = not variadic and accumulate is None  # where one operand is all, its transpose says all
        self.rewrite: Rule = rewrite or self.cannot_rewrite
        self.changed = ((0, 0),) if rewrite else ()
        self.consume = consume
        self.jvp = jvp
        self.negates = negates
        self.gives_number = gives_number
        self.usual: Mapping[str, Any] = {}  # of a part or write: the parameters besides its index that it mostly has

    def changes(self, _params: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Return the base of what is evaluated in place."""
        return self.changed

    def weights(self, operands: Sequence[Any], out: Aval, params: Mapping[str, Any]) -> Any:
        """Return the cotangent of operand 0 for that of ones, if the other operands are known."""
        x, others = operands[0], operands[len(self.transposes) :]
        if any(isinstance(other, Variable) for other in others):
            return None
        found = self.transposes[0](np.ones(out.shape, out.dtype), aval_of(x), *others, **params)
        if type(found) is np.ndarray:  # most are one number, repeated
            found = found[tuple([slice(0, 1) if step == 0 else slice(None) for step in found.strides])]
            return None if (found == 1).all() else found
        return found

    def part_of_cotangent(self, ct: Any, avals: Sequence[Aval | None], position: int, params: Mapping[str, Any]) -> Any:
        """Return the part of a cotangent that belongs to one operand, of which the aval is given."""
        if self.variadic:
            return self.transposes[0](ct, avals, **params)[position]
        return self.transposes[position](ct, avals[position], **params)

    def transpose_by_form(self, ct: Any, aval: Aval, **params: Any) -> Any:
        """Return the cotangent of the only operand as the form gives it."""
        return self.form.transpose(0, ct, aval, (), params)  # type: ignore[union-attr]  # it has it

    def hold_to(self, claim: Claim) -> None:
        """Compare the transposes."""
        compared = claim.variadic if self.variadic else claim.transpose
        self.transposes = tuple(map(compared, self.transposes))

    def cannot_rewrite(self, *_operands: Any, **_params: Any) -> Any:
        """Refuse evaluation in place: the declaration gives none."""
        raise rule_error(self.name, "no evaluation in place was declared", "rewrite= is needed to mutate with it")

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return the transposes."""
        return self.transposes

    def saving(self, wanted: tuple[bool, ...]) -> tuple[bool, tuple[int, ...]]:
        """Return what `select_residuals` does; of any number of linear operands nothing is saved or remembered."""
        return (False, ()) if self.variadic else super().saving(wanted)

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save the constant operands alone."""
        first_constant = len(wanted) if self.variadic else len(self.transposes)
        return False, lambda operand: operand >= first_constant

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Apply the transposes."""
        if self.variadic:
            cts: Sequence[Any] = self.transposes[0](ct, avals, **params)
            return cts
        count = len(self.transposes)
        constants = operands[count:]
        return [
            None if aval is None else rule(ct, aval, *constants, **params)
            for rule, aval in zip(self.transposes, avals[:count], strict=True)
        ] + [None] * (len(operands) - count)


class Multilinear(Primitive):
    """Be linear in each of several operands while the others are fixed.

    Args:
        name: its name, unique among primitives.
        evaluate: the operation on arrays.
        transposes: one function `transpose(ct, aval, *others, **params)` for each operand, which receives its aval and
            the other operands; None for those that the form gives.
        **shapes: `form`, from which shapes and batching follow; see `ShapeRules`.

    Raises:
        RegistrationError: a transpose is missing.

    >>> scale = Multilinear("scale", np.multiply, (lambda ct, _, y: ct * y, lambda ct, _, x: ct * x))
    >>> scale.vjp(np.ones(2), None, [None, 3.0], [Aval((2,), np.dtype(float)), None], {})
    [array([3., 3.]), None]
    """

    kind = "multilinear"
    fresh = True

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        transposes: Sequence[Rule] | None = None,
        **shapes: Unpack[ShapeRules],
    ) -> None:
        super().__init__(name, evaluate, **shapes)
        if transposes is None and hasattr(self.form, "transpose"):
            return
        if not isinstance(transposes, tuple | list) or len(transposes) < 2:
            given = f"{len(transposes)} transposes" if isinstance(transposes, tuple | list) else f"{transposes!r:.40}"
            raise rule_error(name, f"{given} were given", "two or more are needed, one per operand")
        for rule in transposes:
            RuleSignature(name, rule, 1 + len(transposes), 0)
        self.transposes = transposes

    transposes: Sequence[Rule] | None = None

    unshielded: Multilinear | None = None

    @cached
    def shield(self) -> Multilinear:
        """The same for sweeps that have passed an infinite partial."""
        twin = copy.copy(self)
        twin.steep = True
        twin.registered = False
        twin.unshielded = self
        return twin

    def shielded_primitive(self, _masked: bool) -> Multilinear:
        """Return the same for sweeps that have passed an infinite partial."""
        return self.shield

    def hold_to(self, claim: Claim) -> None:
        """Compare the transposes."""
        self.transposes = self.transposes and tuple(map(claim.transpose, self.transposes))

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return the transposes, or that of the form."""
        return self.transposes or (self.form.transpose,)  # type: ignore[union-attr]  # it has it

    def tangent_product(
        self, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> tuple[Primitive, Mapping[str, Any]]:
        """Return the primitive, and its parameters, that gives a tangent of the other operands and that of one."""
        primitive = self.unshielded or self
        chosen = getattr(self.form, "tangent", None)
        return (primitive, params) if chosen is None else chosen(primitive, operands, params)

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save each operand for the transposes of the others."""
        count = sum(wanted)
        return False, lambda operand: count > wanted[operand]

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Apply the transpose of each operand to the cotangent and the other operands."""
        found: list[Any] = [None] * len(operands)
        for i, aval in enumerate(avals):
            if aval is not None:
                others = (operands[1 - i],) if len(found) == 2 else (*operands[:i], *operands[i + 1 :])
                if self.steep:
                    found[i] = self.shielded_cotangent(i, ct, aval, others, params)
                elif self.transposes is None:
                    found[i] = self.form.transpose(i, ct, aval, others, params)  # type: ignore[union-attr]  # it has it
                else:
                    found[i] = self.transposes[i](ct, aval, *others, **params)
        return found

    def shielded_cotangent(self, i: int, ct: Any, aval: Aval, others: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Return the cotangent of one operand behind an infinite partial."""

        def apply_transpose(ct: Any, *others: Any) -> Any:
            if self.transposes is None:
                return self.form.transpose(i, ct, aval, others, params)  # type: ignore[union-attr]  # it has it
            return self.transposes[i](ct, aval, *others, **params)

        def spread() -> Any:
            adds = not self.adds_nothing(i, aval, others, params)
            return None if adds else apply_transpose(ct, *[np.ones(shape_of(x)) for x in others])

        return self.shielded_product(apply_transpose, (ct, *others), ct, spread)

    def shielded_product(
        self,
        product_of: Callable[..., Any],
        factors: Sequence[Any],
        moving: Any,
        spread: Callable[[], Any] = lambda: None,
    ) -> Any:
        """Return a sum of products; behind an infinite partial with 0 for the products of infinity and 0.

        Args:
            product_of: gives it for the factors, in each of which it is linear.
            factors: the factors.
            moving: which of them is the tangent or cotangent.
            spread: gives what each element of the result is a multiple of; None if that is no single element.
        """
        product = product_of(*factors)
        if not may_have_nan(product, True):
            return product
        multiple_of = spread() if moving.shape else moving
        if multiple_of is not None and (is_staged(product) or not moving.shape):
            return guard(product, product, multiple_of, steep=True)
        if is_staged(product):  # three products would tell
            return product
        finite, infinite = zip(*map(split_infinite, factors), strict=True)
        found = product_of(*finite)
        large: Any = 0.0
        for k, part in enumerate(infinite):
            if np.any(raw(part)):
                large = large + product_of(*infinite[:k], part, *finite[k + 1 :])
        return found + np.where(large == 0, 0.0, large * np.inf)

    def adds_nothing(self, i: int, aval: Aval, others: Sequence[Any], params: Mapping[str, Any]) -> bool:
        """Tell whether each element of the cotangent of an operand belongs to one of the result's: from labels."""
        record = getattr(self.form, "record", None)
        if record is None:
            return False
        shapes = [*map(shape_of, others[:i]), aval.shape, *map(shape_of, others[i:])]
        labels = record(shapes, params).transpose(i)
        return all(label in labels.result or labels.lengths[label] == 1 for label in labels.operands[0])
