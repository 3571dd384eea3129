"""NumPy's own inner loops for large arrays, shared among the threads of a team.

Each element is computed by the loop that NumPy itself would run, so results are NumPy's to the last bit. Conditions
that NumPy would report make it compute the operation again, so that warnings and errors are NumPy's as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.errors import UsageError
from wengert.native.availability import UnavailableError
from wengert.support.config import MOST_TOLD, THREADS
from wengert.support.deferred_warnings import unregister
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.machine import CONDITIONS, MACHINE

unregister(globals())  # `share_ufunc` says who meets what stops

LARGE = MACHINE.shared_elements
"""Elements from which an operation is worth sharing."""

TRIAL = 32  # large operations before the team is made, which takes a tenth of a second in the background
UNKNOWN = (None, 0)


class LoopSharing:
    """Hand NumPy's loops to a team, which is made in the background when there were some large operations.

    Attributes:
        place: where the address of the team's memory stands; none while there is no team. Kernels look here when they
            run, so it follows changes.
        own: writes the modules of our own functions, which take the place of NumPy's where it is given.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.asked = 0
        self.lock = threading.Lock()
        self.place = ctypes.c_void_p()
        self.native: Callable[..., int] | None = None
        self.own: Callable[[str], str] | None = None

    def apply(self, loop: int, x: Any, y: Any, out: Any) -> int:
        """Apply one of NumPy's loops to arrays of one dtype; there must be a team.

        Args:
            loop: the address of a LOOP.
            x: the first operand, of the result's shape or 0-d.
            y: the second operand, likewise; any array if there is only one.
            out: the result.

        Returns:
            The floating-point conditions met, bits of `CONDITIONS`; a negative number if nothing was computed, because
            the team has another job or the arrays do not suit it.
        """
        assert self.native is not None
        return self.native(self.place.value, loop, x, y, out)

    def ask(self) -> None:
        """Note that a large operation had no team; the first few of them lead to one."""
        with self.lock:
            self.asked += 1
            enough = self.asked == TRIAL
        if enough:
            self.start_soon()

    def want(self) -> None:
        """Get a team soon, for kernels that are worth sharing."""
        with self.lock:
            had_team, self.asked = self.asked >= TRIAL, TRIAL
        if not had_team:
            self.start_soon()

    def start_soon(self) -> None:
        """Get a team in the background, unless one thread is to do all the work."""
        if self.threads > 1 and not sys.is_finalizing():  # when it would wait for ever
            with contextlib.suppress(RuntimeError):  # the system has no thread to spare, or the process is ending
                threading.Thread(target=self.start_if_possible, name="wengert-team").start()

    def start_if_possible(self) -> None:
        """Get a team; NumPy keeps all the work where the system or LLVM has not what it needs."""
        with contextlib.suppress(UnavailableError):
            self.start()

    def start(self) -> None:
        """Get a team.

        Raises:
            UnavailableError: there are no POSIX threads, or LLVM cannot serve here.
        """
        with UNSTOPPED:
            from wengert.native import objects
            from wengert.native.threads import inner_loops, team

        objects.check_layout()
        threads = self.threads
        address = team.team_of(threads).address
        apply = inner_loops.code()
        word, array = ctypes.c_int64, ctypes.py_object
        with self.lock:
            if threads == self.threads:  # else the number was changed meanwhile
                self.place.value = address
                self.native = ctypes.CFUNCTYPE(word, ctypes.c_void_p, word, array, array, array)(apply)

    def set_threads(self, threads: int) -> None:
        """Change how many threads share the work; what runs goes on with as many as it began with."""
        with self.lock:
            had_team = self.place.value is not None or self.asked >= TRIAL
            self.threads, self.native, self.place.value = threads, None, None
            self.asked = TRIAL if had_team else 0
        if had_team:
            self.start_soon()

    def leave(self) -> None:
        """Forget what other threads are doing, in a process that was forked, which has none of them."""
        self.lock = threading.Lock()  # one of them may have held it
        if self.place.value is None and self.asked >= TRIAL:
            self.asked = TRIAL - 1  # one of them may have been making the team


SHARING = LoopSharing(THREADS)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SHARING.leave)


def set_num_threads(threads: int) -> None:
    """Set how many threads share large operations and compiled kernels; results have the same bits for every number.

    It counts from the next operation on, for all threads of the program. Until then WENGERT_THREADS does, or else
    OMP_NUM_THREADS, or else the number of processors, 16 at most.

    Args:
        threads: how many, the calling one included; 1 to compute on the calling thread alone.

    Raises:
        UsageError: it is no whole number from 1 to 256.

    >>> import wengert as wg
    >>> wg.set_num_threads(2)
    """
    if type(threads) is not int or not 1 <= threads <= MOST_TOLD:
        needed = f"a number of threads from 1 to {MOST_TOLD} is needed"
        raise UsageError("set_num_threads", repr(threads), needed, "Pass 1 to compute on one thread")
    SHARING.set_threads(threads)


def share_ufunc(ufunc: np.ufunc, own: bool = False) -> Callable[..., Any]:
    """Return a function that computes a ufunc on several threads where its operands allow it.

    Args:
        ufunc: a NumPy function of one or two operands with one result.
        own: whether our own function may take its place.

    Returns:
        `compute(x, y=None, out=None)` for ndarrays and numbers, of which `x` or `y` is an array of at least LARGE
        elements; `out` is `x` to overwrite it, in which case conditions are not reported. Where NumPy would warn it
        stops, see `wengert.support.deferred_warnings`: the caller meets that.

    >>> import numpy as np
    >>> share_ufunc(np.add)(np.ones(100_000), 2.0)[-1]
    np.float64(3.0)
    """
    loops: dict[np.dtype[Any], tuple[Any, int] | None] = {}

    def compute(x: Any, y: Any = None, out: Any = None) -> Any:
        sharing = SHARING
        if sharing.native is None:
            if sharing.asked < TRIAL:
                sharing.ask()
        else:
            like = x if type(x) is ndarray else y
            dtype = like.dtype
            loop = loops.get(dtype, UNKNOWN)
            if loop is UNKNOWN:
                loop = loops[dtype] = known_loop(ufunc, dtype, own)
            if loop is not None:
                first, second = operand_array(x, dtype), (like if y is None else operand_array(y, dtype))
                result = np.empty(like.shape, dtype) if out is None else out
                raised = sharing.apply(loop[1], first, second, result)
                if raised == 0 or (raised > 0 and (out is not None or not raised & reported_conditions())):
                    return result
        if out is None:
            return ufunc(x) if y is None else ufunc(x, y)
        with np.errstate(all="ignore"):
            return ufunc(x, out=out) if y is None else ufunc(x, y, out=out)

    return compute


def known_loop(ufunc: np.ufunc, dtype: np.dtype[Any], own: bool) -> tuple[Any, int] | None:
    """Return the inner loop of a ufunc; a process that has no team is spared what native code is written with."""
    from wengert.native.threads.inner_loops import loop_of, own_loop

    if SHARING.own is not None and own and dtype == np.float64:
        found = own_loop(ufunc.__name__, dtype, ufunc.nin, SHARING.own)
        if found is not None:
            return found
    return loop_of(ufunc, dtype)


def operand_array(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return an operand as an array; Python's numbers take the other operand's dtype."""
    if type(x) is ndarray:
        return x
    if type(x) is not float and type(x) is not int:
        return np.array(x)
    with np.errstate(over="ignore"):
        array = np.array(x, dtype)
    return array if math.isfinite(array) or not math.isfinite(x) else np.array(x)  # NumPy reports what is too large


def reported_conditions() -> int:
    """Return the floating-point conditions that NumPy would report at present."""
    return sum(CONDITIONS[name] for name, action in np.geterr().items() if action != "ignore")
