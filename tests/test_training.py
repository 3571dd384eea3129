"""Steps over batches: from a checkpoint on they have the bits of a run that never ended."""

from __future__ import annotations

import dataclasses
import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import optim, random
from wengert.errors import FileFormatError, UsageError
from wengert.optim import training

EPOCHS, COUNT = 3, 7
RULE = optim.adam(0.05)
X = np.random.default_rng(0).normal(size=(COUNT, 5, 3))
Y = np.sin(X @ np.array([1.0, -2.0, 0.5]))


@dataclasses.dataclass
class Run:
    weights: Any
    memory: Any
    key: Any
    loss: Any = 0


def start() -> Run:
    weights = {"w": np.zeros(3), "b": 0.0}
    return Run(weights, RULE.init(weights), random.key(1))


def step(run: Run, x: Any, y: Any) -> Run:
    noise = random.normal(run.key, size=y.shape)
    loss, slope = wg.value_and_grad(lambda p: np.mean((np.tanh(x @ p["w"] + p["b"]) - y + 0.1 * noise) ** 2))(
        run.weights
    )
    weights, memory = RULE.update(slope, run.memory, run.weights)
    return Run(weights, memory, random.fold_in(run.key, 1), loss)


def batches(epoch: int, first: int) -> Iterator[Any]:
    """Give the batches of an epoch in its order."""
    order = np.random.default_rng(epoch).permutation(COUNT)
    for number in order[first:]:
        yield X[number], Y[number]


def bits(run: Run) -> bytes:
    return b"".join(np.asarray(leaf).tobytes() for leaf in wg.tree.leaves(run))


class Ended(BaseException):
    pass


def run_with_ends(path: Path, jit: bool, rng: np.random.Generator, **options: Any) -> tuple[Run, int]:
    """Take all steps, and begin again whenever a run ends in the middle: in a step, in reading or in the callback."""
    ends = 0

    def end(left: int) -> Any:
        def source(epoch: int, first: int) -> Iterator[Any]:
            nonlocal left
            for batch in batches(epoch, first):
                left -= 1
                if left == 0:
                    raise Ended
                yield batch

        def callback(_run: Any, _epoch: int, _batch: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Ended

        return source, callback

    while True:
        source, callback = end(int(rng.integers(1, 25)))
        try:
            arguments = {"epochs": EPOCHS, "checkpoint": path, "jit": jit, "callback": callback}
            return optim.train(step, start(), source, **arguments, **options), ends
        except Ended:
            ends += 1


@pytest.mark.parametrize(("jit", "count"), [pytest.param(True, 30, marks=pytest.mark.long), (False, 12)])
def test_a_run_that_ended_anywhere_has_the_same_bits(
    jit: bool, count: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    want = bits(optim.train(step, start(), batches, epochs=EPOCHS, jit=jit))
    rng, ends = np.random.default_rng(0), 0
    wanted = 200 if request.config.getoption("--every") else count
    while ends < wanted:
        path = tmp_path / f"{ends}"
        found, own = run_with_ends(path, jit, rng, every=int(rng.integers(1, 6)), keep=2)
        assert bits(found) == want
        assert bits(optim.train(step, start(), batches, epochs=EPOCHS, jit=jit, checkpoint=path)) == want
        ends += own
    assert type(found) is Run
    assert type(found.memory) is type(start().memory)


SCRIPT = """
import os, sys
from tests.test_training import *
def source(epoch, first):
    for batch in batches(epoch, first):
        if np.random.default_rng().random() < 0.12: os.kill(os.getpid(), 9)
        yield batch
print(bits(optim.train(step, start(), source, epochs=EPOCHS, checkpoint=sys.argv[1], every=2)).hex())
"""


def test_a_process_that_is_killed_goes_on_with_the_same_bits(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--every"):
        pytest.skip("processes take seconds")
    want = bits(optim.train(step, start(), batches, epochs=EPOCHS)).hex()
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    for _ in range(30):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "x")]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, check=False)
        if done.returncode == 0:
            break
    assert done.stdout.decode().strip() == want


def test_iterables_are_taken_anew_in_each_epoch() -> None:
    def count(state: Any, x: Any) -> Any:
        return state + np.sum(x)

    assert optim.train(count, 0.0, [np.ones(2), np.ones(3)], epochs=2) == 10.0
    assert optim.train(count, 0.0, iter([np.ones(2)]), epochs=1) == 2.0
    assert optim.train(count, 0.0, [], epochs=5) == 0.0
    assert optim.train(count, 1.5, [np.ones(2)], epochs=0) == 1.5


def test_checkpoints_are_written_when_it_is_time(tmp_path: Path, monkeypatch: Any) -> None:
    now, written = 0.0, []

    def note(path: Any, tree: Any, keep: int) -> None:
        written.append((tree["epoch"], tree["batch"]))

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(training, "save", note)

    def later(_state: Any, _epoch: int, _batch: int) -> None:
        nonlocal now
        now += 20.0

    for every in ("1 min", 3):
        written.clear()
        rows = [np.ones(1)] * 8
        optim.train(lambda s, x: s + x[0], 0.0, rows, checkpoint=tmp_path / "x", every=every, jit=False, callback=later)
        assert written == ([(0, 0), (0, 4), (0, 7), (1, 0)] if every == "1 min" else [(0, 0), (0, 3), (0, 6), (1, 0)])


def test_a_full_disk_ends_no_run(tmp_path: Path, monkeypatch: Any) -> None:
    path, room = tmp_path / "x", 4  # two for a file: of it, and of its folder

    def fill(_file: int) -> None:
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fill)
    rows = [np.ones(1)] * 4
    with pytest.warns(UserWarning, match="could not write .*No space left.*The one before epoch 0, batch 1 ") as told:
        assert optim.train(lambda s, x: s + x[0], 0.0, rows, checkpoint=path, every=1) == 4.0
    assert len(told) == 4
    assert told[0].filename == __file__
    assert optim.load(path)["state"] == 1.0
    assert os.listdir(tmp_path) == ["x"]
    with pytest.raises(OSError, match="No space left"):
        optim.train(lambda s, x: s + x[0], 0.0, rows, checkpoint=tmp_path / "y")


def test_steps_in_place_are_written_between_steps_alone(tmp_path: Path) -> None:
    def change(w: Any, x: Any) -> Any:
        w[0] += x
        if w[0] == 3.0:
            raise ZeroDivisionError
        w[1] += x
        return w

    with pytest.raises(ZeroDivisionError):
        optim.train(change, np.zeros(2), [1.0] * 5, checkpoint=tmp_path / "x", every=9, jit=False)
    found = optim.load(tmp_path / "x")
    np.testing.assert_array_equal(found["state"], [2.0, 2.0])
    assert (found["epoch"], found["batch"]) == (0, 2)

    def fail_at_the_third(_state: Any, _epoch: int, number: int) -> None:
        if number == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # of nothing in a step: all three are done
        optim.train(
            lambda w, x: w + x, 0.0, [1.0] * 5, checkpoint=tmp_path / "y", jit=False, callback=fail_at_the_third
        )
    assert optim.load(tmp_path / "y") == {"epoch": 0, "batch": 3, "state": 3.0}


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "x"
    optim.train(step, start(), batches, checkpoint=path)
    other = dataclasses.replace(start(), weights={"w": np.zeros(4), "b": 0.0})
    with pytest.raises(UsageError, match=r"^optim.load: an array of shape \(3,\) .* at like\['state'\]") as error:
        optim.train(step, other, batches, checkpoint=path)
    assert "Remove the file to begin anew." in error.value.__notes__[0]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FileFormatError):
        optim.train(step, start(), batches, checkpoint=path)
    for every in ("10", "10 days", 0, 2.5, True, "-1s"):
        with pytest.raises(UsageError, match=r"^optim.train: .* for every; a number of steps, 1 or more, or a time is"):
            optim.train(step, start(), batches, checkpoint=path, every=every)
    for wrong, text in ((3, "3 for batches; batches, or a"), (iter([]), "an iterator for 2 epochs; what can be iter")):
        with pytest.raises(UsageError, match=f"^optim.train: {text}"):
            optim.train(step, start(), wrong, epochs=2)
    for place in (3, None.__class__, b"x"):
        with pytest.raises(UsageError, match=r"^optim.train: .* for checkpoint; the path of a file is needed\."):
            optim.train(step, start(), batches, checkpoint=place)
    with pytest.raises(TypeError, match=r"^optim.train: 3 as the callback"):
        optim.train(step, start(), batches, callback=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_epochs'; write epochs="):
        optim.train(step, start(), batches, max_epochs=2)
