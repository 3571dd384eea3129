"""Steps over batches of data, from a checkpoint on, with the bits that they have without an end between."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from wengert import tree
from wengert.core.diagnostics.argument_checks import as_whole, require_callable, require_flag, shown
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.optim.files import load_leaves, save
from wengert.support.hints import hint_parameters
from wengert.transforms.boundary import note_refusals
from wengert.transforms.jit import jit as jitted

NAME = "optim.train"
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
"""Seconds of the units of times between checkpoints."""
Batches: TypeAlias = "Iterable[Any] | Callable[[int, int], Iterable[Any]]"
"""Batches, or a function of the number of the epoch, and of that of the first batch wanted, that returns them."""


@hint_parameters("train")
def train(
    step: Callable[..., Any],
    state: Any,
    batches: Batches,
    *,
    epochs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int | str = "10min",
    keep: int = 1,
    jit: bool = True,
    callback: Callable[[Any, int, int], Any] | None = None,
) -> Any:
    """Take a step for each batch of data, epoch after epoch, and go on from a checkpoint if there is one.

    A run that was ended at any moment and called again gives the bits of one never ended: the state, and which batch is
    next, are in the file, and code is compiled before the first step, so that no step is NumPy's in one run and native
    in the other. Random numbers belong into the state, as a key that each step folds or splits.

    Args:
        step: `step(state, *batch)` returns the new state; ordinary code, or a jitted function.
        state: the state before the first step: containers of arrays, parameters and what a rule remembers, say.
        batches: what can be iterated over in each epoch, or a function that returns it, as
            `lambda epoch, start: data.batches(64, shuffle=key, epoch=epoch, start=start)` of
            `wengert.distributed.partitions`: it must give the same batches in each run. Batches are tuples of arrays,
            or one array.
        epochs: how often to go through the batches.
        checkpoint: the path of a file, written by `save` from time to time, at the end, and where an error or Ctrl-C
            ends a run: of the last step that was done. Without `jit` the state is copied for that before each step.
        every: how long after a checkpoint to write the next one: a number of steps, or a time, as "30s", "10min" or
            "2h".
        keep: how many files to keep, as for `save`.
        jit: whether `step` is traced once, and compiled.
        callback: is called as `callback(state, epoch, batch)` after each step, with the number of its batch.

    Returns:
        The state after the last step.

    Raises:
        UsageError: `every` is none of these, batches can be iterated over only once, or the file is of another state.
        FileFormatError: the file is damaged.
        OSError: it cannot be read, or not be written before the first step. Where it cannot be written later, as on a
            full disk, a warning says so: the run goes on, the last checkpoint stays, and the state is returned.

    >>> import numpy as np
    >>> import wengert as wg
    >>> from wengert import optim
    >>> init, update = optim.sgd(0.1)
    >>> def step(state, x, y):
    ...     w, memory = state
    ...     slope = wg.grad(lambda w: np.mean((w * x - y) ** 2))(w)
    ...     return update(slope, memory, w)
    >>> x = np.linspace(-1.0, 1.0, 20).reshape(5, 4)
    >>> w, _ = optim.train(step, (0.0, init(0.0)), list(zip(x, 3.0 * x)), epochs=30)
    >>> round(float(w), 3)
    3.0
    """
    require_callable(NAME, step)
    require_flag(NAME, jit=jit)
    if callback is not None:
        require_callable(NAME, callback, "callback")
    count = as_whole(NAME, "epochs", epochs, least=0)
    clock = None if checkpoint is None else Checkpoints(checkpoint, every, as_whole(NAME, "keep", keep, least=1))
    position = 0, 0
    if clock is not None:
        state, position = clock.resume(state)
    whole = state, position
    run = note_refusals(NAME, jitted(step, native=True)) if jit else step
    begin, start = position
    try:
        for epoch in range(begin, count):
            for number, batch in enumerate(batches_of(batches, epoch, start, count), start):
                if clock is not None and not jit:  # steps of NumPy may change what they are given, and not be done
                    whole = copy_state(state), whole[1]
                state = run(state, *batch) if isinstance(batch, tuple) else run(state, batch)
                whole = state, (epoch, number + 1)
                if clock is not None:
                    clock.step(*whole)
                if callback is not None:
                    callback(state, epoch, number)
            start = 0
            whole = state, (epoch + 1, 0)
    finally:
        if clock is not None:
            clock.write(*whole)
    return state


def copy_state(state: Any) -> Any:
    """Return a state with arrays of its own."""
    return tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray | Tensor) else leaf, state)


def batches_of(batches: Batches, epoch: int, start: int, epochs: int) -> Iterator[Any]:
    """Return an iterator over the batches of an epoch, from one of them on."""
    if callable(batches):
        return iter(batches(epoch, start))
    try:
        found = iter(batches)
    except TypeError:
        needed = "batches, or a function of the numbers of epoch and batch, are needed"
        raise UsageError(NAME, f"{shown(batches)} for batches", needed, "Pass a list of tuples, say") from None
    if found is batches and epochs > 1:
        needed = "what can be iterated over in each is needed"
        raise UsageError(NAME, f"an iterator for {epochs} epochs", needed, "Pass a list, or a function of the epoch")
    return islice(found, start, None)


class Checkpoints:
    """Write the state of a run to a file when it is time to.

    Args:
        path: of the file.
        every: how many steps, or how much time, there are between.
        keep: how many files to keep.
    """

    def __init__(self, path: str | os.PathLike[str], every: int | str, keep: int) -> None:
        if not isinstance(path, str | os.PathLike):
            needed = "the path of a file is needed"
            raise UsageError(NAME, f"{shown(path)} for checkpoint", needed, "Pass one, as 'run.npz'")
        self.path, self.keep = path, keep
        self.steps, self.seconds = interval_of(every)
        self.written: tuple[int, int] | None = None
        self.begin_anew()

    def begin_anew(self) -> None:
        """Count from here on."""
        self.count, self.since = 0, time.monotonic()

    def resume(self, state: Any) -> tuple[Any, tuple[int, int]]:
        """Return the state to begin with, in the containers of a given one, and the epoch and batch that come next."""
        if not os.path.exists(self.path):
            self.write(state, (0, 0))  # a path that cannot be written to is told before the first step
            return state, (0, 0)
        try:
            found = load_leaves(self.path, self.content(state, (0, 0)), same_dtypes=False)
        except UsageError as error:
            place = os.fspath(self.path)
            error.add_note(f"{NAME} goes on from {place!r}, which is of another state. Remove the file to begin anew.")
            raise
        self.written = found["epoch"], found["batch"]
        return found["state"], self.written

    @staticmethod
    def content(state: Any, position: tuple[int, int]) -> dict[str, Any]:
        """Return the dictionary that a file of a checkpoint holds."""
        return {"epoch": position[0], "batch": position[1], "state": state}

    def step(self, state: Any, position: tuple[int, int]) -> None:
        """Write a checkpoint if it is time to."""
        self.count += 1
        if self.count >= self.steps or time.monotonic() - self.since >= self.seconds:
            self.write(state, position)

    def write(self, state: Any, position: tuple[int, int]) -> None:
        """Write a checkpoint, unless that was done for this position; warn where it cannot be written any more."""
        if position == self.written:
            return
        self.begin_anew()
        try:
            save(self.path, self.content(state, position), keep=self.keep)
        except OSError as error:
            if self.written is None:
                raise
            text = f"{NAME} could not write a checkpoint: {error}. The one before epoch {self.written[0]}, batch "
            warnings.warn(f"{text}{self.written[1]} stays, and the run goes on", stacklevel=user_stacklevel())
            return
        self.written = position


def interval_of(every: int | str) -> tuple[float, float]:
    """Return after how many steps, or how many seconds, something is done; infinity for the other.

    >>> interval_of("1.5 min"), interval_of(100)
    ((inf, 90.0), (100, inf))
    """
    if isinstance(every, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(s|min|h)\s*", every)
        if match:
            return float("inf"), float(match[1]) * UNITS[match[2]]
    elif not isinstance(every, bool) and hasattr(every, "__index__") and every >= 1:
        return every, float("inf")
    needed = "a number of steps, 1 or more, or a time is needed"
    raise UsageError(NAME, f"{shown(every)} for every", needed, "Pass 100, '30s', '10min' or '2h', say")
