"""First calls of functions of small problems, which are not traced: that takes as long as some of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from wengert.core.diagnostics.store_guard import writes_traced
from wengert.errors import WengertError
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.nodes import CREATED
from wengert.transforms.jacobian import jacobian

FEW_OPERATIONS = 300
SHORT = 0.05
"""Of an evaluation of a small problem: the operations, and the seconds of processor time."""


def in_better_mode(residuals: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Jacobian in the mode that its shape asks for, once that is known."""
    modes = {mode: jacobian(residuals, mode=mode) for mode in ("auto", "fwd", "rev")}
    mode = "auto"

    def eagerly(x: Any, *args: Any) -> Any:
        nonlocal mode
        found = modes[mode](x, *args)
        mode = "fwd" if found.shape[0] >= found.shape[1] else "rev"
        return found

    return eagerly


class EagerAtFirst:
    """Be a function that is called as it is a number of times, as long as it does little, and compiled from then on."""

    def __init__(self, compiled: Callable[..., Any], plain: Callable[..., Any], calls: int) -> None:
        self.compiled, self.plain, self.calls = compiled, plain, calls

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        return self.call(self.plain, args)

    def with_plain(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call with another function in place of the one that is called as it is."""
        return lambda *args: self.call(plain, args)

    def call(self, plain: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call a function as it is, or what is compiled."""
        if self.calls <= 0:
            return self.compiled(*args)
        self.calls -= 1
        before, since, refused = next(CREATED), time.thread_time(), refusal_count()
        try:
            found = plain(*args)  # of which loops that were traced before create nothing
        except WengertError as error:
            if not writes_traced(error):
                raise
            forgive(refused)
            self.calls = 0  # what is traced is converted where NumPy would make ndarrays
            return self.compiled(*args)
        if next(CREATED) - before > FEW_OPERATIONS or time.thread_time() - since > SHORT:
            self.calls = 0
        return found
