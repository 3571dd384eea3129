"""Primitives: what all of them have, and the registry. `kinds` has their kinds, `structured` those that run graphs."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from types import CodeType
from typing import Any, ClassVar, NoReturn, Protocol, Self, TypedDict, Unpack

import numpy as np

from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.diagnostics.source_positions import is_own
from wengert.core.primitives.signatures import Rule, rule_error
from wengert.core.values.aval import Aval
from wengert.errors import DtypeError, UsageError
from wengert.support.caches import Cache, cached
from wengert.support.records import NamedTuple

PRIMITIVES: dict[str, Primitive] = {}
MOST_SAVINGS = 256
"""For how many choices of operands a primitive remembers what is saved: one with eight operands has as many."""


class Occasion(NamedTuple):
    """Say when a user's primitive was declared.

    Attributes:
        module: the module that declares it.
        body: the module or the cell of a notebook that was being run, innermost; compiled anew, it is another one.
    """

    module: str
    body: CodeType | None


class DeclaredForm(Protocol):
    """Be a form, as far as a primitive is concerned that is declared with one; `wengert.core.forms` has them."""

    def evaluation(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """Return what the primitive is to be evaluated by."""

    def rule(self, rule: Callable[..., Any], leading: int) -> Callable[..., Any]:
        """Return the function that is called for a rule; `leading` arguments stand before its operands."""

    def compose(self, primitive: Any, params: Any, shape: Any, before: Any) -> Any:
        """Return the steps that are one view after another, in the usual order, or None; see `Form.compose`."""


class RoutineCall(NamedTuple):
    """Say how a routine of native code is called.

    Attributes:
        routine: what the kernel computes, one of `wengert.emission.routines.matrix_routines`.
        turned: the places of operands and results of which it takes rows as columns.
        fields: further ones of `wengert.emission.routines.matrix_problems.MATRICES`.
        operands: the places of those that it reads, in its order; None if it reads all as they are.
    """

    routine: str
    turned: Sequence[int] = ()
    fields: Mapping[str, int] = {}
    operands: Sequence[int] | None = None


class PointRules(TypedDict, total=False):
    """Hold what a primitive of any kind may say of what it computes at a point, from which its kernels follow.

    Attributes:
        scalar: the operation on scalars: in NumPy's functions and operators, of operands of the dtypes of NumPy's own
            loop and of the parameters by keyword; it gives None where it has no expression. Or the name of an opcode,
            or of one for each result; "copy" for the operand as it is. Ufuncs that are opcodes need none. Reductions
            say what they are made of, by `numpy.sum` and `numpy.max` along axes that are kept.
        parts: the same of complex numbers: in pairs of scalars, to one or a pair. "each" if it does to each part what
            it does to a real number.
        loop: the ufunc whose loops it has, or the operands that `scalar` takes in their own dtypes, not in that of the
            result. A ufunc has its own.
        cost: processor cycles of a vector, about, if they are many more than those of an addition.
        cheap: whether it takes about as long as reading its result from memory.
        linear_in: of an elementwise one, groups of operands in which it is linear, in those of one together.
        not_negative: the operands that must not be negative for results not to be; () where these never are.
        operator: Python's operator of the same meaning, which Python numbers alone are given; None for functions.
        counts: whether this takes Python's truths for 0 and 1: `True + True` is 2, where NumPy's is true.
        whole_bits: how many bits Python's whole numbers may have if its result is to have 64; 0 if that is not known.
            Or a function that gives it for operands, of which literals are known, or for each of them a range.
        kink: a sentence on derivatives where there is none, or more than one to choose from, for docstrings.
        routine: of matrices, from the parameters, which it names, how native code is called for small ones: a
            `RoutineCall`, or None.
        usual_case: of a routine, in NumPy's functions, from operands and parameters, what it gives in the usual case:
            its result, or a tuple of them, and the truth whether this is the case, or None if it always is. Or None.
        rewrites: what may be in its place in a graph, each a function of the equation and of the equations that bind
            its operands; see `wengert.primitives.rewrites`.
    """

    scalar: Rule | str | tuple[str, ...] | None
    parts: Rule | str | None
    loop: np.ufunc | Container[int]
    cost: int
    cheap: bool
    linear_in: Sequence[Sequence[int]]
    not_negative: Sequence[int] | None
    operator: Callable[..., Any] | None
    counts: bool
    whole_bits: int | Callable[..., int | tuple[tuple[int, int], ...]]
    kink: str
    routine: Callable[..., RoutineCall | None] | None
    usual_case: Callable[..., tuple[Any, Any] | None] | None
    rewrites: tuple[Callable[..., Any], ...]


class ShapeRules(PointRules, total=False):
    """Hold the rules about shapes and numbers, too, that a primitive of any kind but `Elementwise` may be given.

    Attributes:
        form: how it runs over its elements, from which shapes and batching follow; see `wengert.core.forms.form`.
        batch: `batch(primitive, size, operands, batched, params)`: the result for all lanes, where no form fits.
        firm: whether Python numbers among the operands become NumPy scalars; see `Primitive`.
    """

    form: DeclaredForm | None
    batch: Rule | None
    firm: bool


class Primitive:
    """Be an operation with a name, an evaluation on arrays and, by its kind, derivatives.

    Attributes:
        name: the name it is registered and printed under.
        evaluate: the operation on ndarrays and numbers; parameters that are not arrays go by keyword.
        view: whether the result may share memory with operand 0, as NumPy's basic slices do.
        at_points: whether lanes are computed as all elements are: elementwise, or a ufunc with one result.
        fresh: whether the cotangents that `vjp` returns never share memory with the one it was given.
        outputs: the number of results; more than one come as a tuple.
        jvp: a direct forward rule, where there is one; otherwise it follows from the kind.
        structured: whether parameters hold graphs that the operation runs; see `wengert.core.primitives.structured`.
        firm: whether Python numbers among the operands become NumPy scalars: where NumPy would not heed that their
            dtypes give way.
        repeats: whether it runs a graph again and again, and is differentiated as one operation under a byte budget.
        unfolds: whether it is always evaluated on its operands as they are, whatever their traces.
        given_by_user: whether the vjp is a user's function, which may not be linear in the cotangent.
        gives_number: whether the result is a Python number, whose dtype gives way to that of arrays.
        masks: whether it leaves out NaN, so that a sweep that passes it has passed a mask.
        joins: whether elements of the result may be those of constants, so that their tangents are 0.
        piecewise: whether it is linear on pieces: rules do not depend on the operands but for where they jump.
        held: whether it is a user's, so that what its functions give is compared with its declaration.
        registered: whether it was declared, and not made for one call of a user's function.
        renewed: whether another was declared by its name before, so that the name alone does not say which it is.
        occasion: when a user declared it; None for the library's.
        only_saved: the results through which no derivative is known: they are only there for the vjp.
        must_run: whether an evaluation checks something besides giving results, and is needed where nobody uses these.
        steep: whether a partial can be infinite where the value is finite: at 0 that of a root, say.
        degree: of a root of operand 0, of which degree, 1 of its size; else 0.
        square: of a root (|x|, a norm), which has a kink where it is 0: gives for its parameters the primitive of the
            same operands whose result is the square of its own, and smooth; None where there is none.
        scales: the operands of which the result is a multiple each, or a part.
        raises: whether it raises operand 0 to a power: to that of operand 1, or to the second if there is none.
        sweeps_as: how a sweep pulls its nodes, a key of `wengert.traces.pulls.PulledCotangents.pulls`.
        form, batch: see `ShapeRules`.
        scalar, parts, loop, cost, cheap, linear_in, not_negative, operator, counts, whole_bits, kink, routine,
            usual_case, rewrites: see `PointRules`.

    >>> from wengert.extend import PRIMITIVES
    >>> PRIMITIVES["sin"].name, isinstance(PRIMITIVES["sin"], Primitive)
    ('sin', True)
    """

    kind: ClassVar[str]
    view = False
    at_points = False
    fresh = False
    structured = False
    outputs = 1
    jvp: Rule | None = None
    evaluate_large: Callable[..., Any] | None = None
    gives_number = False
    firm = True
    repeats = False
    unfolds = False
    given_by_user = False
    masks = False
    joins = False
    piecewise = False
    held = False
    registered = False
    renewed = False
    occasion: Occasion | None = None
    only_saved: Sequence[int] = ()
    must_run = False
    square: Callable[..., Primitive | None] | None = None
    raises = False
    sweeps_as = "whole"
    steep = False
    degree = 0
    scales: tuple[int, ...] = ()
    scalar: Rule | str | tuple[str, ...] | None = None
    parts: Rule | str | None = None
    cost = 1
    cheap = False
    linear_in: Sequence[Sequence[int]] = ()
    not_negative: Sequence[int] | None = None
    operator: Callable[..., Any] | None = None
    counts = False
    whole_bits: int | Callable[..., int | tuple[tuple[int, int], ...]] = 0
    kink = ""
    routine: Callable[..., RoutineCall | None] | None = None
    usual_case: Callable[..., tuple[Any, Any] | None] | None = None
    rewrites: tuple[Callable[..., Any], ...] = ()

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        *,
        form: DeclaredForm | None = None,
        batch: Rule | None = None,
        firm: bool | None = None,
        **points: Unpack[PointRules],
    ) -> None:
        if not isinstance(name, str):
            raise rule_error(f"of type {type(name).__name__}", "a name that is no string", "a string is needed")
        if not callable(evaluate):
            raise rule_error(name, f"the evaluation is {evaluate!r}", "a callable is needed")
        if form is not None and (isinstance(form, type) or not hasattr(form, "results")):
            raise rule_error(name, f"the form is {form!r:.80}", "a form of wengert.extend is needed")
        self.name = name
        self.evaluate = evaluate
        self.form = form
        self.batch = batch
        if unknown := points.keys() - PointRules.__annotations__.keys():
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {min(unknown)!r}")
        self.loop: np.ufunc | Container[int] = evaluate if isinstance(evaluate, np.ufunc) else ()
        vars(self).update(points)
        self.savings: Cache[tuple[bool, ...], tuple[bool, tuple[int, ...]]] = Cache(most=MOST_SAVINGS)
        if firm is not None:
            self.firm = firm

    def lower(self, _params: Mapping[str, Any], _lowering: Any) -> Any:
        """Return what a `StructuredLowering` makes of the graphs it runs, by the method for what is done with them.

        None for what has no other form than its evaluation.
        """
        return None

    def __repr__(self) -> str:
        return f"<{self.kind} primitive {self.name}>"

    def __call__(self, *_operands: Any, **_params: Any) -> NoReturn:
        """Tell how a primitive is applied.

        Raises:
            DtypeError: always.
        """
        given, needed = "it was called, and is no function", "its operands are needed beside it"
        raise DtypeError(f"primitive {self.name}", given, needed, "Write wengert.extend.apply(primitive, ...)")

    def __copy__(self) -> Self:
        """Return another primitive of the same declaration."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __reduce__(self) -> Any:
        """Return the name that a registered primitive is known by; others are taken apart."""
        return (registered_primitive, (self.name,)) if self.registered else super().__reduce__()

    def changes(self, _params: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Return the operands that may be changed in place if nobody reads them later, with the results they become."""
        return ()

    @cached
    def strict(self) -> Callable[..., Any]:
        """The evaluation, stopping where one of its lines would warn."""
        return strict(self.evaluate)

    @cached
    def strict_large(self) -> Callable[..., Any]:
        """The evaluation of large arrays, likewise."""
        assert self.evaluate_large is not None
        return strict(self.evaluate_large)

    @cached
    def discreet(self) -> bool:
        """Whether the vjp is code of the library that calls none of the user's."""
        codes = [getattr(inspect.unwrap(rule), "__code__", None) for rule in self.vjp_rules() if rule is not None]
        return all(code is not None and is_own(code.co_filename) for code in codes)

    @property
    def guarded_primitive(self) -> Primitive:
        """The same primitive for sweeps that have passed a mask."""
        return self

    def shielded_primitive(self, masked: bool) -> Primitive:
        """Return the same primitive for sweeps that have passed an infinite partial; `masked` if a mask, too."""
        return self.guarded_primitive if masked else self

    def hides(self, _cts: Sequence[Any]) -> bool:
        """Tell whether a sweep passes a mask because some of the results have no cotangent."""
        return False

    def surround(self, form: DeclaredForm) -> None:
        """Evaluate in the surroundings that a form has for that, once the primitive is registered."""
        self.evaluate = form.evaluation(self.evaluate)

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return what the vjp calls that the declaration gave; None for whatever it finds in another way."""
        return (None,)

    def user_functions(self) -> Sequence[Any]:
        """Return the functions of one call's surroundings that an evaluation calls: those of rules of the user."""
        return ()

    def require_unchanged(self) -> None:
        """Raise if what user's functions that a graph calls look at has been changed since they were traced."""

    def lasting(self, _inputs: Sequence[Any], _outputs: Sequence[Any], _in_vain: Counter[Any]) -> Primitive:
        """Return what an equation of these inputs and results holds: the primitive, unless it is of one call only.

        The trace counts in `_in_vain` how often the functions of such calls were traced to no graph.
        """
        return self

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Return whether the output, and which operands, the vjp needs, given which operands want a cotangent."""
        raise NotImplementedError

    def saving(self, wanted: tuple[bool, ...]) -> tuple[bool, tuple[int, ...]]:
        """Return what `select_residuals` does, the operands by their positions; each case is worked out once."""
        found = self.savings.get(wanted)
        if found is None:
            need_out, need = self.select_residuals(wanted)
            found = self.savings[wanted] = need_out, tuple(filter(need, range(len(wanted))))
        return found

    def kept_output(self, out: Any) -> Any:
        """Return what to save of the output where the vjp needs it: all of it, unless there are several."""
        return out

    def weights(self, _operands: Sequence[Any], _out: Aval, _params: Mapping[str, Any]) -> Any:
        """Return by how much each element of operand 0 enters the result, where each enters one element of it.

        None where it is itself that enters, or not multiplied by something that is known.
        """
        return None

    def part_of_cotangent(self, ct: Any, avals: Sequence[Aval | None], position: int, params: Mapping[str, Any]) -> Any:
        """Return what of a cotangent belongs to an operand that only enters a part of the result."""
        raise NotImplementedError

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Return a cotangent for each operand whose aval is given, and None for the others."""
        raise NotImplementedError


def registered_primitive(name: str) -> Primitive:
    """Return the primitive of a name, which pickled ones are known by.

    Raises:
        UsageError: none is registered under it.
    """
    if name not in PRIMITIVES:
        given = f"the primitive {name}, which is unknown here"
        raise UsageError("pickle", given, "a registered one is needed", "Import the module that declares it first")
    return PRIMITIVES[name]


def register(primitive: Primitive) -> None:
    """Enter a primitive under its name, which must be new."""
    if primitive.name in PRIMITIVES:
        occasion = PRIMITIVES[primitive.name].occasion
        given = "the name is already registered" + (f" by {occasion.module}" if occasion else "")
        raise rule_error(primitive.name, given, "each primitive is declared once, outside of functions")
    PRIMITIVES[primitive.name] = primitive
    primitive.registered = True
    if primitive.form is not None:
        primitive.surround(primitive.form)
    if primitive.operator is not None:
        primitive.firm = False
