"""Object code on disk: what is found again, what is not trusted, and many processes at once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wengert import cli
from wengert.native import cache, cache_writing
from wengert.native.cache import ObjectCache, object_cache
from wengert.native.cache_writing import Usage, put, usage_of
from wengert.support import config

posix = pytest.mark.skipif(os.name != "posix", reason="rights are others there")


@pytest.fixture
def kept(tmp_path: Path) -> ObjectCache:
    return ObjectCache(str(tmp_path / "wengert"))


def only_file(kept: ObjectCache) -> Path:
    assert kept.folder is not None
    (path,) = Path(kept.folder).iterdir()
    return path


def test_what_was_kept_is_found_by_its_text_alone(kept: ObjectCache) -> None:
    assert kept.get("a") is None
    put(kept, "a", b"first")
    put(kept, "b", b"second" * 1000)
    put(kept, "empty", b"")
    assert kept.folder is not None
    again = ObjectCache(kept.folder)
    assert (again.get("a"), again.get("b"), again.get("c")) == (b"first", b"second" * 1000, None)
    assert again.get("empty") == b""
    put(kept, "a", b"other")
    assert again.get("a") == b"other"
    assert usage_of(again).entries == 3


def test_code_for_another_surrounding_is_not_found(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    put(kept, "a", b"first")
    monkeypatch.setattr(cache, "surroundings", lambda: b"another processor")
    assert kept.get("a") is None


def test_the_surroundings_name_sources_llvm_and_processor(tmp_path: Path) -> None:
    found = repr(cache.dependencies())
    assert "/native', " in found
    assert "'cache.py', " in found
    for module in ("llvmlite/_version.py", "scipy/version.py"):
        assert repr(cache.library(module)) in found
    assert cache.library("scipy/version.py") != cache.library("absent/version.py") == "none"
    assert any(word in found.lower() for word in ("flags", "features", "+"))
    assert "MHz" not in found
    (tmp_path / "kernel" / "part").mkdir(parents=True)
    module = tmp_path / "kernel" / "part" / "one.py"
    module.write_text("1")
    before = cache.sources(str(tmp_path))
    os.utime(module, ns=(1, 1))
    assert cache.sources(str(tmp_path)) != before


def test_what_an_installer_wrote_stands_for_the_sources(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "wengert"
    folder.mkdir(parents=True)
    assert cache.installation_record(str(folder)) is None
    record = folder.parent / "wengert-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    assert cache.installation_record(str(folder)) is None
    record.write_text("one")
    before = cache.installation_record(str(folder))
    assert before is not None
    record.write_text("another")
    assert cache.installation_record(str(folder)) not in (None, before)
    assert cache.installation_record(str(tmp_path / "src" / "wengert")) is None  # which one may edit


def test_damaged_entries_are_not_used() -> None:
    rng = random.Random(0)
    whole = cache_writing.seal("name", rng.randbytes(200))
    assert cache.unseal("name", whole) == whole[-200:]
    for count in range(10_000):
        content = bytearray(whole)
        if count % 3 == 0:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        elif count % 3 == 1:
            content = content[: rng.randrange(len(content))]
        else:
            content[rng.randrange(len(content)) :] = rng.randbytes(rng.randrange(200))
        assert cache.unseal("name", bytes(content)) is None


def test_a_damaged_file_is_replaced(kept: ObjectCache) -> None:
    put(kept, "a", b"first")
    path = only_file(kept)
    for content in (b"", b"Wengert", path.read_bytes()[:-1], path.read_bytes() + b"1", b"\0" * 1000):
        path.write_bytes(content)
        assert kept.get("a") is None
    put(kept, "a", b"again")
    assert kept.get("a") == b"again"


def test_an_entry_under_another_name_is_not_used(kept: ObjectCache) -> None:
    put(kept, "a", b"first")
    path, other = only_file(kept), kept.path_of("b")
    assert other is not None
    os.rename(path, other)
    assert kept.get("b") is None


@posix
def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(config, "LOGGED", frozenset({"cache"}))
    for mode in (0o777, 0o720, 0o702):
        tmp_path.chmod(mode)
        found = ObjectCache(str(tmp_path))
        put(found, "a", b"first")
        assert found.get("a") is None
        assert list(tmp_path.iterdir()) == []
        assert caplog.messages == [f"cache: {tmp_path} is not used, because others can write to it"]
        caplog.clear()


@posix
def test_an_entry_that_others_can_write_to_is_not_used(kept: ObjectCache) -> None:
    put(kept, "a", b"first")
    assert only_file(kept).stat().st_mode & 0o777 == 0o600
    only_file(kept).chmod(0o666)
    assert kept.get("a") is None


@posix
def test_the_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert ObjectCache(str(tmp_path)).refusal == "others can write to it"


@posix
def test_a_folder_that_others_could_replace_is_refused(tmp_path: Path) -> None:
    def refusal(folder: Path) -> str:
        return ObjectCache(str(folder)).refusal

    deep = tmp_path / "a" / "b" / "c"
    assert refusal(deep) == ""
    assert [x.stat().st_mode & 0o777 for x in (deep, deep.parent, tmp_path / "a")] == [0o700] * 3  # whatever the mask
    for mode in (0o777, 0o770, 0o702):
        (tmp_path / "a").chmod(mode)
        assert refusal(deep) == f"others can write to {tmp_path / 'a'}"
        assert refusal(tmp_path / "a" / "new" / "folder") == f"others can write to {tmp_path / 'a'}"
    assert not (tmp_path / "a" / "new").exists()
    (tmp_path / "a").chmod(0o1777)  # as /tmp is
    assert refusal(deep) == ""
    link = tmp_path / "link"
    link.symlink_to(deep.parent)
    assert refusal(link / "c") == ""
    (tmp_path / "a").chmod(0o777)
    assert refusal(link / "c") == f"others can write to {tmp_path / 'a'}"
    (tmp_path / "relative").symlink_to("./a/../link/c")
    assert refusal(tmp_path / "relative") == f"others can write to {tmp_path / 'a'}"
    (tmp_path / "a").chmod(0o700)
    assert refusal(tmp_path / "relative") == ""
    (tmp_path / "round").symlink_to("round")
    assert refusal(tmp_path / "round" / "x") == "there are too many links on the way to it"
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / "file" / "x") == f"{tmp_path / 'file'} is no folder"


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files to others")
def test_what_another_user_owns_on_the_way_is_refused(tmp_path: Path) -> None:
    middle = tmp_path / "middle"
    middle.mkdir()
    os.chown(middle, 12345, -1)
    assert ObjectCache(str(middle / "folder")).refusal == f"{middle} is another user's"
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    os.chown(link, 12345, -1, follow_symlinks=False)
    assert ObjectCache(str(link / "folder")).refusal == f"{link} is another user's"


@posix
def test_an_entry_that_is_a_link_or_a_pipe_is_not_used(kept: ObjectCache, tmp_path: Path) -> None:
    put(kept, "a", b"first")
    path, elsewhere = only_file(kept), tmp_path / "elsewhere"
    os.rename(path, elsewhere)
    path.symlink_to(elsewhere)
    assert kept.get("a") is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert kept.get("a") is None  # and nobody waits for a writer
    put(kept, "a", b"first")
    assert kept.get("a") == b"first"


def test_where_no_folder_can_be_nothing_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        found = ObjectCache(str(folder))
        put(found, "a", b"first")
        assert found.get("a") is None
        assert usage_of(found) == Usage(0, 0)


def test_where_nothing_can_be_written_one_line_says_so(
    kept: ObjectCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    put(kept, "a", b"first")
    assert caplog.messages == []  # nobody asked
    assert kept.folder is not None
    assert os.listdir(kept.folder) == []
    monkeypatch.setattr(config, "LOGGED", frozenset({"cache"}))
    found = ObjectCache(kept.folder)
    for text in "abc":
        put(found, text, b"first")
    line = f"cache: {kept.folder} is not used any more, because nothing can be written to it (No space left on device)"
    assert caplog.messages == [line]


def test_what_was_used_least_recently_goes(tmp_path: Path) -> None:
    found = ObjectCache(str(tmp_path / "wengert"), limit=16_000)
    for number in range(15):
        put(found, str(number), bytes(1000))
        path = found.path_of(str(number))
        assert path is not None
        os.utime(path, (number + 1e9,) * 2)
    assert found.get("0") is not None  # and now it was used last
    begun = found.path_of("99")
    assert begun is not None
    left, fresh = Path(begun + ".77-aa"), Path(begun + ".78-aa")
    for path in (left, fresh):
        path.write_bytes(bytes(1000))
    os.utime(left, (1e9, 1e9))
    for number in range(20, 25):
        put(found, str(number), bytes(1000))
    assert usage_of(found).size <= 16_000
    here = {number for number in range(30) if found.get(str(number)) is not None}
    assert {0, 14, 20, 21, 22, 23, 24} <= here
    assert not {1, 2, 3, 4} & here
    assert (left.exists(), fresh.exists()) == (False, True)


def test_short_processes_together_stay_within_the_limit(tmp_path: Path) -> None:
    for number in range(100):
        put(ObjectCache(str(tmp_path / "wengert"), limit=10_000), str(number), bytes(1000))
    assert usage_of(ObjectCache(str(tmp_path / "wengert"))).size <= 10_000


def test_the_use_of_an_entry_is_noted_now_and_then(kept: ObjectCache) -> None:
    put(kept, "a", b"first")
    path = only_file(kept)
    recent = time.time() - 60
    os.utime(path, (recent, recent))
    kept.get("a")
    assert path.stat().st_mtime == pytest.approx(recent)
    os.utime(path, (1e9, 1e9))
    kept.get("a")
    assert path.stat().st_mtime > recent


MANY = """
import random, sys
from wengert.native.cache import ObjectCache
from wengert.native.cache_writing import clear, put, shrink
found, rng = ObjectCache(sys.argv[1], limit=60_000), random.Random(int(sys.argv[2]))
hits = 0
for _ in range(200):
    number = rng.randrange(60)
    content = found.get(str(number))
    assert content in (None, number.to_bytes(2, "little") * 1000), number
    hits += content is not None
    if content is None or rng.random() < 0.3:
        put(found, str(number), number.to_bytes(2, "little") * 1000)
    if rng.random() < 0.03:
        clear(found) if rng.random() < 0.2 else shrink(found)
assert not found.refusal
print(hits > 0)
"""


@pytest.mark.long
def test_eight_processes_at_once(tmp_path: Path) -> None:
    folder = str(tmp_path / "wengert")
    running = [
        subprocess.Popen([sys.executable, "-c", MANY, folder, str(seed)], stdout=-1, stderr=-1, text=True)
        for seed in range(8)
    ]
    assert [process.communicate(timeout=120) for process in running] == [("True\n", "")] * 8
    assert all(name.endswith(cache.SUFFIX) for name in os.listdir(folder))


# -------------------------------------------------------------------------------------------------- where it is


def test_the_folder_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE", str(tmp_path))
    assert config.default_folder() == str(tmp_path)
    for nothing in ("", "0", "off", "OFF", "no", "false"):
        monkeypatch.setattr(config, "CACHE", nothing)
        assert config.default_folder() is None
    monkeypatch.setattr(config, "CACHE", "./off")
    assert config.default_folder() == os.path.abspath("off")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for told, wanted in (("~", "home"), ("~/x", "home/x"), (f"{tmp_path}/~", "~")):
        monkeypatch.setattr(config, "CACHE", told)
        assert config.default_folder() == str(tmp_path / wanted)
    for nothing in (" ", " Off ", "\t"):
        monkeypatch.setattr(config, "CACHE", nothing)
        assert config.default_folder() is None
    monkeypatch.setattr(config, "CACHE", None)
    usual = config.default_folder()
    monkeypatch.setattr(config, "CACHE", "on")
    assert config.default_folder() == usual
    found = ObjectCache(None)
    put(found, "a", b"first")
    assert found.get("a") is None


def test_a_relative_folder_counts_from_where_the_process_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for told, wanted in (("x/y", str(tmp_path / "x" / "y")), ("./off", str(tmp_path / "off")), ("off", "off")):
        monkeypatch.setenv("WENGERT_CACHE", told)
        assert config.cache_folder() == wanted
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("WENGERT_CACHE", "x")
    assert config.cache_folder() == ""


@pytest.mark.skipif(sys.platform != "linux", reason="another system has another place")
def test_without_being_told_it_is_where_the_system_has_such_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert config.default_folder() == str(tmp_path / ".cache" / "wengert")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert config.default_folder() == str(tmp_path / ".cache" / "wengert")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert config.default_folder() == str(tmp_path / "xdg" / "wengert")
    monkeypatch.setenv("HOME", "")
    assert config.default_folder() is None


def test_the_command_tells_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config, "CACHE", str(tmp_path / "wengert"))
    object_cache.cache_clear()
    put(object_cache(), "a", bytes(1500))
    other = tmp_path / "wengert" / "notes.txt"
    other.write_text("mine")
    try:
        assert cli.main(["cache", "info"]) == 0
        assert (
            capsys.readouterr().out == f"folder   {tmp_path / 'wengert'}\nentries  1\nsize     1.5 KiB of 256.0 MiB\n"
        )
        assert cli.main(["cache", "clear"]) == 0
        assert capsys.readouterr().out == f"removed 1 entries, 1.5 KiB, from {tmp_path / 'wengert'}\n"
        assert os.listdir(tmp_path / "wengert") == ["notes.txt"]
        monkeypatch.setattr(config, "CACHE", "0")
        object_cache.cache_clear()
        for command in ("info", "clear"):
            assert cli.main(["cache", command]) == 0
            assert capsys.readouterr().out == "no code is kept: it is switched off\n"
    finally:
        object_cache.cache_clear()


def test_the_command_needs_one_of_its_two_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache"]) == 2
    assert capsys.readouterr().err.startswith("wengert cache: the following arguments are required: what; ")
