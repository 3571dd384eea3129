"""What the interpreter must not end in the middle of, in threads that do not keep it from ending.

Such a thread, a daemon, is stopped where it next asks for the interpreter lock. What is written in C++ and calls
Python, or is being loaded, does not survive that: the process would abort instead of ending.
"""

from __future__ import annotations

import atexit
import os
import threading

__all__ = ["UNSTOPPED", "WALKING"]

UNSTOPPED = threading.RLock()
"""Held while LLVM works, and while libraries in C++ and modules of native code are loaded.

The interpreter ends, and processes are forked, when it is free: nobody would ever release LLVM's own locks in a process
that was forked meanwhile, nor that of a module which another thread was importing. Nothing that a user wrote runs under
it.
"""

WALKING = threading.RLock()
"""Held while optree walks containers: it waits for the interpreter lock, and calls Python.

What a user wrote may run under it, so the end of the interpreter does not wait for ever.
"""

PATIENCE = 2.0
"""Seconds."""

atexit.register(UNSTOPPED.acquire)
atexit.register(WALKING.acquire, timeout=PATIENCE)
if hasattr(os, "register_at_fork"):
    for lock in (UNSTOPPED, WALKING):  # the last one is acquired first, as by those who need both
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
