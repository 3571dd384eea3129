"""Primitives by the kind of their Jacobian: what the author gives, and the vjp that follows from it.

The constructor of a kind takes what the author gives; `wengert.core.declare` has the functions that also enter the
primitive in the registry. The rules are as `wengert.core.rule` says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack

import numpy as np

from wengert._cached import cached
from wengert.core.aval import Aval
from wengert.core.cache import Cache
from wengert.core.complaints import strict
from wengert.core.cotangent import strong_zero, unbroadcast
from wengert.core.numbers import OPERATORS
from wengert.core.rule import Rule, Signature, misdeclared
from wengert.native.elementwise import shared

if TYPE_CHECKING:
    from wengert.core.form import Form

__all__ = [
    "PRIMITIVES",
    "Constant",
    "Elementwise",
    "Linear",
    "Multilinear",
    "Opaque",
    "Primitive",
    "Pullback",
    "ShapeRules",
    "Structured",
    "register",
]

PRIMITIVES: dict[str, Primitive] = {}
MOST_SAVINGS = 256
"""For how many choices of operands a primitive remembers what is saved: one with eight operands has as many."""


class ShapeRules(TypedDict, total=False):
    """Hold the rules about shapes and numbers that a primitive of any kind but `Elementwise` may be given.

    Attributes:
        form: how it runs over its elements, from which shapes and batching follow; see `wengert.core.form`.
        batch: `batch(primitive, size, operands, batched, params)`: the result for all lanes, where no form fits.
        firm: whether Python numbers among the operands become NumPy scalars; see `Primitive`.
    """

    form: Form | None
    batch: Rule | None
    firm: bool


class Primitive:
    """Be an operation with a name, an evaluation on arrays and, by its kind, derivatives.

    Attributes:
        name: the name it is registered and printed under.
        evaluate: the operation on ndarrays and numbers; parameters that are not arrays go by keyword.
        view: whether the result may share memory with operand 0, as NumPy's basic slices do.
        fresh: whether the cotangents that `vjp` returns never share memory with the one it was given.
        outputs: the number of results; more than one come as a tuple.
        jvp: a direct forward rule, where there is one; otherwise it follows from the kind.
        structured: whether parameters hold graphs that the operation runs; see `Structured`.
        operator: Python's operator of the same meaning, which Python numbers alone are given; None for functions.
        firm: whether Python numbers among the operands become NumPy scalars: where NumPy would not heed that their
            dtypes give way.
        unfolds: whether it is always evaluated on its operands as they are, whatever their traces.
        given_by_user: whether the vjp is a user's function, which may not be linear in the cotangent.
        gives_number: whether the result is a Python number, whose dtype gives way to that of arrays.
        registered: whether it was declared, and not made for one call of a user's function.
        only_saved: the results through which no derivative is known: they are only there for the vjp.
        must_run: whether an evaluation checks something besides giving results, and is needed where nobody uses these.
        form, batch: see `ShapeRules`.
    """

    kind: ClassVar[str]
    view = False
    fresh = False
    structured = False
    outputs = 1
    jvp: Rule | None = None
    evaluate_large: Callable[..., Any] | None = None
    operator: Callable[..., Any] | None = None
    gives_number = False
    firm = True
    unfolds = False
    given_by_user = False
    registered = False
    only_saved: Sequence[int] = ()
    must_run = False

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        *,
        form: Form | None = None,
        batch: Rule | None = None,
        firm: bool | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise misdeclared(f"of type {type(name).__name__}", "a name that is no string", "a string is needed")
        if not callable(evaluate):
            raise misdeclared(name, f"the evaluation is {evaluate!r}", "a callable is needed")
        if form is not None and not hasattr(form, "results"):
            raise misdeclared(name, f"the form is {form!r:.80}", "a form of wengert.extend is needed")
        self.name = name
        self.evaluate = evaluate
        self.form = form
        self.batch = batch
        self.savings: Cache[tuple[bool, ...], tuple[bool, tuple[int, ...]]] = Cache(most=MOST_SAVINGS)
        if firm is not None:
            self.firm = firm

    def __repr__(self) -> str:
        return f"<{self.kind} primitive {self.name}>"

    @cached
    def strict(self) -> Callable[..., Any]:
        """The evaluation, stopping where one of its lines would warn."""
        return strict(self.evaluate)

    @cached
    def strict_large(self) -> Callable[..., Any]:
        """The evaluation of large arrays, likewise."""
        assert self.evaluate_large is not None
        return strict(self.evaluate_large)

    def lasting(self, _inputs: Sequence[Any], _avals: Sequence[Aval]) -> Primitive:
        """Return what an equation of these inputs and results holds: the primitive, unless it is of one call only."""
        return self

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Return whether the output, and which operands, the vjp needs, given which operands want a cotangent."""
        raise NotImplementedError

    def saving(self, wanted: tuple[bool, ...]) -> tuple[bool, tuple[int, ...]]:
        """Return what `saved` does, the operands by their positions; each case is worked out once."""
        found = self.savings.get(wanted)
        if found is None:
            need_out, need = self.saved(wanted)
            found = self.savings[wanted] = need_out, tuple(filter(need, range(len(wanted))))
        return found

    def kept_output(self, out: Any) -> Any:
        """Return what to save of the output where the vjp needs it: all of it, unless there are several."""
        return out

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Return a cotangent for each operand whose aval is given, and None for the others."""
        raise NotImplementedError


def register(primitive: Primitive) -> None:
    """Enter a primitive under its name, which must be new."""
    if primitive.name in PRIMITIVES:
        raise misdeclared(primitive.name, "the name is already registered", "each primitive is declared once")
    PRIMITIVES[primitive.name] = primitive
    primitive.registered = True
    primitive.operator = OPERATORS.get(primitive.name)
    if primitive.operator is not None:
        primitive.firm = False


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
        overwrite: a ufunc of `t` and `y` that is the rule of operand 0, so that its result may take the memory of `t`.

    Raises:
        RegistrationError: a rule is missing or has the wrong number of arguments.

    >>> cube = Elementwise("cube", lambda x: x**3, d=lambda t, _out, x: t * 3 * x**2)
    >>> cube.vjp(np.float64(1.0), None, [2.0], [Aval((), np.dtype(float))], {})
    [np.float64(12.0)]
    """

    kind = "elementwise"
    fresh = True

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        d: Rule | Sequence[Rule | None],
        *,
        singular: bool = False,
        regular: Callable[..., bool] | None = None,
        passes: bool = False,
        overwrite: np.ufunc | None = None,
    ) -> None:
        super().__init__(name, evaluate)
        rules: tuple[Rule | None, ...] = tuple(d) if isinstance(d, Sequence) else (d,)
        if not any(rule is not None for rule in rules):
            raise misdeclared(name, "no rule was given", "a function d(t, out, *xs) is needed for some operand")
        if isinstance(evaluate, np.ufunc) and evaluate.nin != len(rules):
            raise misdeclared(name, f"{len(rules)} rules were given", f"{evaluate.nin} operands need one each")
        self.firm = len(rules) == 1
        self.signatures = tuple(None if r is None else Signature(name, r, 2, len(rules)) for r in rules)
        self.singular = singular
        self.passes = passes
        self.overwrite = overwrite
        self.overwrite_large = overwrite and shared(overwrite)
        if isinstance(evaluate, np.ufunc) and evaluate.nin <= 2 and evaluate.nout == 1:
            self.evaluate_large = shared(evaluate)
        self.regular = regular
        self.declared = rules
        self.rules = tuple(strong_zero(r, regular) if r is not None and singular else r for r in rules)

    @cached
    def guarded(self) -> Elementwise:
        """The same primitive with the strong zero on every rule, for sweeps that have passed a mask."""
        if (self.singular and self.regular is None) or self.passes:
            return self
        twin = copy.copy(self)
        twin.rules = tuple(rule and strong_zero(rule) for rule in self.declared)
        twin.overwrite = None
        twin.registered = False
        return twin

    def needs_out(self, position: int) -> bool:
        """Tell whether the rule of an operand needs the output."""
        signature = self.signatures[position]
        return signature is not None and signature.needs(1)

    def needs(self, position: int, operand: int) -> bool:
        """Tell whether the rule of the operand at `position` needs another operand (or itself)."""
        signature = self.signatures[position]
        return signature is not None and signature.needs(2 + operand)

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
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
        **shapes: Unpack[ShapeRules],
    ) -> None:
        super().__init__(name, evaluate, **shapes)
        if transpose is None:
            transpose = self.transpose_by_form if hasattr(self.form, "transpose") else ()
        self.transposes: tuple[Rule, ...] = tuple(transpose) if isinstance(transpose, Sequence) else (transpose,)
        if not self.transposes:
            raise misdeclared(name, "no transpose was given", "one for each linear operand is needed")
        for rule in self.transposes:
            Signature(name, rule, 2, None)
        self.variadic = variadic
        self.view = view
        self.fresh = fresh
        self.accumulate = accumulate
        self.rewrite: Rule = rewrite or self.cannot_rewrite
        self.consume = consume
        self.negates = False  # of a view: whether what is written through it has the negated part of the cotangent

    def transpose_by_form(self, ct: Any, aval: Aval, **params: Any) -> Any:
        """Return the cotangent of the only operand as the form gives it."""
        return self.form.transpose(0, ct, aval, (), params)  # type: ignore[union-attr]  # it has it

    def cannot_rewrite(self, *_operands: Any, **_params: Any) -> Any:
        """Refuse evaluation in place: the declaration gives none."""
        raise misdeclared(self.name, "no evaluation in place was declared", "rewrite= is needed to mutate with it")

    def saving(self, wanted: tuple[bool, ...]) -> tuple[bool, tuple[int, ...]]:
        """Return what `saved` does; of any number of linear operands nothing is saved, and nothing remembered."""
        return (False, ()) if self.variadic else super().saving(wanted)

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
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
            raise misdeclared(name, f"{given} were given", "two or more are needed, one per operand")
        for rule in transposes:
            Signature(name, rule, 1 + len(transposes), 0)
        self.transposes = transposes

    transposes: Sequence[Rule] | None = None

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
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
                if self.transposes is None:
                    found[i] = self.form.transpose(i, ct, aval, others, params)  # type: ignore[union-attr]  # it has it
                else:
                    found[i] = self.transposes[i](ct, aval, *others, **params)
        return found


class Opaque(Primitive):
    """Have a Jacobian of no special form: the author writes the vjp of all operands at once.

    Args:
        name: its name, unique among primitives.
        evaluate: the operation on arrays; several results come as a tuple.
        vjp: `vjp(ct, out, *operands, **params)`, linear in `ct`, returning a tuple with a cotangent (or None) for
            each operand; one value alone is that of the first operand. With several outputs `ct` is a list with None
            for those that received no cotangent, and `out` a tuple.
        jvp: `jvp(tangents, out, *operands, **params)`, where a direct one is cheaper than what follows from `vjp`.
        outputs: the number of results.
        **shapes: `form`, from which shapes and batching follow, or a rule `batch`; see `ShapeRules`.

    Raises:
        RegistrationError: the vjp takes too few arguments.

    >>> length = Opaque("length", np.linalg.norm, vjp=lambda ct, out, x: ct * x / out)
    >>> length.vjp(1.0, 5.0, [np.array([3.0, 4.0])], [Aval((2,), np.dtype(float))], {})
    (array([0.6, 0.8]),)
    """

    kind = "opaque"

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        vjp: Rule,
        *,
        jvp: Rule | None = None,
        outputs: int = 1,
        **shapes: Unpack[ShapeRules],
    ) -> None:
        super().__init__(name, evaluate, **shapes)
        self.signature = Signature(name, vjp, 2, None)
        self.rule = vjp
        self.jvp = jvp
        self.outputs = outputs

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save what the vjp names."""
        return self.signature.needs(1), lambda operand: self.signature.needs(2 + operand)

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Call the author's vjp; a single result stands for the first operand."""
        cts = self.rule(ct, out, *operands, **params)
        return cts if isinstance(cts, tuple) else (cts, *(None,) * (len(operands) - 1))


class Constant(Primitive):
    """Have the derivative zero wherever it has one: comparisons, rounding, argmax.

    Args:
        name: its name, unique among primitives.
        evaluate: the operation on arrays.
        outputs: the number of results.
        **shapes: `form`, from which shapes and batching follow, or a rule `batch`; see `ShapeRules`.

    >>> Constant("steps", np.floor)
    <constant primitive steps>
    """

    kind = "constant"

    def __init__(
        self, name: str, evaluate: Callable[..., Any], *, outputs: int = 1, **shapes: Unpack[ShapeRules]
    ) -> None:
        super().__init__(name, evaluate, **shapes)
        self.outputs = outputs
        self.firm = not isinstance(evaluate, np.ufunc)


class Structured(Primitive):
    """Run graphs that are among the parameters: branches, loops, calls.

    Where the operands have elements, the graphs are evaluated on them as they are, so every trace sees the operations
    inside. Where they are being staged there is one equation, and the methods here give those that follow from it.
    There are any number of results, always in a tuple.
    """

    kind = "structured"
    structured = True
    firm = False
    outputs = 0

    def trimmed(
        self, _used: Sequence[bool], _params: Mapping[str, Any]
    ) -> tuple[Sequence[bool], Sequence[bool], Mapping[str, Any]] | None:
        """Return which operands and results are needed for those that are used, and the parameters for them alone.

        None if all are.
        """
        return None

    def hoisted(self, _equation: Any) -> tuple[list[Any], dict[Any, Any]] | None:
        """Return equations in place of one of this operation, and values in place of some of its results.

        None if nothing in it can be computed before it.
        """
        return None

    def reach(self, flags: Sequence[bool], params: Mapping[str, Any], smooth: bool) -> list[bool]:
        """Return which results depend on the flagged operands; with `smooth`, by other than constant operations."""
        raise NotImplementedError

    def tangent(
        self, values: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the results and their tangents, None for structural zeros, from those of the operands."""
        found, moved = self.moved(values, [None if t is None else (t,) for t in tangents], params, None)
        return found, [None if t is None else t[0] for t in moved]

    def moved(
        self, values: Sequence[Any], parts: Sequence[Any], params: Mapping[str, Any], order: int | None
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the results and what belongs to each: a tuple of the coefficients 1 to `order` of its series.

        Where the order is None, forward mode, that is a tuple of its tangent. None stands for zeros.
        """
        raise NotImplementedError

    def lanes(
        self, size: int, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Sequence[bool]]:
        """Return the results for all lanes of a batch, and which of them differ between lanes."""
        raise NotImplementedError

    def linearized(
        self, values: Sequence[Any], wanted: Sequence[bool], params: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Sequence[bool], Pullback]:
        """Return the results, which of them depend on the wanted operands, and the pullback of the call."""
        raise NotImplementedError


class Pullback(Primitive):
    """Be the reverse of one call of a structured primitive, which holds what it needs of the forward pass."""

    kind = "opaque"

    def __init__(self, name: str, outputs: int, rule: Rule) -> None:
        super().__init__(name, rule)
        self.outputs = outputs

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Call the rule with the cotangents of the results, None for those without."""
        found: Sequence[Any] = self.evaluate(ct)
        return [None if aval is None else c for c, aval in zip(found, avals, strict=True)]
