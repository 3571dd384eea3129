"""Sharing: garbage collections and other threads between the lines of what keeps the memories of handles."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.conversion.carried_values import holders_outside
from wengert.core.memory.possible_aliases import (
    HOLDING,
    SHARES,
    Share,
    SharedMemory,
    after,
    hold,
    may_share,
    memories_of,
    part_of,
    shared_with,
)
from wengert.core.memory.write_watches import Lost, lost_text
from wengert.primitives.indexing.parts import setitem

TEXT = "a write to what may be the same memory"
PLACES = 40  # more allocations than any of these functions makes


class Nothing:
    """Be a piece of a program that has made nothing."""

    def has_made(self, _: Any) -> bool:
        return False


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    gc.collect()
    before = set(SHARES)
    yield
    gc.collect()
    assert SHARES.keys() <= before


def handle() -> wg.Tensor:
    return wg.tensor([1.0, 2.0])


def in_a_cycle(tensor: wg.Tensor) -> None:
    """Let only a garbage collection find that a handle is no more."""
    cycle: list[Any] = [tensor]
    cycle.append(cycle)


def with_sharers(count: int) -> wg.Tensor:
    """Return a handle that shares a memory each with others, which the next garbage collection finds to be no more."""
    found = handle()
    for _ in range(count):
        other = handle()
        shared_with(found, other, TEXT)
        in_a_cycle(other)
    return found


def with_crowd(count: int) -> wg.Tensor:
    """Return a handle that shares one memory with others, which the next garbage collection finds to be no more."""
    found = handle()
    for memory in list(memories_of(found)):
        for _ in range(count):
            other = handle()
            hold(other, memory, Share(None, TEXT))
            in_a_cycle(other)
    return found


@pytest.fixture(autouse=True)
def collections_of_what_a_test_makes() -> None:
    """Leave what is there before out of collections, for good: after thousands of tests one takes half a second."""
    gc.collect()
    gc.freeze()


def at_any_allocation(prepare: Callable[[], Any], run: Callable[[Any], Any], check: Callable[[Any], None]) -> None:
    """Run something many times, with a garbage collection at another one of its allocations each time."""
    threshold = gc.get_threshold()
    for place in range(PLACES):
        gc.collect()
        gc.disable()
        given = prepare()
        try:
            gc.set_threshold(gc.get_count()[0] + place)
            gc.enable()
            result = run(given)
        finally:
            gc.set_threshold(*threshold)
        gc.collect()
        check(result)


def is_lost(tensor: wg.Tensor) -> bool:
    return type(tensor._trace) is Lost and lost_text(tensor) == TEXT


@pytest.mark.parametrize("writes_to_found", [False, True])
def test_who_is_left_alone_with_a_memory_shares_it_with_who_holds_it_later(writes_to_found: bool) -> None:
    one, other, later = handle(), handle(), handle()
    shared_with(one, other, TEXT)
    found = dict(memories_of(one))
    del other
    for memory, share in found.items():
        hold(later, memory, share)
    written, reached = (one, later) if writes_to_found else (later, one)
    assert may_share(one, later)
    setitem(written, 0, 5.0)
    assert is_lost(reached)
    assert not is_lost(written)


def test_who_is_left_alone_with_a_memory_and_is_no_more_is_not_held_again() -> None:
    memory = SharedMemory()
    one, other, later = handle(), handle(), handle()
    hold(one, memory, Share())
    hold(other, memory, Share())
    del other
    del one
    hold(later, memory, Share())
    setitem(later, 0, 5.0)
    np.testing.assert_array_equal(later, [5.0, 2.0])
    assert [id(x) for x, _ in memory.living_holders()] == [id(later)]


@pytest.mark.parametrize("prepare", [lambda: with_sharers(3), lambda: with_crowd(3)])
@pytest.mark.parametrize(
    "run",
    [
        lambda base: (base, after(base)),
        lambda base: (base, entered(lambda part: part_of(base, part, None, TEXT))),
        lambda base: (base, entered(lambda part: hold_all(part, memories_of(base)))),
    ],
)
def test_a_garbage_collection_while_a_handle_gets_the_memories_of_another(prepare: Any, run: Any) -> None:
    def check(pair: tuple[wg.Tensor, wg.Tensor]) -> None:
        base, part = pair
        assert may_share(base, part)
        setitem(base, 0, 5.0)
        assert is_lost(part) or part[0] == 5.0

    at_any_allocation(prepare, run, check)


def hold_all(part: wg.Tensor, memories: dict[SharedMemory, Share]) -> None:
    for memory, share in memories.items():
        hold(part, memory, share)


def entered(enter: Callable[[wg.Tensor], Any]) -> wg.Tensor:
    part = handle()
    enter(part)
    return part


@pytest.mark.parametrize("prepare", [lambda: with_sharers(3), lambda: with_crowd(3)])
def test_a_garbage_collection_while_a_write_reaches_the_sharers(prepare: Any) -> None:
    def prepared() -> tuple[wg.Tensor, wg.Tensor]:
        base, sharer = prepare(), handle()
        shared_with(base, sharer, TEXT)
        return base, sharer

    def write(pair: tuple[wg.Tensor, wg.Tensor]) -> tuple[wg.Tensor, wg.Tensor]:
        setitem(pair[0], 0, 5.0)
        return pair

    def check(pair: tuple[wg.Tensor, wg.Tensor]) -> None:
        assert is_lost(pair[1])

    at_any_allocation(prepared, write, check)


def test_a_garbage_collection_while_the_holders_are_listed() -> None:
    def check(found: list[wg.Tensor]) -> None:
        assert len(found) in (1, 2, 5)

    at_any_allocation(lambda: with_crowd(3), lambda base: holders_outside(base, Nothing()), check)  # type: ignore[arg-type]


class Interrupted(dict[int, Any]):
    """Be a table in which something happens after each look-up, once."""

    happens: Callable[[], None] | None = None

    def interrupt(self) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()

    def get(self, *args: Any) -> Any:
        found = super().get(*args)
        self.interrupt()
        return found

    def setdefault(self, *args: Any) -> Any:
        found = super().setdefault(*args)
        self.interrupt()
        return found


@pytest.mark.parametrize("in_another_thread", [False, True])
def test_a_handle_that_is_forgotten_while_one_gets_another_memory(monkeypatch: Any, in_another_thread: bool) -> None:
    table = Interrupted()
    monkeypatch.setattr("wengert.core.memory.possible_aliases.SHARES", table)
    base, later, others = handle(), handle(), [handle()]
    shared_with(base, others[0], TEXT)

    def forget_other() -> None:
        if in_another_thread:
            thread = threading.Thread(target=others.clear)
            thread.start()
            thread.join()
        else:
            others.clear()

    table.happens = forget_other
    shared_with(base, later, TEXT)
    assert not others
    assert may_share(base, later)


def test_a_handle_is_left_alone_with_its_own_memory_as_soon_as_it_has_it(monkeypatch: Any) -> None:
    base, later = handle(), handle()

    def hold_and_leave(one: wg.Tensor, memory: SharedMemory, share: Share) -> None:
        hold(one, memory, share)
        other = handle()
        hold(other, memory, share)

    with monkeypatch.context() as patch:
        patch.setattr("wengert.core.memory.possible_aliases.hold", hold_and_leave)
        found = memories_of(base)
    hold_all(later, found)
    assert may_share(base, later)


def test_forgetting_does_not_wait_for_other_threads() -> None:
    base, others = handle(), [handle()]
    shared_with(base, others[0], TEXT)
    with HOLDING:
        thread = threading.Thread(target=others.clear, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    later = after(base)
    assert may_share(base, later)


def test_threads_do_not_take_one_anothers_memories_away() -> None:
    base = handle()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(300):
                part, mine, other = handle(), handle(), handle()
                part_of(base, part, None, TEXT)
                shared_with(mine, other, TEXT)
                in_a_cycle(other)
                another = after(mine)
                holders_outside(base, Nothing())  # type: ignore[arg-type]
                assert may_share(base, part)
                assert may_share(mine, another)
                del part
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            errors.append(error)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    threads = [threading.Thread(target=work) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    gc.set_threshold(7)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
    if errors:
        raise errors[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_while_a_thread_lets_a_handle_have_a_memory_has_them_too() -> None:
    at_work = threading.Event()

    def work() -> None:
        with HOLDING:
            at_work.set()
            time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    at_work.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        one, other = handle(), handle()
        shared_with(one, other, TEXT)
        os._exit(0 if may_share(one, other) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
