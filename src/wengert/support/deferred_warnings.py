"""Code that stops where it would warn, so that it can be done again where the warning belongs: at the user's line.

Python and NumPy warn of the innermost line of Python, and note it in the `__warningregistry__` of its module. Where
that is no dictionary they raise a TypeError instead: in the modules of the library that are given to `unregister`.
This costs nothing where there is nothing to warn of. All such lines must meet the error, by `require_warning`.
"""

from __future__ import annotations

import gc
import warnings
from functools import partial
from itertools import repeat
from operator import setitem
from typing import Any


def stop_text() -> str:
    """Return the text of Python's error where it would warn of a line in such a module, or none if it warns."""
    try:
        warnings.warn_explicit("a registry that is no dictionary", Warning, "", 1, "wengert", ())  # type: ignore[call-overload]  # on purpose
    except TypeError as error:
        return str(error)
    return ""


STOPPED = stop_text()
UNREGISTERED: Any = () if STOPPED else {}
"""What their `__warningregistry__` is; false, since unittest empties those that are not."""
REGISTRY = "__warningregistry__"
SPACES: list[dict[str, Any]] = []
"""The global names of functions that stop."""
WARNED: list[dict[Any, Any]] = []
"""What has been warned of in each of them while the garbage collector ran."""


def unregister(names: dict[str, Any]) -> None:
    """Let functions with these global names stop where they would warn."""
    names[REGISTRY] = UNREGISTERED
    SPACES.append(names)
    WARNED.append({})


class Stopping:
    """Let functions stop where they would warn, when the attribute is asked for: `any` meets nothing but None."""

    __iter__ = staticmethod(partial(map, setitem, SPACES, repeat(REGISTRY), repeat(UNREGISTERED)))
    everywhere = property(any)


class Collecting:
    """Let what the garbage collector finalizes in the middle of such a function warn as it does anywhere.

    The collector calls `getattr` of this with its phase. No line of Python runs then: where a function of Python begins
    signals are handled, and what that raises in the middle of collecting, such as KeyboardInterrupt, is lost.
    """

    __iter__ = staticmethod(partial(map, setitem, SPACES, repeat(REGISTRY), WARNED))
    start = property(any)
    stop = property(partial(getattr, Stopping(), "everywhere"))


gc.callbacks.append(partial(getattr, Collecting()))


def require_warning(error: TypeError) -> None:
    """Raise an error again unless it stands for a warning."""
    if str(error) != STOPPED:
        raise error
