"""Kinds of primitives whose Jacobian is a rule of their own, and of those that have none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np

from wengert.core.primitives.cotangent import linear_image
from wengert.core.primitives.declaration_checks import Claim, alike
from wengert.core.primitives.primitive import DeclaredForm, Primitive, ShapeRules
from wengert.core.primitives.signatures import Rule, RuleSignature, rule_error
from wengert.core.values.aval import Aval
from wengert.errors import GraphError
from wengert.support.caches import cached


class Opaque(Primitive):
    """Have a Jacobian of no special form: the author writes the vjp of all operands at once.

    Args:
        name: its name, unique among primitives.
        evaluate: the operation on arrays; several results come as a tuple.
        vjp: `vjp(ct, out, *operands, **params)`, linear in `ct`, returning a tuple with a cotangent (or None) for
            each operand; one value alone is that of the first operand, if no other is differentiated. With several
            outputs `ct` is a list with None for those that received no cotangent, and `out` a tuple. Or a sequence of
            `rule(ct, aval, out, *operands, **params)`, one for each operand, whose aval it gets, and None for those
            without derivative: called are those, and saved is what those name, whose operands want a cotangent.
        jvp: `jvp(tangents, out, *operands, **params)`, where a direct one is cheaper than what follows from `vjp`.
        piecewise: whether it is linear on pieces, as sorting is: the vjp does not depend on the operands but for where
            it jumps. Then second derivatives need one operation; there must be a `jvp`.
        fresh: whether the vjp returns memory of its own: never the cotangent's, a residual's, or that of two operands.
        joins: whether it chooses between elements of operands, so that those of constants have tangents of 0.
        outputs: the number of results.
        square: of a root, a function of the parameters giving the primitive whose result is its square, or None.
        **shapes: `form`, from which shapes and batching follow, or a rule `batch`; see `ShapeRules`.

    Raises:
        RegistrationError: the vjp is missing, or takes too few arguments.

    >>> length = Opaque("length", np.linalg.norm, vjp=lambda ct, out, x: ct * x / out)
    >>> length.vjp(1.0, 5.0, [np.array([3.0, 4.0])], [Aval((2,), np.dtype(float))], {})
    (array([0.6, 0.8]),)
    """

    kind = "opaque"

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        vjp: Rule | Sequence[Rule | None] | None = None,
        *,
        jvp: Rule | None = None,
        piecewise: bool = False,
        fresh: bool = False,
        joins: bool = False,
        outputs: int = 1,
        square: Callable[..., Primitive | None] | None = None,
        **shapes: Unpack[ShapeRules],
    ) -> None:
        super().__init__(name, evaluate, **shapes)
        self.square, self.joins = square, joins
        if vjp is None or (isinstance(vjp, Sequence) and all(rule is None for rule in vjp)):
            raise rule_error(name, "no vjp was given", "a function vjp(ct, out, *operands) is needed")
        if piecewise and jvp is None:
            raise rule_error(name, "piecewise=True was given without jvp", "a forward rule is needed, too")
        self.rules = tuple(vjp) if isinstance(vjp, Sequence) else None
        self.rule = None if isinstance(vjp, Sequence) else vjp
        self.leading = 2 if self.rules is None else 3
        count = None if self.rules is None else len(self.rules)
        given = (self.rule,) if self.rules is None else self.rules
        self.signatures = [None if rule is None else RuleSignature(name, rule, self.leading, count) for rule in given]
        self.jvp = jvp
        self.piecewise = piecewise
        self.fresh = fresh
        self.outputs = outputs

    claim: Claim | None = None

    def hold_to(self, claim: Claim) -> None:
        """Compare the jvp, and in `vjp` what the rule gives."""
        self.claim = claim
        self.jvp = self.jvp and claim.pushforward(self.jvp)
        self.rule = self.rule and alike(self.rule)
        self.rules = self.rules and tuple([rule and claim.transpose(rule, "its vjp") for rule in self.rules])

    def surround(self, form: DeclaredForm) -> None:
        """Evaluate, and call the rules, in the surroundings that a form has for that."""
        super().surround(form)
        self.jvp = self.jvp and form.rule(self.jvp, 2)
        self.rule = self.rule and form.rule(self.rule, self.leading)
        self.rules = self.rules and tuple([rule and form.rule(rule, self.leading) for rule in self.rules])

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return what was given: the vjp, or rules of operands."""
        return (self.rule,) if self.rules is None else [rule for rule in self.rules if rule is not None]

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save what the vjp names, or the rules of the wanted operands."""
        asked = (True,) if self.rules is None else wanted
        called = [signature for signature, ask in zip(self.signatures, asked, strict=True) if signature and ask]
        first = self.leading
        need_out = any(signature.needs(first - 1) for signature in called)
        return need_out, lambda operand: any(signature.needs(first + operand) for signature in called)

    @cached
    def shield(self) -> Opaque:
        """The same for sweeps that have passed an infinite partial."""
        twin = copy.copy(self)
        twin.steep = True
        twin.registered = False
        return twin

    def shielded_primitive(self, _masked: bool) -> Opaque:
        """Return the same for sweeps that have passed an infinite partial."""
        return self.shield

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Run the rules; behind an infinite partial with 0 for the products of infinity and 0."""
        if not self.steep:
            return self.cotangents(ct, out, operands, avals, params)
        several = type(ct) is list
        spread = None if several else (lambda t: t) if ct.shape == () else self.spread(avals, params)

        def pull_cotangents(cts: Sequence[Any]) -> Sequence[Any]:
            return self.cotangents(cts if several else cts[0], out, operands, avals, params)

        return linear_image(pull_cotangents, ct if several else [ct], spread)

    def spread(self, avals: Sequence[Aval | None], params: Mapping[str, Any]) -> Callable[[Any], Any] | None:
        """Return what gives for each element of a cotangent the one of the result's that it is a multiple of."""
        spread = getattr(self.form, "spread", None)
        if spread is None or avals[0] is None or any(aval is not None for aval in avals[1:]):
            return None
        return partial(spread, aval=avals[0], params=params)

    def cotangents(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Call the author's vjp, whose single result stands for the first operand, or the rules that are asked for."""
        if self.rule is None:
            assert self.rules is not None
            return [
                None if aval is None or rule is None else rule(ct, aval, out, *operands, **params)
                for aval, rule in zip(avals, self.rules, strict=True)
            ]
        cts = self.rule(ct, out, *operands, **params)
        if isinstance(cts, tuple):
            if len(cts) == len(operands):
                if self.claim is not None:
                    return self.claim.require_cotangents("its vjp", cts, avals, (ct, *operands))
                return cts
            given = f"its vjp gave {len(cts)} cotangents"
        elif all(aval is None for aval in avals[1:]):
            found = (cts, *(None,) * (len(operands) - 1))
            if self.claim is not None:
                return self.claim.require_cotangents("its vjp", found, avals, (ct, *operands))
            return found
        else:
            given = "its vjp gave one value that is no tuple"
        needed = f"{len(operands)} are needed, one for each operand"
        raise GraphError(self.name, given, needed, "Give None for operands without one")


class Constant(Primitive):
    """Have the derivative zero wherever it has one: comparisons, rounding, argmax.

    Args:
        name: its name, unique among primitives.
        evaluate: the operation on arrays.
        outputs: the number of results.
        must_run: whether an evaluation checks something, too, and is needed where nobody uses the results.
        **shapes: `form`, from which shapes and batching follow, or a rule `batch`; see `ShapeRules`.

    >>> Constant("steps", np.floor)
    <constant primitive steps>
    """

    kind = "constant"

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        *,
        outputs: int = 1,
        must_run: bool = False,
        **shapes: Unpack[ShapeRules],
    ) -> None:
        super().__init__(name, evaluate, **shapes)
        self.outputs = outputs
        self.must_run = must_run
        self.firm = shapes.get("firm", not isinstance(evaluate, np.ufunc))
        self.at_points = isinstance(evaluate, np.ufunc) and evaluate.nout == 1 and evaluate.signature is None

    def hold_to(self, claim: Claim) -> None:
        """Compare nothing: there are no rules."""
