"""A team of threads for one process: native workers that look for work for a while and then sleep.

Waking a sleeping thread costs tens of microseconds, as much as a large operation takes; a worker therefore keeps
looking for two milliseconds after each job, and the dispatching thread never waits for one that has not begun.
The workers run no Python and hold no interpreter lock. `jobs` has the protocol.
"""

from __future__ import annotations

import ctypes
import os
import time

from wengert.native.availability import UnavailableError
from wengert.native.loader import kept_code
from wengert.native.threads.job_tables import PLACE, SHARED
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.machine import MACHINE, PROCESSOR, PROCESSORS

PATIENCE = 2e-3  # seconds that a worker looks for the next job, about as long as OpenMP's do


class Team:
    """Be the workers of this process, who share jobs with the thread that dispatches them; the first job makes them.

    Raises:
        UnavailableError: there are no POSIX threads, or LLVM cannot serve here.
    """

    def __init__(self, threads: int) -> None:
        check_system()
        functions = kept_code("a team", program_text).addresses
        code, linger = functions["dispatch"], functions["linger"]
        libc = ctypes.CDLL(None)
        libc.aligned_alloc.restype = ctypes.c_void_p
        self.size = SHARED.size + PLACE.size * threads
        sizes = ctypes.c_size_t(MACHINE.apart), ctypes.c_size_t(self.size)
        address = libc.aligned_alloc(*sizes)  # never freed: workers use it
        if not address:
            raise UnavailableError("no memory")
        self.address: int = address
        self.code, self.threads, self.patience = code, threads, round(PATIENCE / seconds_of_a_look(linger))
        self.dispatch = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 6)(code)
        self.begin()

    def begin(self) -> None:
        """Be without workers until there is a job, as at first and in a process that was forked."""
        ctypes.memset(self.address, 0, self.size)
        team = SHARED.view(self.address)
        team.dispatch, team.threads, team.patience = self.code, self.threads, self.patience

    def run(self, function: int, argument: int, count: int, grain: int) -> int:
        """Run a job: call a function for all of so many parts, on several threads at once.

        Args:
            function: the address of a JOB.
            argument: the address of what it is given, which must stay until it is done.
            count: how many parts there are.
            grain: how many of them a thread takes at once: some 5 microseconds of work.

        Returns:
            The floating-point conditions met, bits of `CONDITIONS`; REFUSED if nothing was done, because the team
            has another job, or because this one is too small.
        """
        return int(self.dispatch(self.address, function, argument, count, grain))


def program_text() -> str:
    """Return the text of what workers run; what it is written with is loaded only if it is needed."""
    with UNSTOPPED:
        from wengert.native.builder import program
        from wengert.native.threads.jobs import dispatch, linger

    return program(dispatch, linger)


TEAMS: dict[int, Team] = {}
"""The teams of this process, by their numbers of threads."""


def team_of(threads: int) -> Team:
    """Return the team of this process with so many threads, for eager and for compiled work."""
    return TEAMS.get(threads) or TEAMS.setdefault(threads, Team(threads))


def begin_anew() -> None:
    """Let all teams be without workers, in a process forked from theirs, where no thread but this one is."""
    for team in TEAMS.values():
        team.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=begin_anew)


def check_system() -> None:
    """Raise an UnavailableError unless there are POSIX threads and a known processor."""
    if os.name != "posix":
        raise UnavailableError("there are no POSIX threads")
    if PROCESSOR not in PROCESSORS:
        raise UnavailableError(f"the bits of floating-point conditions on {PROCESSOR} are unknown")


def seconds_of_a_look(linger: int) -> float:
    """Measure how long a worker takes to look for work once."""
    looks = 1_000
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(linger)
    found = []
    for _ in range(3):
        start = time.perf_counter()
        function(looks)
        found.append(time.perf_counter() - start)
    return min(found) / looks
