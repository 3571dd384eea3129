"""The record of the machine: what is read of a file, what is ignored, and that code of another machine is another's."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels import as_if
from wengert.compile import compilation_cache
from wengert.errors import UsageError
from wengert.lowering.costs import calls_before
from wengert.support.machine import CALIBRATED, MACHINE, Machine, read_record
from wengert.support.records import fields_of
from wengert.transforms.tracing import trace


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"clock": 2400},
        {"second_cache": 1 << 20, "compiling": [5e3, 100.0]},
        {"evaluating": [20, 0.7], "passing": 2e-4},
    ],
    ids=repr,
)
def test_what_was_measured_is_read(values: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(values))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_record(str(path))
    assert found == Machine().replace(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def test_names_of_no_fields_are_not_replaced() -> None:
    with pytest.raises(UsageError, match="clocks to be replaced"):
        Machine().replace(clock=1.0, clocks=2.0)


DAMAGED = {
    "cut off": b'{"clock": 24',
    "no text": b"\xff\x00\xfe",
    "no record": b"[3000.0]",
    "nested": b"[" * 100_000,
    "unknown": b'{"clocks": 3000.0}',
    "not to be measured": b'{"apart": 100}',
    "no number": b'{"clock": "3000"}',
    "truth": b'{"second_cache": true}',
    "not a number": b'{"clock": NaN}',
    "endless": b'{"clock": Infinity}',
    "huge": b'{"clock": 1' + b"0" * 400 + b"}",
    "negative": b'{"passing": -0.0005}',
    "part of a byte": b'{"second_cache": 2000000.5}',
    "too few": b'{"compiling": [10000.0]}',
    "empty": b"",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_said_and_ignored(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=r"machine\.json, .* damaged and not used\. Run `wengert doctor --calibrate`"):
        assert read_record(str(path)) == Machine()


def test_what_others_can_write_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text('{"clock": 2400}')
    path.chmod(0o666)
    with pytest.warns(UserWarning, match="not used"):
        assert read_record(str(path)) == Machine()


def test_decisions_follow_the_record_and_code_is_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = trace(lambda x: np.sin(x) * 2.0)(np.ones(3))
    usual, key = calls_before(graph), compilation_cache.key_of(graph)
    as_if(monkeypatch, compiling=(20 * MACHINE.compiling[0], MACHINE.compiling[1]))
    monkeypatch.setattr(compilation_cache, "MEASURED", "other")
    assert calls_before(graph) > 10 * usual
    assert compilation_cache.key_of(graph) != key


def test_fields_that_can_be_measured_are_fields() -> None:
    assert {*CALIBRATED} < {*fields_of(Machine)}
