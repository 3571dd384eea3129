"""Switches, read from the environment once: what is logged, what is checked, and how many threads there are.

`WENGERT_LOG=passes` logs the graph after each pass, `loops` what Python's `for` and `while` became, `kernels` what is
compiled, `cache` what was found and kept; several topics are separated by commas. `WENGERT_DEBUG=1` checks graphs
after each pass, kernels after each step of lowering. `WENGERT_THREADS` is the number of threads that share large
operations; without it OMP_NUM_THREADS counts, which people set to run many processes side by side. `WENGERT_CACHE` is
the folder in which machine code is kept; `0` or nothing keeps none. Jitted functions are compiled to native code as
far as kernels can compute them, as soon as that is worth it: `WENGERT_NATIVE=1` compiles each at its first call,
`WENGERT_NATIVE=0` none. `WENGERT_OWN_FUNCTIONS=1` lets eager operations on large arrays use the functions of native
code where these are faster than NumPy's, whose last bits they do not have. Switches are `1`, `on`, `yes` or `true`,
and `0`, `off`, `no` or `false`.
"""

from __future__ import annotations

import contextlib
import os
import sys

from wengert.errors import UsageError

MOST_THREADS = 16  # memory feeds no more than this
MOST_TOLD = 256  # which may be asked for all the same
TOPICS = ("passes", "loops", "kernels", "cache")
SETTINGS = {**dict.fromkeys(("1", "on", "yes", "true"), True), **dict.fromkeys(("0", "off", "no", "false"), False)}


def switch(name: str) -> bool | None:
    """Return the truth that a variable of the environment has; None if it is not there, or empty.

    Raises:
        UsageError: it is none of the words for on and off.
    """
    told = os.environ.get(name, "").strip()
    if told and told.lower() not in SETTINGS:
        raise UsageError(name, repr(told), "1 or 0 is needed", "Set one of the two, or take it away")
    return SETTINGS.get(told.lower())


def logged_topics() -> frozenset[str]:
    """Return the topics that WENGERT_LOG names.

    Raises:
        UsageError: there is no such topic.
    """
    topics = frozenset(topic.strip() for topic in os.environ.get("WENGERT_LOG", "").split(",")) - {""}
    for topic in topics.difference(TOPICS):
        raise UsageError(
            "WENGERT_LOG", repr(topic), f"some of {', '.join(TOPICS)} are needed", "Correct it, or take it away"
        )
    return topics


def cache_folder() -> str | None:
    """Return the folder in which code is kept, from where the process is now, or a word for on and off, or None."""
    told = os.environ.get("WENGERT_CACHE")
    if told is None or told.strip().lower() in ("", *SETTINGS) or told.startswith(("~", os.sep)):
        return told  # a folder called `off` is `./off`
    try:
        return os.path.abspath(told)
    except OSError:  # there is no such place any more
        return ""


DEBUG = switch("WENGERT_DEBUG") is True
CACHE = cache_folder()
NATIVE = switch("WENGERT_NATIVE") is not False
AT_ONCE = switch("WENGERT_NATIVE") is True
OWN_FUNCTIONS = switch("WENGERT_OWN_FUNCTIONS") is True
LOGGED = logged_topics()


def default_folder() -> str | None:
    """Return where code is kept: as told by WENGERT_CACHE, or where the system has such things; None for nowhere."""
    told = CACHE
    kept = True if told is None else SETTINGS.get(told.strip().lower(), told.strip() and told)
    if not kept:
        return None
    if kept is not True:
        with contextlib.suppress(OSError):  # a relative one, where there is no working directory any more
            return os.path.abspath(os.path.expanduser(kept))
        return None
    home = os.path.expanduser("~")
    if not os.path.isabs(home) or os.environ.get("HOME") == "":
        return None
    if os.name == "nt":
        return os.path.join(os.environ.get("LOCALAPPDATA", os.path.join(home, "AppData", "Local")), "wengert", "cache")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "wengert")
    given = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(given if os.path.isabs(given) else os.path.join(home, ".cache"), "wengert")


def thread_count() -> int:
    """Return how many threads share large operations: as told, or one for each usable processor, 16 at most.

    Raises:
        UsageError: WENGERT_THREADS is no number from 1 to 256.
    """
    told = os.environ.get("WENGERT_THREADS", "").strip()
    if told:
        if not told.isdecimal() or not 1 <= int(told) <= MOST_TOLD:
            needed = f"a number of threads from 1 to {MOST_TOLD} is needed"
            raise UsageError("WENGERT_THREADS", repr(told), needed, "Set it to 1 to compute on one thread")
        return int(told)
    others, _, _ = os.environ.get("OMP_NUM_THREADS", "").partition(",")
    if others.strip().isdecimal() and int(others):
        return min(int(others), MOST_TOLD)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_THREADS)


THREADS = thread_count()
