"""Loops of Python's that are written out: how often a place of a program has written an equation, and what follows.

A graph of a loop of n rounds that is written out has n times the equations of its body: 300 rounds of a Kalman filter
take 100 ms to run and seconds to compile, as one equation 40 us. So a trace that meets the same place again and again
while a `for` statement is running ends, and the function is traced once more with its loops as equations.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any

from wengert.core.diagnostics.source_positions import is_own, position_of
from wengert.errors import TracedTruthError
from wengert.support.caches import WeakIdentityMap
from wengert.support.config import LOGGED
from wengert.support.scopes import OtherAttributes, Restore, StateScope

MANY_EQUATIONS = 32
"""Equations of one place in a `for` statement from which on long loops become equations."""
LEAST_ROUNDS = 16
"""Rounds from which on a loop is long then. So many of few equations take as long either way; 20 of four stages of a
Runge-Kutta method, the gradient, 0.3 s to compile for 2.3, its Hessian 63 us a call for 176."""

Places = dict[tuple[int, int], int]
"""How many equations places have written, by the identity of their code, whose hash goes over all of its constants."""


class LongLoop(TracedTruthError):
    """End a trace that has met one place of the program in many rounds of a `for` statement."""


class Rolling(threading.local):
    """Say what becomes of long loops in this thread.

    Attributes:
        watched: whether the next graph ends where it writes a loop out.
        allowed: whether loops of known length may become equations.
        rolled: how many have.
        least: how many rows of an array are a loop.
        strict: whether a piece is traced that may be written out instead, and must be if it is not the same each round.
        refused: the code of bodies that were written out.
        bounds: between which numbers whole numbers of Python's lie, by what stands for them.
        rounds: what is known of the rounds of the loop that is being traced, of which `conversion` knows more.
        making: whether arrays that converted code makes are Tensors, since traced values are written into them.
        steady: raise, by what they ask about, if something has been changed that a loop takes for a constant.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self, watched: bool = False, allowed: bool = False, least: int = 2, making: bool = False) -> None:
        """Say something, of a function that has not been traced yet."""
        self.watched, self.allowed, self.least = watched, allowed, least
        self.making = making
        self.strict, self.rolled = False, 0
        self.refused: set[CodeType] = set()
        self.bounds: dict[Any, tuple[int, int]] = {}
        self.rounds: Any = None
        self.steady: dict[Any, Callable[[], None]] = {}


ROLLING = Rolling()


class RollingScope(StateScope):
    """Let a function be traced with what `Rolling` says; what it said before holds again afterwards."""

    def __init__(self, *, watched: bool = False, allowed: bool = False, least: int = 2, making: bool = False) -> None:
        super().__init__()
        self.said = watched, allowed, least, making

    def undo(self) -> Restore:
        """Return what has it say what it says now."""
        return partial(vars(ROLLING).update, vars(ROLLING).copy())

    def change(self) -> None:
        """Let it say this."""
        ROLLING.begin(*self.said)


def strictly(strict: bool) -> OtherAttributes:
    """Return a context for a piece that must be the same in each round, or one about which nothing has to be shown."""
    return OtherAttributes(ROLLING, strict=strict)


def places_watched() -> Places | None:
    """Return where the next graph counts, if it is watched; those that are traced while it is are not."""
    watched, ROLLING.watched = ROLLING.watched, False
    return {} if watched else None


def count_place(places: Places, place: tuple[CodeType, int]) -> None:
    """Count an equation of a place.

    Raises:
        LongLoop: a `for` statement around it has had many rounds.
    """
    key = id(place[0]), place[1]
    count = places[key] = places.get(key, 0) + 1
    if not count % MANY_EQUATIONS and is_in_loop():
        raise LongLoop("for", "a loop of many rounds", "one equation", "Trace it again")
    if count == MANY_EQUATIONS and "loops" in LOGGED:
        say_written_out(place)


def say_written_out(place: tuple[CodeType, int]) -> None:
    """Say that a place of the program is repeated by what is no loop that may become one equation."""
    from wengert.support.logs import say

    action = f"write a `for` over a range or an array, without {', '.join(sorted(SEEN))}, or wengert.while_loop"
    say("loops", f"{position_of(*place)}\n  is written out, {MANY_EQUATIONS} times and more: {action}")


SEEN = frozenset(("input", "next", "open", "print"))
"""Names of what would be seen to happen twice: such a loop is written out in any case."""


def is_in_loop() -> bool:
    """Tell whether a `for` or `while` of the user's is running that may become one equation."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_own(code.co_filename) and any(start < frame.f_lasti < end for start, end in loops_of(code)):
            return SEEN.isdisjoint(code.co_names)
        frame = frame.f_back
    return False


BACKWARD = frozenset(code for name, code in dis.opmap.items() if "JUMP_BACKWARD" in name and "NO_INT" not in name)
LOOPS: WeakIdentityMap[CodeType, list[tuple[int, int]]] = WeakIdentityMap()


def loops_of(code: CodeType) -> list[tuple[int, int]]:
    """Return where the bodies of the loops of code begin and end.

    Those of comprehensions are among them from Python 3.12 on, which has them in the code of what they stand in.
    """
    found = LOOPS.get(code)
    if found is None:
        is_statement = not code.co_name.startswith("<") or code.co_name == "<module>"
        may_have = is_statement and not BACKWARD.isdisjoint(code.co_code[::2])  # long functions of programs have none
        steps = dis.get_instructions(code) if may_have else ()
        found = LOOPS[code] = [(x.argval - 1, x.offset) for x in steps if x.opcode in BACKWARD]
    return found
