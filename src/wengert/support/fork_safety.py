"""What the interpreter must not end in the middle of, in threads that do not keep it from ending, nor be forked in.

Such a thread, a daemon, is stopped where it next asks for the interpreter lock. What is written in C++ and calls
Python, or is being loaded, does not survive that: the process would abort instead of ending.

A process that is forked has the locks of the threads that it has not, and nobody will ever release them: those of
libraries in C++, and those of modules that were being imported. Most of Wengert is imported when it is first used.
"""

from __future__ import annotations

import _imp
import atexit
import os
import sys
import threading
import time
from typing import Any

UNSTOPPED = threading.RLock()
"""Held while LLVM works, and while libraries in C++ and modules of native code are loaded.

The interpreter ends, and processes are forked, when it is free: nobody would ever release LLVM's own locks in a process
that was forked meanwhile. Nothing that a user wrote runs under it.
"""

WALKING = threading.RLock()
"""Held while optree walks containers: it waits for the interpreter lock, and calls Python.

What a user wrote may run under it, so the end of the interpreter does not wait for ever.
"""

PATIENCE = 2.0
"""Seconds for which the end of the interpreter waits for what a user wrote."""
IMPORTING = 10.0
"""Seconds for which a fork waits for imports, which take a tenth of one, and may need what this thread has."""
LOOKING = 0.0005
"""Seconds between two looks at what other threads import."""
IMPORTED = frozenset({"wengert", "numpy", "scipy", "optree", "llvmlite"})
"""Packages that are imported, wholly or in parts, when Wengert needs them."""
BOOTSTRAP: Any = sys.modules.get("_frozen_importlib")
HELD: list[Any] = []
"""Locks that are held while a process is forked; the last one is acquired first, as by those who need several."""
HOOKED = {"logging": ("_lock", "getLogger"), "concurrent.futures.thread": ("_global_shutdown_lock", "Future")}
"""Modules of Python's that acquire a lock before a fork and release it after, and what they have once they do that."""


def hold_in_forks(lock: Any) -> None:
    """Hold a lock while a process is forked: in that process nobody would ever release what another thread holds."""
    HELD.append(lock)


def is_importing() -> bool:
    """Tell whether another thread imports something that Wengert needs, or is about to.

    Python has a lock for each module that somebody imports; where it keeps them is its own affair, so there may be none
    to be found.
    """
    own = threading.get_ident()
    locks = [(name, reference()) for name, reference in list(getattr(BOOTSTRAP, "_module_locks", {}).items())]
    return any(
        lock is not None and getattr(lock, "owner", own) != own and name.partition(".")[0] in IMPORTED
        for name, lock in locks
    )


def loaded_hooks() -> set[str]:
    """Return which of HOOKED have been imported."""
    return {name for name, (_, last) in HOOKED.items() if hasattr(sys.modules.get(name), last)}


def hold() -> None:
    """Hold what other threads must not be in the middle of, and let none begin to import, before a fork."""
    end, known = time.monotonic() + IMPORTING, loaded_hooks()
    while True:
        for lock in reversed(HELD):
            lock.acquire()
        _imp.acquire_lock()
        if not is_importing() or time.monotonic() > end:
            break
        release()
        time.sleep(LOOKING)
    for name in loaded_hooks() - known:  # since: they did nothing before this fork, and will after
        getattr(sys.modules[name], HOOKED[name][0]).acquire()


def release() -> None:
    """Let all go on, after a fork."""
    _imp.release_lock()
    for lock in HELD:
        lock.release()


atexit.register(UNSTOPPED.acquire)
atexit.register(WALKING.acquire, timeout=PATIENCE)
for each in (UNSTOPPED, WALKING):
    hold_in_forks(each)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=release)
