"""A team of threads for one process: native workers that look for work for a while and then sleep.

Waking a sleeping thread costs tens of microseconds, as much as a large operation takes; a worker therefore keeps
looking for two milliseconds after each job, and the dispatching thread never waits for one that has not begun.
The workers run no Python and hold no interpreter lock. `team.ll` has the protocol.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._config import THREADS
from wengert.native.engine import MACHINE, PAUSES, machine_code

__all__ = ["TEAM", "Team"]

Array = np.ndarray[Any, Any]

TRIAL = 32  # large operations before the team is made, which takes a tenth of a second in the background
PATIENCE = 2e-3  # seconds that a worker looks for the next job, about as long as OpenMP's do
OFTEN = 131_072  # elements of an operation that wakes sleepers at once; smaller ones do at every fourth try
UNHEARD = 65_536  # `dispatch` adds this if workers slept and were not woken

DENSE = 0x101  # flags of an array: C-contiguous and aligned

# the layout of %Team and %Place in team.ll
ALIGNMENT, SHARED, PLACE = 128, 256, 512
LOOKS = 8
PLACE_TEAM, PLACE_NUMBER, PLACE_ASLEEP, PLACE_MUTEX, PLACE_CONDITION = 8, 16, 24, 256, 384
EXTERNAL = (
    *("pthread_create", "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_unlock"),
    *("pthread_cond_init", "pthread_cond_wait", "pthread_cond_signal"),
    *("feholdexcept", "fesetenv", "feclearexcept", "fetestexcept"),
)


class Team:
    """Be the workers of this process.

    Args:
        threads: how many threads share the work, the dispatching one included.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.asked = 0
        self.unheard = 0
        self.address = 0
        self.code: dict[str, int] = {}
        self.native: Callable[..., int] | None = None

    def apply(self, loop: int, x: Array, y: Array, out: Array) -> int:
        """Apply one of NumPy's loops to arrays of one dtype.

        Args:
            loop: the address of a `Loop`.
            x: the first operand, of the result's shape or 0-d.
            y: the second operand, likewise; any array if there is only one.
            out: the result.

        Returns:
            The floating-point conditions met, bits of `CONDITIONS`; -1 if there is no team or it has another job,
            -2 if the arrays do not suit it.
        """
        native = self.native
        if native is None:
            self.ask()
            return -1
        rouse = self.unheard % 4 == 3 or out.size >= OFTEN
        raised = native(self.address, loop, x, y, out, self.threads, rouse)
        if raised >= UNHEARD:
            self.unheard += 1
            return raised - UNHEARD
        if rouse and raised >= 0:
            self.unheard = 0
        return raised

    def ask(self) -> None:
        """Note that a large operation had no team; the first few of them lead to one."""
        self.asked += 1
        if self.asked == TRIAL and self.threads > 1 and not sys.is_finalizing():  # when it would wait for ever
            with contextlib.suppress(RuntimeError):  # the system has no thread to spare, or the process is ending
                threading.Thread(target=self.start_if_possible, name="wengert-team").start()

    def start_if_possible(self) -> None:
        """Make the workers; NumPy keeps all the work where the system or LLVM has not what they need."""
        try:
            self.start()
        except (AttributeError, ImportError, OSError, RuntimeError):
            self.native = None

    def start(self) -> None:
        """Make the workers.

        Raises:
            AttributeError, ImportError, OSError, RuntimeError: there are no POSIX threads, or LLVM cannot serve here.
        """
        check_system()
        libc = ctypes.CDLL(None)
        for function in EXTERNAL:  # LLVM would end the process for the lack of one
            getattr(libc, function)
        libc.aligned_alloc.restype = ctypes.c_void_p
        if not self.code:
            self.code = machine_code("team.ll", ("apply", "worker", "linger"))
        size = SHARED + PLACE * self.threads
        address = libc.aligned_alloc(ctypes.c_size_t(ALIGNMENT), ctypes.c_size_t(size))  # never freed: workers use it
        if not address:
            raise OSError("no memory")
        ctypes.memset(address, 0, size)
        write(address + LOOKS, round(PATIENCE / seconds_of_a_look(self.code["linger"])))
        before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())  # workers leave signals to Python
        try:
            for number in range(1, self.threads):
                recruit(libc, ctypes.c_void_p(self.code["worker"]), address, number)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.address = address
        word, array = ctypes.c_int64, ctypes.py_object
        self.native = ctypes.CFUNCTYPE(word, word, word, array, array, array, word, word)(self.code["apply"])

    def leave(self) -> None:
        """Forget the workers, in a process forked from theirs; it gets its own when it asks for them."""
        started = self.asked < TRIAL or bool(self.code)  # else another thread was in the middle of it
        self.native = None
        if started:
            self.asked = 0


def check_system() -> None:
    """Raise a RuntimeError unless there are POSIX threads, a known processor and arrays as team.ll has them."""
    if os.name != "posix":
        raise RuntimeError("there are no POSIX threads")
    if MACHINE not in PAUSES:
        raise RuntimeError(f"the bits of floating-point conditions on {MACHINE} are unknown")
    array = np.zeros((2, 3))
    words = (ctypes.c_int64 * 9).from_address(id(array))
    found = (words[2], words[3] & 0xFFFFFFFF, words[7], words[8] & DENSE)
    if found != (array.ctypes.data, array.ndim, id(array.dtype), DENSE):
        raise RuntimeError("the layout of arrays is unknown")
    if tuple((ctypes.c_int64 * 2).from_address(words[4])) != array.shape:
        raise RuntimeError("the layout of arrays is unknown")


def recruit(libc: Any, worker: ctypes.c_void_p, team: int, number: int) -> None:
    """Make one worker, or raise an OSError."""
    place = team + SHARED + PLACE * number
    write(place + PLACE_TEAM, team)
    write(place + PLACE_NUMBER, number)
    libc.pthread_mutex_init(ctypes.c_void_p(place + PLACE_MUTEX), None)
    libc.pthread_cond_init(ctypes.c_void_p(place + PLACE_CONDITION), None)
    thread = ctypes.c_void_p()
    if libc.pthread_create(ctypes.byref(thread), None, worker, ctypes.c_void_p(place)):
        raise OSError("no thread could be made")
    libc.pthread_detach(thread)


def write(address: int, value: int) -> None:
    """Store an integer of 64 bits."""
    ctypes.c_int64.from_address(address).value = value


def seconds_of_a_look(linger: int) -> float:
    """Measure how long a worker takes to look for work once."""
    looks = 5_000
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(linger)
    found = []
    for _ in range(3):
        start = time.perf_counter()
        function(looks)
        found.append(time.perf_counter() - start)
    return min(found) / looks


TEAM = Team(THREADS)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TEAM.leave)
