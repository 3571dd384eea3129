"""What the interpreter must not end in the middle of, in threads that do not keep it from ending.

Such a thread, a daemon, is stopped where it next asks for the interpreter lock. What is written in C++ and calls
Python, or is being loaded, does not survive that: the process would abort instead of ending.
"""

from __future__ import annotations

import atexit
import os
import threading

__all__ = ["UNSTOPPED"]

UNSTOPPED = threading.RLock()
"""Held while LLVM works, and while libraries in C++ are loaded.

The interpreter ends, and processes are forked, when it is free: nobody would ever release LLVM's own locks in a process
that was forked meanwhile. Nothing that a user wrote runs under it.
"""

atexit.register(UNSTOPPED.acquire)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=UNSTOPPED.acquire, after_in_parent=UNSTOPPED.release, after_in_child=UNSTOPPED.release)
