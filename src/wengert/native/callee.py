"""What entries call: a kernel, with the memory that it works in."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.native.memory import room

__all__ = ["Callee"]

WORDS = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p


class Callee:
    """Hold what a call of a kernel needs.

    Args:
        address: of a tables.KERNEL, which gets the addresses of the arrays and numbers of the arguments, then of the
            result, each in the order in which `kinds.leaves` has them, and that of a byte, which is zero: if it makes
            that one, there is no result, and Python does what is to be done.
        arena: memory for the kernel, as `memory.room` gives it, with its constants. One call at a time uses it;
            others get a copy, in which nothing but the constants is as it was.
        team: where the address of a team's memory stands, for the kernel; none for no team.
        releases: whether other threads may run Python meanwhile, which is worth while above 5 microseconds of work.
        owner: what the kernel's code belongs to.

    Attributes:
        busy: 1 while a call without the interpreter lock uses the arena; native calls alone look here.
    """

    def __init__(
        self,
        address: int,
        *,
        arena: np.ndarray[Any, Any] | None = None,
        team: ctypes.c_void_p | None = None,
        releases: bool = False,
        owner: Any = None,
    ) -> None:
        self.address, self.arena = address, room(0) if arena is None else arena
        self.team, self.releases, self.owner = team, releases, owner
        self.busy, self.lock = ctypes.c_int64(), threading.Lock()

    def call(self, addresses: Sequence[int]) -> None:
        """Call the kernel through ctypes where nothing calls it natively; apart if another thread has the arena."""
        if not self.lock.acquire(blocking=False):  # a thread that a forked process has not may hold it for ever
            self.call_apart(addresses)
            return
        try:
            self.call_in(self.arena, addresses)
        finally:
            self.lock.release()

    def call_apart(self, addresses: Sequence[int]) -> None:
        """Call the kernel through ctypes in a copy of the arena, which native calls may be using."""
        arena = room(self.arena.nbytes)
        arena[:] = self.arena
        self.call_in(arena, addresses)

    def call_in(self, arena: np.ndarray[Any, Any], addresses: Sequence[int]) -> None:
        """Call the kernel through ctypes."""
        function = (ctypes.CFUNCTYPE if self.releases else ctypes.PYFUNCTYPE)(None, *WORDS)(self.address)
        team = None if self.team is None else self.team.value
        function((ctypes.c_void_p * max(len(addresses), 1))(*addresses), arena.ctypes.data, team)
