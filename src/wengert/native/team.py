"""A team of threads for one process: native workers that look for work for a while and then sleep.

Waking a sleeping thread costs tens of microseconds, as much as a large operation takes; a worker therefore keeps
looking for two milliseconds after each job, and the dispatching thread never waits for one that has not begun.
The workers run no Python and hold no interpreter lock. `jobs` has the protocol.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import time
from typing import Any

from wengert.native import jobs
from wengert.native.builder import program
from wengert.native.engine import machine_code
from wengert.native.processor import LINE, MACHINE, MACHINES

__all__ = ["Team", "team_of"]

PATIENCE = 2e-3  # seconds that a worker looks for the next job, about as long as OpenMP's do


class Team:
    """Be the workers of this process, who share jobs with the thread that dispatches them.

    Args:
        threads: how many share the work, the dispatching one included.

    Raises:
        AttributeError, ImportError, OSError, RuntimeError: there are no POSIX threads, or LLVM cannot serve here.
    """

    def __init__(self, threads: int) -> None:
        check_system()
        names = (jobs.dispatch.name, jobs.worker.name, jobs.linger.name)
        dispatch, worker, linger = machine_code(program(jobs.dispatch, jobs.worker, jobs.linger), names).values()
        libc = ctypes.CDLL(None)
        libc.aligned_alloc.restype = ctypes.c_void_p
        size = jobs.SHARED.size + jobs.PLACE.size * threads
        address = libc.aligned_alloc(ctypes.c_size_t(LINE), ctypes.c_size_t(size))  # never freed: workers use it
        if not address:
            raise OSError("no memory")
        ctypes.memset(address, 0, size)
        team = jobs.SHARED.view(address)
        team.dispatch, team.threads = dispatch, threads
        team.patience = round(PATIENCE / seconds_of_a_look(linger))
        before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())  # workers leave signals to Python
        try:
            for number in range(1, threads):
                recruit(libc, ctypes.c_void_p(worker), address, number)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.address = address
        self.dispatch = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 6)(dispatch)

    def run(self, function: int, argument: int, count: int, grain: int) -> int:
        """Run a job: call a function for all of so many parts, on several threads at once.

        Args:
            function: the address of a jobs.JOB.
            argument: the address of what it is given, which must stay until it is done.
            count: how many parts there are.
            grain: how many of them a thread takes at once: some 5 microseconds of work.

        Returns:
            The floating-point conditions met, bits of `CONDITIONS`; jobs.REFUSED if nothing was done, because the team
            has another job, or because this one is too small.
        """
        return int(self.dispatch(self.address, function, argument, count, grain))


@functools.cache
def team_of(threads: int) -> Team:
    """Return the team of this process with so many threads, for eager and for compiled work."""
    return Team(threads)


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's workers
    os.register_at_fork(after_in_child=team_of.cache_clear)


def check_system() -> None:
    """Raise a RuntimeError unless there are POSIX threads and a known processor."""
    if os.name != "posix":
        raise RuntimeError("there are no POSIX threads")
    if MACHINE not in MACHINES:
        raise RuntimeError(f"the bits of floating-point conditions on {MACHINE} are unknown")


def recruit(libc: Any, worker: ctypes.c_void_p, team: int, number: int) -> None:
    """Make one worker, or raise an OSError."""
    address = place_address(team, number)
    place = jobs.PLACE.view(address)
    place.team = team
    place.number = number
    libc.pthread_mutex_init(ctypes.byref(place.mutex), None)
    libc.pthread_cond_init(ctypes.byref(place.condition), None)
    thread = ctypes.c_void_p()
    if libc.pthread_create(ctypes.byref(thread), None, worker, ctypes.c_void_p(address)):
        raise OSError("no thread could be made")
    libc.pthread_detach(thread)


def place_address(team: int, number: int) -> int:
    """Return where the place with a number lies."""
    return team + jobs.SHARED.size + jobs.PLACE.size * number


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
