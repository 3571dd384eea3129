"""Where machine code that takes long looks up: other threads run Python meanwhile, and Python answers signals.

Loops, and steps one after the other, count about how many cycles have passed since they last looked, so that what is
short never does. At the first look the interpreter lock is released, if the caller has it, until all returns; then
Python's handlers of signals run every `PATIENCE`. One that raises leaves its error with Python, as all C code does; the
kernel then says that it failed, and so do all around it, up to whoever called from Python, where the error goes on.
"""

from __future__ import annotations

import sys
import time

from wengert.native.builder import Builder
from wengert.native.functions import NativeFunction, external
from wengert.native.structs import BOOL, I32, I64, POINTER, VOID, Pointer, Signature, Struct
from wengert.native.values import Value

PATIENCE = 10_000_000
"""Nanoseconds between two times at which Python answers signals. Loops inside of others count their own: as many of
them may pass as there are loops around each other."""
CLOCK = 6 if sys.platform == "linux" else time.CLOCK_MONOTONIC  # Linux's coarse one, which takes a third of the time

LOOK = Struct(
    "Look",
    due=I64,  # when Python is to answer signals next; 0 before the first look
    thread=POINTER,  # from then on: Python's state of the thread, whose lock was released; none if it was not
)
TIME = Struct("Time", seconds=I64, nanoseconds=I64)

clock_time = external("clock_gettime", I32, I32, POINTER)
own_thread = external("PyGILState_GetThisThreadState", POINTER)
present_thread = external(
    "PyThreadState_GetUnchecked" if sys.version_info >= (3, 13) else "_PyThreadState_UncheckedGet", POINTER
)
save_thread = external("PyEval_SaveThread", POINTER)
restore_thread = external("PyEval_RestoreThread", VOID, POINTER)
take_lock = external("PyGILState_Ensure", I32)
leave_lock = external("PyGILState_Release", VOID, I32)
answer_signals = external("PyErr_CheckSignals", I32)


def look_up(b: Builder, look: Value) -> None:
    """Let other threads run, and Python answer signals when it is time; return whether an error is to go on."""
    place = b.stack(TIME)
    b.do(clock_time, CLOCK, place)
    now = place.get("seconds") * 1_000_000_000 + place.get("nanoseconds")
    due = look.get("due")
    with b.when(due.equals(0)):
        look.set("due", now + PATIENCE)
        look.set("thread", None)
        own = b.call(own_thread)
        with b.when(own.differs(None) & own.equals(b.call(present_thread))):
            look.set("thread", b.call(save_thread))
        b.give(False)
    b.give_if(now < due, False)
    look.set("due", now + PATIENCE)
    state = b.call(take_lock)
    found = b.call(answer_signals)
    b.do(leave_lock, state)
    b.give(found.differs(0))


LOOK_UP = "look_up"
look_up_now = NativeFunction(LOOK_UP, Signature(BOOL, (Pointer(LOOK),)), look_up, rare=True, brief=True)


def looking(b: Builder) -> Value:
    """Return the LOOK of a function that has not looked yet."""
    look = b.stack(LOOK)
    look.set("due", 0)
    return look


def give_back(b: Builder, look: Value) -> None:
    """Take the lock again if it was released: before the function returns."""
    with b.when(look.get("due").differs(0)), b.when(look.get("thread").differs(None)):
        b.do(restore_thread, look.get("thread"))
