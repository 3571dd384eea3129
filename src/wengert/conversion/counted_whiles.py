"""`while` statements that Python's numbers decide about: rounds are counted, so that they are loops of known length.

The numbers of a round depend on nothing else, so that they, and the test, are carried out apart until it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from wengert.control.variable_places import StatementSite
from wengert.conversion.appended_lists import Appended
from wengert.conversion.known_numbers import NUMBERS, NumbersInRounds, as_python, equations_of
from wengert.conversion.known_rounds import KnownRounds, Numbers
from wengert.conversion.loop_emission import changes, roll_loop, say_loop, settled_or_refused
from wengert.conversion.staged_loop import Counted, StagedLoop
from wengert.conversion.traced_regions import trace_region
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.values.tensor import is_staged
from wengert.errors import WengertError
from wengert.passes.dead_code import eliminate_dead
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.written_out import LEAST_ROUNDS, strictly

MOST_ROUNDS = 100_000
"""Rounds that are counted, some 20 us each."""


def roll_while(site: StatementSite, body: FunctionType, go_on: Callable[[], Any], appended: Appended) -> bool:
    """Carry out a `while` that is about to have a round as one equation, or leave some of its rounds to the caller.

    The first round is carried out by itself if it leaves other types or shapes than there were before it.

    Args:
        site: what the statement sets.
        body: a round.
        go_on: whether there is another one.
        appended: of which names rounds do nothing but append to them, and read the last items.

    Returns:
        Whether all of it has been carried out.
    """

    def each(_item: Any) -> None:
        body()

    for peeled in (False, True):
        loop = StagedLoop("while", site, each, None, [body], rounds_of_length(1, appended), peeled)
        count = count_rounds(loop, go_on)
        if count is not None:
            if count < LEAST_ROUNDS:
                return False
            done, peels = roll_loop(site, body, None, rounds_of_length(count, appended), peeled, each)
            if done or not peels:
                return done
        elif not loop.changes_kind:
            return False
        if not peeled:
            body()
    return False


def rounds_of_length(count: int, appended: Appended) -> Counted:
    """Return rounds that receive their number."""
    rounds = KnownRounds(count, (Numbers(0, 1),), lambda parts: parts[0])
    return Counted(count, rounds.item, rounds, appended)


def count_rounds(loop: StagedLoop, go_on: Callable[[], Any]) -> int | None:
    """Return how many rounds there will be; None if other than Python's numbers decide, or they are too many."""
    if not settled_or_refused(loop):
        return None
    slots, ends = loop.slots.values(), [x for slot in loop.slots.values() for x in slot.outputs(loop.region)]
    starts = [x for slot in slots for x in slot.initial()]
    numbers = NumbersInRounds(loop.region.stage.equations, (), list(zip(carried_by(loop), starts, strict=True)), ends)
    before = refusal_count()
    try:
        with strictly(True):
            asked = trace_region(loop.note, loop.heap, go_on, loop.start)
    except WengertError:
        forgive(before)
        return None
    if not is_staged(asked.result) or asked.written or changes(asked):
        return None
    places = {v: k for k, v in enumerate(carried_by(loop)) if k in numbers.places or k in numbers.constants}
    places = {v: k for v, k in places.items() if type(starts[k]) in NUMBERS}
    own, known = equations_of(asked.stage.equations, set(places))
    if asked.result._value not in known:
        say_loop(loop, "is written out, since other values than Python's numbers decide about it")
        return None
    graph = eliminate_dead(Graph(list(places), own, [asked.result._value]))
    return count_until(graph, list(places.values()), numbers, dict(enumerate(starts)))


def carried_by(loop: StagedLoop) -> list[Any]:
    """Return the variables that stand for what is carried in the piece that was traced last."""
    return [x[1] for slot in loop.slots.values() for x in slot.inputs if x is not None]


def count_until(test: Graph, asked: Sequence[int], numbers: NumbersInRounds, state: dict[int, Any]) -> int | None:
    """Return after how many rounds a test of numbers fails, which are known by their positions."""
    for count in range(MOST_ROUNDS):
        if not evaluate(test, [state[k] for k in asked])[0]:
            return count
        found = evaluate(numbers.graph, [state[k] for k, _ in numbers.begins.values()])
        state.update(numbers.constants)
        for k, x in zip(numbers.places, found[len(numbers.begins) :], strict=True):
            state[k] = as_python(x, numbers.ends[k])
    return None
