"""Calls of functions that bring their own rules: what `Function` and `custom_rule` have in common.

Each call is a primitive of its own, which makes the call once and then knows what its rules need. All lanes of a batch
are again such a call, of a function of all lanes (`InLanes`): the user's functions see lanes, once for all of them, and
one by one only where they look at elements. In a graph stands `InGraph`, which makes a new call at each evaluation.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from wengert.core.diagnostics.source_positions import Position, caller, position_of
from wengert.core.forms.batching import lead
from wengert.core.forms.shape_probes import example_of
from wengert.core.forms.view_forms import Region
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.memory.memory_layout import strides_of
from wengert.core.memory.views import current
from wengert.core.primitives.declaration_checks import TRACING_CALLS
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import Aval, aval_of, is_differentiable, strong
from wengert.core.values.dispatch import apply, as_tensor, innermost
from wengert.core.values.recording import next_level
from wengert.core.values.tensor import (
    Tensor,
    Trace,
    constant_tensor,
    innermost_trace,
    is_staged,
    make_tensor,
    raw,
    unwrap_plain,
    wrapped_constant,
)
from wengert.errors import DtypeError, GraphError, WengertError
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.batch import Batch, make_batched, stack_lanes, warn_of_loop
from wengert.traces.dual import propagate_opaque

Values = Sequence[Any]
Avals = Sequence[Aval | None]

TRIES = 3  # of tracing a function in one trace: each costs a walk through all it reaches, 8,000 in vain took 14 s


class UserCall(Primitive):
    """Be one call of a function with rules: a primitive whose operands are the Tensors among its arguments.

    Attributes:
        function: the user's function or class, of which warnings are given once.
        places: where the operands stand among the arguments.
        has_jvp: whether there is a forward rule.
    """

    kind = "opaque"
    firm = False
    results = "results"

    def __init__(self, function: Any, name: str, places: Sequence[int], has_jvp: bool) -> None:
        super().__init__(name, self.evaluate)
        self.function = function
        del self.evaluate, self.batch  # the methods below; bound to the instance they would keep each other alive
        self.places = places
        self.has_jvp = has_jvp

    def compute(self, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Make the call on Tensors that the user's function may look at as it likes; return its results."""
        raise NotImplementedError

    def compute_lanes(self, lanes: InLanes, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Make the calls of all lanes; return their results with lanes in front."""
        return lanes.together(self.compute_lane, operands, lanes.flags, unroll=not any(map(is_staged, operands)))

    def compute_lane(self, values: Values) -> Sequence[Tensor]:
        """Make the call of one lane; return its results, which are remembered."""
        found = self.compute([readable(value) for value in values])
        self.remember(found)
        return found

    def pull(self, ct: Any, out: Any, operands: Values, avals: Avals) -> Values:
        """Apply the reverse rule; see `Primitive.vjp`."""
        raise NotImplementedError

    def push(self, tangents: Values, out: Any, operands: Values) -> Any:
        """Apply the forward rule, where there is one."""
        raise NotImplementedError

    def anew(self, operands: Values) -> UserCall:
        """Return the same call, not made yet, for other operands."""
        raise NotImplementedError

    def require_like(self, traced: UserCall) -> None:
        """Raise if what the call told its reverse rule is not what it told while it was traced."""

    @property
    def has_state(self) -> bool:
        """Whether the call told its reverse rule something besides Tensors."""
        return False

    @property
    def is_relied_upon(self) -> bool:
        """Whether a traced reverse rule has read what the call told it besides Tensors."""
        return False

    def follow(self, traced: UserCall) -> None:
        """Take note of the call in a graph that this one makes again."""

    def compare(self, other: UserCall) -> None:
        """Take note of what this call and one on other values told their reverse rules differently."""

    @property
    def depends_on_values(self) -> bool:
        """Whether something was found different."""
        return False

    def evaluate(self, *values: Any) -> Any:
        """Make the call; results have memory that neither its arguments nor the user may write to."""
        taken = [readable(value) for value in values]
        found = tuple(unshare(x, taken) for x in self.compute(taken))
        self.outputs = len(found)
        return found if self.outputs > 1 else found[0]

    def vjp(self, ct: Any, out: Any, operands: Values, avals: Avals, _params: Any) -> Values:
        """Apply the reverse rule; lane by lane if it looks at elements."""
        if any(ct[i] is not None for i in self.only_saved):
            raise self.unknown_error(position_of(*caller()))
        cts, outs = self.split_results(ct), [] if out is None else self.split_results(out)

        def rule(values: Values) -> Values:
            c, o, x = divide_values(values, len(cts), len(outs))
            return self.pull(self.join_results(c), self.join_results(o) if outs else None, x, avals)

        return self.apply_rule(rule, [*cts, *outs, *operands])

    def jvp(self, tangents: Values, out: Any, *operands: Any) -> Any:
        """Apply the forward rule; lane by lane if it looks at elements."""
        outs = self.split_results(out)

        def rule(values: Values) -> Values:
            t, o, x = divide_values(values, len(tangents), len(outs))
            return self.split_results(self.push(t, self.join_results(o), x))

        if self.has_jvp:
            found = list(self.apply_rule(rule, [*tangents, *outs, *operands]))
        else:
            found = self.split_results(propagate_opaque(self, tangents, out, operands, {}))
        if self.only_saved:
            code, offset = caller()
            for i in self.only_saved:
                found[i] = unknown_like(outs[i], lambda: self.unknown_error(position_of(code, offset)))
        return self.join_results(found)

    def unknown_error(self, place: Position) -> GraphError:
        """Return the error about a derivative of what the call only saved; `place` is that of the call."""
        return GraphError(
            f"{self.name}.forward",
            "a value that it saved, neither an argument nor a result, by which backward or jvp is differentiated "
            f"(at {place})",
            "its derivative is not known",
            "Return it as a further result, or compute it in backward from the arguments; if it is a constant, "
            "pass it to ctx.mark_non_differentiable",
        )

    def apply_rule(self, rule: Callable[[Values], Values], values: Values) -> Values:
        """Return the results of a rule; where the values are lanes at which it cannot look, lane by lane."""
        before = refusal_count()
        try:
            return rule(values)
        except (WengertError, TypeError, ValueError) as error:
            trace, _ = innermost(values)
            if not is_refusal(error) or not isinstance(trace, Batch):
                raise
        forgive(before)
        lanes = [None if x is None else lead(trace.value_below(x), trace.is_batched(x), trace.size) for x in values]
        found = self.one_by_one(lambda xs: self.apply_rule(rule, xs), lanes, [True] * len(lanes), trace.size)
        return [None if x is None else make_batched(unwrap_plain(x), trace) for x in found]

    def one_by_one(self, rule: Callable[[Values], Values], values: Values, flags: Sequence[bool], size: int) -> Values:
        """Return what a rule of one lane gives for all, in front, where the flagged values have lanes in front."""
        lanes = [rule([lane(x, i) if flag else x for x, flag in zip(values, flags, strict=True)]) for i in range(size)]
        warn_of_loop(self.name, self.function)
        return [self.gather_lanes(parts) for parts in zip(*lanes, strict=True)]

    def gather_lanes(self, lanes: Values) -> Any:
        """Return a result of all lanes, which were computed one by one; zeros where some gave none."""
        example = next((x for x in lanes if x is not None), None)
        if example is None:
            return None
        return stack_lanes("vmap", self.name, [np.zeros_like(example) if x is None else x for x in lanes])

    def split_results(self, value: Any) -> list[Any]:
        """Return the parts of a value that belong to each result."""
        return list(value) if self.outputs > 1 else [value]

    def join_results(self, parts: Values) -> Any:
        """Return the parts of all results as rules receive and return them."""
        return tuple(parts) if self.outputs > 1 else parts[0]

    def remember(self, results: Sequence[Tensor]) -> None:
        """Know what one lane gives from now on, so that it need not be asked for with examples."""
        self.outputs = len(results)
        known = [Variable(x.shape, x.dtype, "", strides_of(x)) for x in results]
        self.form = Region(lambda _inputs, _params: known)

    def batch(self, _primitive: Primitive, size: int, operands: Values, batched: Sequence[bool], _: Any) -> Any:
        """Compute all lanes. Below, it is again a call of a function with rules: those of one lane, for all lanes."""
        return apply(InLanes(self, size, batched), *operands)

    @property
    def strict(self) -> Callable[..., Any]:  # kept, it would refer to itself
        """The evaluation, which is the user's."""
        return self.evaluate

    @property
    def code(self) -> Any:
        """What the calls of one function have in common, those of a closure that is made anew for each of them too."""
        return self.function

    def lasting(self, inputs: Values, outputs: Sequence[Variable], in_vain: Counter[Any]) -> Primitive:
        """Return what stands for the call in a graph.

        What it told its reverse rule comes from examples; another call on others tells whether that depends on values.
        """
        if self.has_state:
            examples = [strong(example_of(x)) for x in inputs]
            other = self.anew(examples)
            other.evaluate(*(x * x.dtype.type(0.5) if is_differentiable(x.dtype) else x for x in examples))
            self.compare(other)
        values, stays = None, None
        if TRACING_CALLS and in_vain[self.code] < TRIES:
            values, stays = TRACING_CALLS[0](self, inputs, outputs)
            in_vain[self.code] += values is None
        return InGraph(self, [v.aval for v in outputs], values, stays)


class InLanes(UserCall):
    """Be the calls of all lanes together, with the rules of one lane applied to each.

    Attributes:
        one: the call of one lane.
        size: the number of lanes.
        flags: for each operand, whether it has lanes (in front).
    """

    def __init__(self, one: UserCall, size: int, flags: Sequence[bool]) -> None:
        super().__init__(one.function, one.name, one.places, one.has_jvp)
        self.one = one
        self.size = size
        self.flags = flags
        self.results = one.results
        self.given_by_user = one.given_by_user

    @property
    def code(self) -> Any:
        """What the calls of one lane have in common."""
        return self.one.code

    def user_functions(self) -> Sequence[Any]:
        """Return the functions that the call of one lane calls."""
        return self.one.user_functions()

    def compute(self, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Make the calls of all lanes."""
        found = self.one.compute_lanes(self, operands)
        self.only_saved = self.one.only_saved
        return found

    def anew(self, operands: Values) -> UserCall:
        """Return the same calls, not made yet."""
        return InLanes(self.one.anew(operands), self.size, self.flags)

    def require_like(self, traced: UserCall) -> None:
        """Compare the calls of one lane."""
        assert isinstance(traced, InLanes)
        self.one.require_like(traced.one)

    @property
    def has_state(self) -> bool:
        """Whether the call of one lane has."""
        return self.one.has_state

    @property
    def is_relied_upon(self) -> bool:
        """Whether that holds for the call of one lane."""
        return self.one.is_relied_upon

    def follow(self, traced: UserCall) -> None:
        """Take note of the call of one lane."""
        assert isinstance(traced, InLanes)
        self.one.follow(traced.one)

    def compare(self, other: UserCall) -> None:
        """Compare the calls of one lane."""
        assert isinstance(other, InLanes)
        self.one.compare(other.one)

    @property
    def depends_on_values(self) -> bool:
        """Whether something was found different in one lane."""
        return self.one.depends_on_values

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save the residuals that the rule of one lane needs, of all lanes."""
        return self.one.select_residuals(wanted)

    def kept_output(self, out: Any) -> Any:
        """Save the residuals that the rule of one lane needs, of all lanes."""
        return self.one.kept_output(out)

    def pull(self, ct: Any, out: Any, operands: Values, avals: Avals) -> Values:
        """Apply the reverse rule of one lane to each; operands that all lanes share get the sum."""
        cts, outs = self.split_results(ct), [] if out is None else self.split_results(out)
        lane_avals = [
            Aval(a.shape[1:], a.dtype) if flag and a is not None else a
            for a, flag in zip(avals, self.flags, strict=True)
        ]

        def rule(values: Values) -> Values:
            c, o, x = divide_values(values, len(cts), len(outs))
            return self.one.pull(self.join_results(c), self.join_results(o) if outs else None, x, lane_avals)

        flags = [True] * (len(cts) + len(outs)) + list(self.flags)
        found = self.together(rule, [*cts, *outs, *operands], flags)
        return [c if c is None or flag else np.sum(c, 0) for c, flag in zip(found, self.flags, strict=True)]

    def push(self, tangents: Values, out: Any, operands: Values) -> Any:
        """Apply the forward rule of one lane to each."""
        outs = self.split_results(out)

        def rule(values: Values) -> Values:
            t, o, x = divide_values(values, len(tangents), len(outs))
            return self.split_results(self.one.push(t, self.join_results(o), x))

        flags = [*self.flags, *[True] * len(outs), *self.flags]
        return self.join_results(self.together(rule, [*tangents, *outs, *operands], flags))

    def together(
        self, rule: Callable[[Values], Values], values: Values, flags: Sequence[bool], unroll: bool = True
    ) -> Values:
        """Return what a rule of one lane gives for all, lanes in front; lane by lane if it looks at elements.

        Args:
            rule: from values to results; there may be None among both.
            values: what it is called with.
            flags: which of them have lanes, in front.
            unroll: whether it may be called lane by lane.
        """
        trace = Batch(next_level(), self.size, "vmap")
        before = refusal_count()
        try:
            found = rule([in_lanes(x, trace) if flag else x for x, flag in zip(values, flags, strict=True)])
            return [None if x is None else in_front(x, trace) for x in found]
        except (WengertError, TypeError, ValueError) as error:
            if not unroll or not is_refusal(error):
                raise
        finally:
            trace.end()
        forgive(before)
        return self.one_by_one(rule, values, flags, self.size)


class StandInGraph(Primitive):
    """Stand for a primitive in a graph, which has its rules as long as derivatives are taken."""

    kind = "opaque"
    structured = True
    unfolds = True
    firm = False


class InGraph(StandInGraph):
    """Stand for a call in a graph, which has rules as long as derivatives are taken; values are those of a graph.

    Where the user's function looks at elements there is no such graph, and each evaluation is a call of its own.

    Args:
        traced: the call that was traced, on examples.
        avals: those of its results.
        values: the graph of its values; None if it looks at elements.
        stays: raises if what the function reads has been changed; None if nobody knows.
    """

    def __init__(
        self, traced: UserCall, avals: Sequence[Aval], values: Graph | None, stays: Callable[[], None] | None
    ) -> None:
        super().__init__(traced.name, self.call, form=Region(lambda _inputs, _params: avals))
        self.traced = traced
        self.values = values
        self.stays = stays if values is None else None
        self.fresh_call = traced.anew(())
        self.outputs = len(avals)

    @property
    def must_run(self) -> bool:  # type: ignore[override]  # it turns out when the reverse rule is traced
        """Whether each evaluation has to tell the reverse rule what it was told when it was traced."""
        return self.values is None and self.traced.is_relied_upon

    def require_unchanged(self) -> None:
        """Raise if what the function reads has been changed since it was traced, where each evaluation calls it."""
        if self.stays is not None:
            self.stays()

    def lower(self, _params: Mapping[str, Any], lowering: StructuredLowering) -> Any:
        """Be lowered as a graph that runs once: no derivative is taken through code."""
        return None if self.values is None else lowering.call(self.values)

    def call(self, *values: Any) -> Any:
        """Call the function on values of any kind."""
        if self.values is not None and not any(type(x) is Tensor for x in values):
            found = evaluate(self.values, values)
            return found if self.outputs > 1 else found[0]
        again = self.fresh_call.anew(values)
        again.follow(self.traced)
        found = apply(again, *values)
        again.require_like(self.traced)
        if again.outputs != self.outputs:
            given = f"{again.outputs} {again.results} where {self.outputs} were traced"
            needed = "as many in every call are needed in a traced function"
            raise GraphError(self.name, given, needed, "Return the same whatever the values are")
        return found


# Values as the user's functions see and give them


def numeric(name: str, what: str, value: Any) -> Tensor:
    """Return what a user's function gave as a Tensor; it must be a number or an array.

    Args:
        name: the function, for errors.
        what: what it gave, for errors.
        value: that.
    """
    cause = None
    if isinstance(value, Tensor | np.ndarray | np.generic | int | float | complex):
        try:
            return current(as_tensor(value))
        except DtypeError as error:
            cause = error
    given = (
        f"of dtype {value.dtype}" if isinstance(value, np.ndarray | np.generic) else f"of type {type(value).__name__}"
    )
    needed = "a Tensor, a numeric array or a number is needed"
    raise DtypeError(name, f"{what} {given}", needed, "Return that, or None where there is none") from cause


def readable(value: Any) -> Tensor:
    """Return a value as a Tensor whose memory is left alone by writes."""
    tensor = constant_tensor(value)
    tensor._kept = True
    return tensor


def value_below(value: Any) -> Any:
    """Return what a rule found, one level below."""
    return unwrap_plain(current(as_tensor(value)))


LEFT_AS_THEY_ARE = "a function with a derivative of its own must leave its arguments as they are"


def require_unwritten(name: str, taken: Sequence[Tensor], before: Sequence[Any], action: str) -> None:
    """Raise if a function with a derivative of its own wrote to an argument: nobody outside would see it."""
    for tensor, value in zip(taken, before, strict=True):
        if tensor._value is not value:
            raise GraphError(
                name,
                f"a write to an argument, of shape {tensor.shape}",
                LEFT_AS_THEY_ARE,
                action,
                place=position_of(*caller()),
            )


def unshare(tensor: Tensor, taken: Sequence[Tensor]) -> Any:
    """Return the array of a Tensor; a copy unless its memory is its own, and not that of the Tensors in `taken`."""
    value = raw(tensor)
    if not isinstance(value, np.ndarray):
        return value
    borrowed = tensor._kept or tensor is not current(tensor)
    return value.copy(order="K") if borrowed or any(np.may_share_memory(raw(x), value) for x in taken) else value


def belongs_to(value: Any, taken: Sequence[Tensor]) -> bool:
    """Tell whether a value depends on nothing that is being differentiated or batched but the Tensors of a call."""
    return innermost_trace(value) is None or traces_of(value) <= {trace for x in taken for trace in traces_of(x)}


def traces_of(value: Any) -> set[Trace]:
    """Return the traces of a value, at all levels."""
    found = set()
    while type(value) is Tensor and (value := current(value))._trace is not None:
        found.add(value._trace)
        value = value._value
    return found


def lane_number(values: Sequence[Any]) -> int:
    """Return for how many lanes values stand, of which each operation shows one."""
    traces = {trace for value in values for trace in traces_of(value)}
    return math.prod([trace.size for trace in traces if isinstance(trace, Batch)])


def divide_values(values: Values, first: int, second: int) -> tuple[Values, Values, Values]:
    """Return the first values, the second ones, and the others."""
    return values[:first], values[first : first + second], values[first + second :]


# Lanes


def in_lanes(value: Any, trace: Batch) -> Any:
    """Return a value with lanes in front as one lane sees it."""
    if value is None:
        return None
    below = unwrap_plain(current(value)) if type(value) is Tensor else value
    return readable(make_batched(below, trace))


def lane(value: Any, i: int) -> Any:
    """Return one lane of a value, in memory that is not written to."""
    if value is None:
        return None
    found = (unwrap_plain(current(value)) if type(value) is Tensor else value)[i]
    return readable(current(found)) if type(found) is Tensor else found


def in_front(value: Any, trace: Batch) -> Tensor:
    """Return a result of all lanes with these in front, repeated if it is the same for all."""
    tensor = as_tensor(value)
    found = current(tensor)
    if found._trace is trace:
        result: Tensor = wrapped_constant(found._value)
        result._kept = result._kept or found._kept or found is not tensor
        return result
    return wrapped_constant(trace.spread(unwrap_plain(found)))


def is_refusal(error: Exception) -> bool:
    """Tell whether an error is one of ours, which NumPy may have wrapped."""
    return isinstance(error, WengertError) or isinstance(error.__cause__, WengertError)


# Derivatives that are not known: a value that stands for one refuses to be used, and not before


class Unknown(Trace):
    """Be above every other trace, so that any operation on such a value ends here, in an error.

    Args:
        error: makes it.
    """

    __slots__ = ("error",)

    def __init__(self, error: Callable[[], GraphError]) -> None:
        super().__init__(sys.maxsize)
        self.error = error

    @property
    def owner_name(self) -> str:
        """Refuse: whoever asks is about to say that it cannot use the value."""
        raise self.error()

    def below(self, tensor: Tensor) -> NoReturn:
        """Refuse to show elements."""
        raise self.error()

    owner = duplicate = state = below

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> NoReturn:
        """Refuse any operation."""
        raise self.error()

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> NoReturn:
        """Refuse to be written to."""
        raise self.error()


def unknown_like(value: Any, error: Callable[[], GraphError]) -> Tensor:
    """Return what stands for a derivative of a value's shape and dtype that is not known.

    Args:
        value: what it is the derivative of.
        error: makes the error to raise where it is used.
    """
    return make_tensor(aval_of(value), Unknown(error), None)
