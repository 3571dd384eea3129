"""Files of parameters and states: whole or as before, whatever happens, and nothing that has changed is read."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import optim
from wengert.errors import DtypeError, FileFormatError, GraphError, UsageError
from wengert.support import whole_files

TREE = {"a": np.arange(6.0).reshape(2, 3).T, "b": [1.5, "text"], "c": np.array([1 + 2j]), "d": np.zeros((0, 2))}


def content_of(tree: Any) -> bytes:
    file = io.BytesIO()
    optim.save(file, tree)
    return file.getvalue()


def is_same(one: Any, other: Any) -> bool:
    return all(
        np.array_equal(x, y) and np.asarray(x).dtype == np.asarray(y).dtype and np.shape(x) == np.shape(y)
        for x, y in zip(wg.tree.leaves(one), wg.tree.leaves(other), strict=True)
    ) and wg.tree.structure(one) == wg.tree.structure(other)


# Damage


def altered(content: bytes, rng: np.random.Generator) -> bytes:
    kind = rng.integers(4)
    if kind == 0:
        return content[: rng.integers(len(content))]
    damaged = bytearray(content)
    start = int(rng.integers(len(content)))
    if kind == 1:
        damaged[start] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        damaged[start : start + 64] = rng.bytes(len(damaged[start : start + 64]))
    else:
        del damaged[start : start + int(rng.integers(1, 64))]
    return bytes(damaged)


def test_damaged_files_are_refused_or_read_as_they_were_saved(request: pytest.FixtureRequest) -> None:
    content, rng, refused = content_of(TREE), np.random.default_rng(0), 0
    count = 20_000 if request.config.getoption("--every") else 1500
    for _ in range(count):
        damaged = altered(content, rng)
        try:
            found = optim.load(io.BytesIO(damaged))
        except FileFormatError as error:
            assert re.match(r"optim.load: (a file that|an archive with) ", str(error))  # noqa: PT017 - others may load
            refused += 1
        else:  # dates, and what archives say twice, decide nothing
            assert is_same(found, TREE)
    assert refused > count // 2


def test_files_on_disk_are_refused_as_those_in_memory(tmp_path: Path) -> None:
    content, rng = content_of({"a": np.arange(3)}), np.random.default_rng(1)
    for _ in range(100):
        (tmp_path / "x").write_bytes(altered(content, rng))
        with contextlib.suppress(FileFormatError):
            assert is_same(optim.load(tmp_path / "x"), {"a": np.arange(3)})


def rewritten(changes: dict[str, Any], compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    """Return an archive in which some entries are others, with check sums that fit."""
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content_of({"a": np.arange(3.0)}))) as archive, zipfile.ZipFile(found, "w") as new:
        for name in archive.namelist():
            data = changes.get(name, archive.read(name))
            if data is not None:
                new.writestr(name, data, compression)
    return found


def array_file(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize(
    "file",
    [
        rewritten({"digest.npy": None}),
        rewritten({"0.npy": array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (10**15,)}")}),
        rewritten({"0.npy": array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,)}")}),
        rewritten({"0.npy": array_file("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}")}),
        rewritten({"0.npy": array_file("__import__('os').abort()")}),
        rewritten({"0.npy": array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}") + b"\0" * 24}),
        rewritten({}, zipfile.ZIP_DEFLATED),
        io.BytesIO(b""),
    ],
)
def test_what_nobody_saved_is_refused_without_much_memory(file: io.BytesIO) -> None:
    with pytest.raises(FileFormatError, match=r"^optim.load: a file that .* Save it again\.$"):
        optim.load(file)


def test_layouts_that_say_something_else_are_refused() -> None:
    text = json.dumps({"leaves": [{"array": 0}], "layout": {"State": [0, {"module": ["os"]}]}})
    file = io.BytesIO()
    np.savez(file, content=np.array(text), digest=np.array("0"), **{"0": np.arange(3.0)})
    with pytest.raises(FileFormatError):
        optim.load(file)


# What comes back


def test_states_of_rules_need_no_example(tmp_path: Path) -> None:
    init, update = optim.clipped(optim.adam(0.1), 1.0)
    parameters = {"w": np.ones(3), "b": 1.0}
    _, state = update(parameters, init(parameters), parameters)
    optim.save(tmp_path / "x", (parameters, state))
    again, kept = optim.load(tmp_path / "x")
    assert is_same(update(again, kept, again), update(parameters, state, parameters))
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Optimizer([x], optim.momentum(0.1))
    optim.save(tmp_path / "x", optimizer.steps)
    optimizer.steps = optim.load(tmp_path / "x")
    (x * x).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(x.detach(), [0.8, 1.6])


def test_memory_order_comes_back() -> None:
    found = optim.load(io.BytesIO(content_of([np.asfortranarray(np.eye(3)), np.arange(9)[::-2], np.float32(2)])))
    assert found[0].flags.f_contiguous
    np.testing.assert_array_equal(found[1], np.arange(9)[::-2])
    assert type(found[2]) is np.float32


def test_kinds_of_leaves_come_back() -> None:
    tree = [np.array(3.0), np.float32(2.0), wg.tensor([1.0], requires_grad=True), wg.tensor([1.0]), 2.5]
    found = optim.load(io.BytesIO(content_of(tree)))
    assert [type(x) for x in found] == [type(x) for x in tree]
    assert found[2].requires_grad
    assert not found[3].requires_grad
    with pytest.raises(DtypeError, match=r"^optim\.save: a matrix; arrays, numbers"):
        content_of(np.ones((1, 1)).view(np.matrix))


@pytest.mark.parametrize("transform", [wg.vmap, wg.jit])
def test_values_without_numbers_are_refused(transform: Any) -> None:
    def keep(x: Any) -> Any:
        optim.save(io.BytesIO(), {"x": x})
        return x

    text = r"^optim.save: a Tensor that is traced, or differs from lane to lane at tree\['x'\]; numbers are needed\. "
    with pytest.raises(GraphError, match=text):
        transform(keep)(np.ones(2))


def test_masks_are_not_dropped() -> None:
    with pytest.raises(TypeError, match=r"optim.save: a masked array; arrays, numbers"):
        optim.save(io.BytesIO(), np.ma.masked_array([1.0, 2.0], [True, False]))


# Whole or not at all


def saved(path: Path, value: float, **options: Any) -> None:
    optim.save(path, np.full(1000, value), **options)


def value_of(path: Any) -> float:
    return float(optim.load(path)[0])


def test_older_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for value in range(5):
        saved(path, value, keep=3)
    assert sorted(os.listdir(tmp_path)) == ["x", "x.1", "x.2"]
    assert [value_of(tmp_path / name) for name in ("x", "x.1", "x.2")] == [4, 3, 2]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileFormatError, match=r"Load .*x\.1, which was saved before it\.$"):
        optim.load(path)
    with pytest.raises(UsageError, match=r"optim.save: 0 for keep; a whole number, 1 or more, is needed"):
        saved(path, 0, keep=0)


STEPS = ("open", "chmod", "fsync", "link", "unlink", "replace")


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_an_end_between_any_two_steps_leaves_a_whole_file(keep: int, tmp_path: Path, monkeypatch: Any) -> None:
    """Each call of the system is the last one of a process once, before and after it is carried out."""

    class Ended(BaseException):
        pass

    path, left = tmp_path / "x", 0

    def last(run: Any, early: bool) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and early:
                raise Ended
            result = run(*args, **kwargs)
            if left == 0:
                raise Ended
            return result

        return call

    for early in (True, False):
        with monkeypatch.context() as patches:
            for name in STEPS:
                patches.setattr(whole_files.os, name, last(getattr(os, name), early))
            for end in range(1, 30):
                left = 0
                saved(path, 1.0, keep=keep)
                left = end
                try:
                    saved(path, 2.0, keep=keep)
                except Ended:
                    left = 0
                    assert value_of(path) in (1.0, 2.0)
                if left > 0:
                    break
            assert 4 < end < 29
            assert all(value_of(file) in (1.0, 2.0) for file in tmp_path.glob("x*"))


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "x"
    saved(path, 1.0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 100, 4000, 8200):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        try:
            with pytest.raises(OSError, match="too large"):
                saved(path, 2.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert value_of(path) == 1.0
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_devices_are_written_to() -> None:
    saved(Path(os.devnull), 1.0)
    with pytest.raises(OSError, match="No space left"):
        saved(Path("/dev/full"), 1.0)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_folders_that_cannot_be_written_to_are_named_as_they_were_given(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place, error in (("none/x", FileNotFoundError), ("file/x", NotADirectoryError), ("", IsADirectoryError)):
        with pytest.raises(error) as caught:
            saved(tmp_path / place, 1.0)
        assert caught.value.filename == str(tmp_path / place)
    assert os.listdir(tmp_path) == ["file"]


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "x").symlink_to("there/y")
    saved(tmp_path / "x", 1.0)  # which makes what a link without an end leads to
    os.chmod(tmp_path / "there" / "y", 0o600)
    saved(tmp_path / "x", 2.0, keep=2)
    assert (tmp_path / "x").is_symlink()
    assert value_of(tmp_path / "there" / "y") == 2.0
    assert stat.S_IMODE(os.stat(tmp_path / "there" / "y").st_mode) == 0o600
    assert sorted(os.listdir(tmp_path / "there")) == ["y", "y.1"]


def test_what_was_begun_long_ago_is_removed(tmp_path: Path) -> None:
    for age, name in ((0.0, "fresh"), (2 * whole_files.ABANDONED, "old")):
        begun = tmp_path / f"{whole_files.PREFIX}{name}"
        begun.write_text("")
        os.utime(begun, (begun.stat().st_mtime - age,) * 2)
    saved(tmp_path / "x", 1.0)
    assert sorted(os.listdir(tmp_path)) == [f"{whole_files.PREFIX}fresh", "x"]
