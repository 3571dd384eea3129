"""Loops: `while` and `for`, carried out as Python does until a traced value decides about them, then as one loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from wengert.control.reachable_state import ReachableState
from wengert.control.variable_places import StatementSite
from wengert.conversion.appended_lists import Appended
from wengert.conversion.branch_statements import and_, choose, decide, none_set, not_
from wengert.conversion.called_functions import callee
from wengert.conversion.counted_whiles import roll_while
from wengert.conversion.known_rounds import KnownRounds, rounds_of
from wengert.conversion.loop_emission import roll_loop, staged_loop
from wengert.conversion.staged_loop import Counted
from wengert.conversion.traced_numbers import SIZED, LoopIterator, StagedRange
from wengert.conversion.traced_regions import as_truth
from wengert.conversion.user_operators import ask_truth, left_operand, right_operand, sum_items
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.memory.left_rows import pieces_of
from wengert.core.values.dispatch import weaken
from wengert.core.values.tensor import is_staged
from wengert.errors import UsageError
from wengert.support.config import LOGGED
from wengert.traces.written_out import LEAST_ROUNDS, MANY_EQUATIONS, ROLLING, say_written_out


def while_stmt(
    test: FunctionType, body: FunctionType, stops: Sequence[str], site: tuple[Any, ...], appended: Appended = ()
) -> None:
    """Carry out `while`; `appended` are lists that the body appends to."""
    flags = ExitFlags(stops, body)

    def go_on() -> Any:
        going = flags.running()
        if is_staged(going):
            return and_(going, test)
        return going and test()

    rounds = 0
    while True:
        going = go_on()
        if is_staged(going):
            staged_loop("while", StatementSite(*site), body, go_on, [body, test])
            return
        if not going:
            return
        if rounds == 0 and ROLLING.allowed and body.__code__ not in ROLLING.refused:
            ROLLING.rolled += 1
            if roll_while(StatementSite(*site), body, go_on, appended):
                return
            ROLLING.refused.add(body.__code__)
            if not go_on():  # of which a round has been carried out
                return
        body()
        rounds += 1
        if rounds == MANY_EQUATIONS and "loops" in LOGGED:
            say_written_out(caller())


def for_stmt(
    iterable: Any, body: FunctionType, stops: Sequence[str], site: tuple[Any, ...], appended: Appended = ()
) -> None:
    """Carry out `for`; `appended` are lists that the body appends to."""
    flags = ExitFlags(stops, body)
    if isinstance(iterable, StagedRange):
        run_counted(StatementSite(*site), body, flags, iterable.count(), iterable.item)
        return
    items, taken = None, 0
    rounds = long_rounds(iterable)
    if rounds is not None and body.__code__ not in ROLLING.refused:
        ROLLING.rolled += ROLLING.allowed
        items, taken = roll(iterable, rounds, StatementSite(*site), body, flags, appended)
        if taken == rounds.length:
            return
    items = iter(iterable) if items is None else items
    if rounds is None and ROLLING.allowed and "loops" in LOGGED:
        say_items(iterable)
    while True:
        going = flags.running()
        if is_staged(going):
            finish_for(iterable, items, taken, StatementSite(*site), body, flags)
            return
        if not going:
            return
        try:
            item = next(items)
        except StopIteration:
            return
        taken += 1
        body(item)


def say_items(iterable: Any) -> None:
    """Say that a long loop is written out for what it goes through."""
    if isinstance(iterable, SIZED) and len(iterable) >= LEAST_ROUNDS:
        from wengert.support.logs import say

        needed = "ranges, arrays, rows, and numbers and tuples of one type are needed"
        kinds = sorted({type(item).__name__ for item in iterable})
        what = f"is written out, since its {type(iterable).__name__} holds {', '.join(kinds)}; {needed}"
        say("loops", f"{position_of(*caller())}\n  a loop of {len(iterable)} rounds {what}")


def decide_items(function: Any, items: Any, each: Callable[[Any], Any]) -> Any:
    """Carry out `any` or `all` of what a function gives for each item, which is asked for no more than decide."""
    if function is not any and function is not all:
        return callee(function)(each(item) for item in items)
    decided = False

    def body(item: Any) -> None:
        nonlocal decided
        value = ask_truth(each(item))
        truth = as_truth(value) if is_staged(value) else bool(value)
        decided = truth if function is any else not_(truth)

    go_through(items, body, "decided", ends=True)
    found = decided if function is any else not_(decided)
    return weaken(found)


def staged_sum(*args: Any, **kwargs: Any) -> Any:
    """Return a sum; of many rows that a loop has left behind as one equation, whatever is before and after them."""
    may_be_long = ROLLING.allowed and len(args) == 1 and not kwargs and type(args[0]) is list
    pieces = pieces_of(args[0]) if may_be_long else []
    if all(long_rounds(piece) is None for piece in pieces):
        return sum_items(*args, **kwargs)
    total: Any = 0

    def body(item: Any) -> None:
        nonlocal total
        total = total + item

    for piece in pieces:
        go_through(piece, body, "total")
    return total


def staged_extremum(items: list[Any], better: Callable[[Any, Any], Any]) -> Any:
    """Return the first of the best of many rows that a loop has left behind, as one equation; None of other items."""
    if not ROLLING.allowed or long_rounds(items) is None:
        return None
    found = items[0]

    def body(item: Any) -> None:
        nonlocal found
        test = better(item, found)
        found = decide(as_truth(test), lambda: item, lambda: found, ReachableState([body], None))

    go_through(items, body, "found")
    return found


def sum_each(function: Any, items: Any, each: Callable[[Any], tuple[Any, Callable[[], Any]]]) -> Any:
    """Return the sum of what a function gives for each item: whether it is added, and what computes what is added."""
    if function is not sum:
        return callee(function)(value() for test, value in map(each, items) if test)
    total: Any = 0

    def add_term(item: Any) -> None:
        nonlocal total
        total = with_term(total, *each(item))

    body: Any = add_term
    if isinstance(items, StagedRange):
        go_through(items, body, "total")
        return total
    rounds, rest, taken = long_rounds(items), None, 0
    if rounds is not None:
        ROLLING.rolled += ROLLING.allowed
        rest, taken = roll(items, rounds, SUM_SITE, body, ExitFlags((), body), ())
        if taken == rounds.length:
            return total
    terms = [total] if taken else []
    rest = iter(items) if rest is None else rest
    for item in rest:
        test, value = each(item)
        test = ask_truth(test)
        if is_staged(test):
            total = with_term(staged_sum(terms), test, value)
            break
        if test:
            terms.append(value())
    else:
        return staged_sum(terms)
    for item in rest:
        body(item)
    return total


SUM_SITE = StatementSite(0, (("total", (), ()),))


def with_term(total: Any, test: Any, value: Callable[[], Any]) -> Any:
    """Return a sum with one more term, if a test of the user's holds."""

    def more() -> Any:
        return left_operand(total) + right_operand(value())

    test = ask_truth(test)
    if is_staged(test):
        return decide(test, more, lambda: total, ReachableState([more], None))
    return more() if test else total


def go_through(items: Any, body: Any, name: str, ends: bool = False) -> None:
    """Carry out a loop of the library's own, whose body sets one variable; it may be what ends the loop."""
    for_stmt(items, body, [name] if ends else [], (0, ((name, (), ()),)))


class ExitFlags:
    """Read the flags that end a loop."""

    def __init__(self, names: Sequence[str], body: FunctionType) -> None:
        cells = dict(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
        self.cells = [cells[name] for name in names]

    def running(self) -> Any:
        """Return whether none of them is set."""
        return none_set(*(cell.cell_contents for cell in self.cells))


def finish_for(
    iterable: Any, items: Iterator[Any], taken: int, site: StatementSite, body: FunctionType, flags: ExitFlags
) -> None:
    """Carry out the rest of a `for` whose end is now up to a traced flag."""
    if isinstance(iterable, range):
        rest = iterable[taken:]
        run_counted(site, body, flags, len(rest), StagedRange(rest.start, rest.stop, rest.step).item)
        return
    if not hasattr(iterable, "__len__") and not isinstance(iterable, LoopIterator):
        raise UsageError(
            "for",
            f"an iterator of type {type(iterable).__name__}, which a traced condition ends early",
            "something with a length is needed",
            "Iterate over a range, a list or an array, or write a `while`",
            place=position_of(*caller()),
        )
    note = ("for", "iterations after a `break`", position_of(*caller()))
    for item in items:
        going = flags.running()
        if is_staged(going):
            heap = ReachableState(
                [body], site, [item]
            )  # what raises there would be asked of the item at once if it were no input
            choose(as_truth(going), heap, lambda: body(item), lambda: None, note)  # noqa: B023 - called at once
        elif going:
            body(item)
        else:
            return


def run_counted(
    site: StatementSite, body: FunctionType, flags: ExitFlags, count: Any, item: Callable[[Any], Any]
) -> None:
    """Carry out a number of iterations."""
    test = flags.running if flags.cells else None
    staged_loop("for", site, body, test, [body], Counted(count, item))


def long_rounds(iterable: Any) -> KnownRounds | None:
    """Return the rounds of a loop that may become one equation; None if it is written out in any case."""
    if not (ROLLING.allowed or is_staged(iterable)):
        return None
    rounds = rounds_of(iterable)
    if rounds is None:
        return None
    return rounds if rounds.length >= (ROLLING.least if is_staged(iterable) else LEAST_ROUNDS) else None


def roll(
    iterable: Any,
    rounds: KnownRounds,
    site: StatementSite,
    body: FunctionType,
    flags: ExitFlags,
    appended: Appended,
) -> tuple[Iterator[Any] | None, int]:
    """Carry out a loop whose rounds are known as one equation, if what it does allows that.

    The first round is carried out by itself if it leaves other types or shapes than there were before it.

    Returns:
        An iterator over the rest of the items, if some were taken from it, and how many rounds have been carried out.
    """
    test = flags.running if flags.cells else None
    done, peels = roll_loop(site, body, test, Counted(rounds.length, rounds.item, rounds, appended), False)
    if done:
        return None, rounds.length
    items = None
    if peels and test is None:
        items = iter(iterable)
        body(next(items))
        rest = rounds.without_first()
        if roll_loop(site, body, None, Counted(rest.length, rest.item, rest, appended), True)[0]:
            return items, rounds.length
    if ROLLING.allowed:
        ROLLING.refused.add(body.__code__)
    return items, 0 if items is None else 1
