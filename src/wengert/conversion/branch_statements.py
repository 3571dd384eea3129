"""Choices: `if`, conditional expressions, `and`, `or`, `not` and chains of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from wengert.control.reachable_state import ReachableState
from wengert.control.variable_places import HalfDefined, StatementSite
from wengert.conversion.branch_merging import Merge
from wengert.conversion.traced_numbers import raise_here
from wengert.conversion.traced_regions import (
    HANDLERS,
    Ending,
    Note,
    TracedRegion,
    as_truth,
    is_array,
    may_wait,
    operand_of,
    raise_where,
    trace_region,
    with_note,
)
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.forms.form import is_elementwise
from wengert.core.graph.whole_number_errors import may_raise
from wengert.core.memory.write_watches import lose
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import is_weak, weaken
from wengert.core.values.tensor import is_staged
from wengert.primitives.indexing.parts import rebind

Thunk = Callable[[], Any]
Regions: TypeAlias = Mapping[Thunk, TracedRegion]
NO_REGIONS: Regions = MappingProxyType({})


# Statements


def if_stmt(test: Any, body: FunctionType, orelse: FunctionType, site: tuple[Any, ...]) -> None:
    """Carry out `if`: as Python does, or as `cond` for a traced test."""
    if not is_staged(test):
        if test:
            body()
        else:
            orelse()
        return
    note = ("if", "both branches", position_of(*caller()))
    choose(as_truth(test), ReachableState([body, orelse], StatementSite(*site)), body, orelse, note)


def choose(test: Any, heap: ReachableState, body: Thunk, orelse: Thunk, note: Note, known: Regions = NO_REGIONS) -> Any:
    """Trace both branches, let everything hold what the branch taken gives, and return what that returns.

    `known` are the regions of branches that have been traced already.
    """
    while True:
        regions: list[TracedRegion] = []
        for run, other in ((body, orelse), (orelse, body)):
            regions.append(known.get(run) or trace_region(note, heap, run, may_raise=True))
            if regions[-1].raised is not None:
                failed = test if run is body else np.logical_not(test)
                if regions[-1].checks:  # which come before
                    choose(failed, heap, partial(run_until_raised, run), pass_, note)
                return raise_or_run(failed, regions[-1].raised, other, note)
        promoted, found = merge_branches(test, heap, regions, note)
        if not promoted:
            return found
        heap.promote(promoted, note)
        known = NO_REGIONS


def run_until_raised(run: Thunk) -> None:
    """Carry out a branch up to the error of the user's that it ends with."""
    try:
        run()
    except Exception as error:
        if not may_wait(error):
            raise


def pass_() -> None:
    """Do nothing, as a branch."""


def raise_or_run(failed: Any, error: Exception, rest: Thunk, note: Note) -> Any:
    """Let the graph raise what one branch raises if it is taken; else there is only the other one, so carry that out.

    Where the other branch, `rest`, raises an error of the user's, too, nothing comes after the statement.
    """
    raise_where(failed, error)
    ending = Ending()
    with with_note(*note, ending):
        return rest()
    assert ending.raised is not None
    raise ending.raised


def merge_branches(
    test: Any, heap: ReachableState, regions: Sequence[TracedRegion], note: Note
) -> tuple[Sequence[int], Any]:
    """Do what `choose` does, or return the ndarrays in whose place Tensors are needed, by identity."""
    arrays = {x: None for region in regions for x in region.arrays}
    if arrays:
        return list(arrays), None
    merged = Merge(heap, regions, note)
    answer = merged.value("the value of the conditional expression", [region.result for region in regions])
    changes = [merged.change(holder) for holder in merged.changed_holders()]
    lost = {key: item for region in regions for key, item in region.lost.items()}
    written = list({id(x): x for region in regions for x in region.written if id(x) not in lost}.values())
    ends = [merged.output([region.end_of(x) for region in regions], aval_of(x)) for x in written]
    shared = merged.shared_arrays()
    if promoted := list(filter(heap.can_promote, shared)):
        return promoted, None
    relate = merged.relations(operand_of(test), shared)
    results = list(merged.run(test))
    found = answer(results)
    for change in changes:
        change(results)
    for handle, position in zip(written, ends, strict=True):
        rebind(handle, results[position])
    for handle, text in lost.values():
        lose(handle, text)
    relate(results)
    merged.keep_apart(test)
    return (), found


def read_variable(value: Any, name: str) -> Any:
    """Return the value of a variable; where the paths taken give it none, the graph raises what Python does."""
    if type(value) is not HalfDefined:
        return value
    if HANDLERS.count:  # whose `except` would have to be part of the graph
        value.refuse()
    found, truth = value.halves()
    text = f"cannot access local variable '{name}' where it is not associated with a value"
    raise_here(np.logical_not(truth), UnboundLocalError(text))
    return found


# Expressions


def none_set(*flags: Any) -> Any:
    """Return whether none of some flags is set."""
    if any(flag is True for flag in flags):
        return False
    staged = [flag for flag in flags if is_staged(flag)]
    if any(bool(flag) for flag in flags if not is_staged(flag)):
        return False
    if not staged:
        return True
    found = staged[0]
    for flag in staged[1:]:
        found = np.logical_or(found, flag)
    return np.logical_not(found)


def not_(value: Any) -> Any:
    """Carry out `not`."""
    return weaken(np.logical_not(as_truth(value))) if is_staged(value) else not value


def and_(value: Any, *rest: Thunk) -> Any:
    """Carry out `and`."""
    return connect(np.logical_and, value, rest)


def or_(value: Any, *rest: Thunk) -> Any:
    """Carry out `or`."""
    return connect(np.logical_or, value, rest)


def connect(function: Any, value: Any, rest: Sequence[Thunk]) -> Any:
    """Carry out `and` or `or`: what decides, of the operands evaluated so far, is the value."""
    for k, thunk in enumerate(rest):
        if is_staged(value):
            return combine_truths(value, lambda: connect(function, rest[k](), rest[k + 1 :]), rest[k:], function)  # noqa: B023 - called at once
        if bool(value) is (function is np.logical_or):
            return value
        value = thunk()
    return value


def combine_truths(value: Any, rest: Thunk, thunks: Sequence[Thunk], function: Any) -> Any:
    """Combine a traced operand with those after it, which are evaluated only where they count."""
    name = "and" if function is np.logical_and else "or"
    heap = ReachableState(thunks)
    region = trace_region((name, "operands", position_of(*caller())), heap, rest)
    other = region.result
    harmless = not (region.written or region.contents or region.arrays) and all(
        is_elementwise(e.primitive) and not may_raise(e) for e in region.stage.equations
    )
    if harmless and is_truth(value) and (is_truth(other) or isinstance(other, bool)):
        again = region.function([region.end_of(other)], [aval_of(other)])(*map(operand_of, heap.handles.values()))[0]
        if is_weak(value) and is_weak(again):  # one of Python's truths
            return weaken(value & again if name == "and" else value | again)
        return function(value, again)
    both_truths = is_truth(value) and (is_truth(other) or not is_array(other))
    last = function is np.logical_or if both_truths else value
    known = {rest: region}  # tracing it again would take twice as long for each further operand
    if function is np.logical_and:
        return decide(value, rest, lambda: last, heap, known)
    return decide(value, lambda: last, rest, heap, known)


def is_truth(value: Any) -> bool:
    """Tell whether a value is one traced boolean."""
    return is_staged(value) and bool(value.dtype == np.bool_) and value.shape == ()


def if_exp(test: Any, body: Thunk, orelse: Thunk) -> Any:
    """Carry out a conditional expression."""
    if not is_staged(test):
        return body() if test else orelse()
    return decide(test, body, orelse, ReachableState([body, orelse]))


def decide(test: Any, body: Thunk, orelse: Thunk, heap: ReachableState, known: Regions = NO_REGIONS) -> Any:
    """Return one of two values that the user's program computes."""
    note = ("conditional expression", "both sides", position_of(*caller()))
    return choose(as_truth(test), heap, body, orelse, note, known)
