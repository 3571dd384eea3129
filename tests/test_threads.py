"""Threads: sweeps of graphs that share leaves, hooks and modes do not meet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import OPTIONS
from wengert import autograd
from wengert.core.containers.tree_leaves import flatten
from wengert.core.values.recording import SPECIAL

ROUNDS = 10_000


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """Run functions at the same time; return their results or raise the first error."""
    results: list[Any] = [None] * len(functions)
    errors: list[BaseException] = []
    start = threading.Barrier(len(functions))

    def run(position: int) -> None:
        start.wait()
        try:
            results[position] = functions[position]()
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


@pytest.mark.long
def test_no_contribution_to_a_shared_leaf_is_lost() -> None:
    x = wg.tensor(1.0, requires_grad=True)
    w = wg.tensor([1.0, 2.0], requires_grad=True)

    def sweep(scale: float) -> Callable[[], None]:
        def run() -> None:
            for _ in range(ROUNDS // 4):
                (x * scale).backward()
                (w * scale).sum().backward()

        return run

    in_threads(sweep(1.0), sweep(2.0), sweep(3.0), sweep(4.0))
    assert x.grad is not None
    assert w.grad is not None
    assert x.grad.item() == 10.0 * (ROUNDS // 4)
    assert w.grad.tolist() == [10.0 * (ROUNDS // 4)] * 2


def test_sweeps_of_shared_leaves_give_their_own_results() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)

    def differentiate(scale: float) -> Callable[[], bool]:
        expected = [2 * scale, 4 * scale]

        def run() -> bool:
            return all(autograd.grad((x * x * scale).sum(), x)[0].tolist() == expected for _ in range(ROUNDS // 10))

        return run

    assert in_threads(differentiate(1.0), differentiate(10.0)) == [True, True]


def test_retained_graphs_may_be_swept_by_several_threads() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = (np.exp(x) * x).sum()
    expected = autograd.grad(y, x, retain_graph=True)[0].tolist()

    def run() -> bool:
        return all(autograd.grad(y, x, retain_graph=True)[0].tolist() == expected for _ in range(300))

    assert in_threads(run, run, run) == [True] * 3


def test_hooks_of_a_shared_leaf_fire_once_a_sweep() -> None:
    x = wg.tensor(1.0, requires_grad=True)
    fired: list[int] = []
    x.register_hook(lambda ct: fired.append(threading.get_ident()))

    def run() -> None:
        for _ in range(500):
            (x * x).backward()

    in_threads(run, run)
    assert len(fired) == 1000
    assert sorted(map(fired.count, set(fired))) == [500, 500]
    assert x.grad is not None
    assert x.grad.item() == 2000.0


def test_numbers_order_the_graph_of_each_thread() -> None:
    def run() -> bool:
        x = wg.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(500):
            y = y * 1.5 - y * 0.5
        (g,) = autograd.grad(y, x)
        return bool(g.item() == 1.0)

    assert in_threads(run, run, run) == [True] * 3


def test_a_graph_may_be_built_in_one_thread_and_swept_in_another() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    graphs: list[wg.Tensor] = []
    in_threads(lambda: graphs.append((x * x).sum()))
    y = graphs[0] * 3
    in_threads(lambda: y.backward())
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 12.0]


def test_modes_of_one_thread_do_not_change_what_others_record() -> None:
    x = wg.tensor(2.0, requires_grad=True)
    stop = threading.Event()

    def switch() -> None:
        while not stop.is_set():
            with wg.no_grad():
                assert not (x * x).requires_grad
            with autograd.saved_tensors_hooks(lambda t: t.item(), wg.tensor):
                (x * x).backward()

    def record() -> bool:
        try:
            return all(autograd.grad(x * x, x)[0].item() == 4.0 for _ in range(2000))
        finally:
            stop.set()

    assert in_threads(record, switch)[0] is True


def test_transformations_in_several_threads() -> None:
    def cubed(x: Any) -> Any:
        return wg.grad(lambda y: (y**3).sum())(x).sum()

    def run() -> bool:
        return all(wg.grad(cubed)(np.array([1.0, 2.0])).tolist() == [6.0, 12.0] for _ in range(100))

    assert in_threads(run, run, run) == [True] * 3


def test_memory_of_finished_threads_is_released() -> None:
    x = wg.tensor(1.0, requires_grad=True)

    def run() -> None:
        with wg.no_grad():
            x * 2

    in_threads(run, run)
    assert SPECIAL == []


def test_a_mode_that_a_thread_leaves_set_ends_with_it() -> None:
    thread = threading.Thread(target=wg.set_grad_enabled, args=(False,))
    thread.start()
    thread.join()
    assert SPECIAL == []


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_processes_that_are_forked_while_others_accumulate_can_do_so_too() -> None:
    x = wg.tensor(np.ones(1000), requires_grad=True)
    stop = threading.Event()

    def accumulate() -> None:
        while not stop.is_set():
            (x * 2.0).sum().backward()

    def fork() -> list[int]:
        found = []
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                (x * 2.0).sum().backward()
                os._exit(0)
            found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        return found

    assert in_threads(fork, accumulate, accumulate)[0] == [0] * 20


LOADING = """
import importlib.abc, sys, threading, time
import numpy as np
import wengert.core.containers.tree_leaves
import wengert as wg
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {library!r}:
            begun.set(); time.sleep(0.3); print("loaded", flush=True)
begun = threading.Event()
sys.meta_path.insert(0, Slow())
threading.Thread(target=lambda: {use}, daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize(
    ("library", "use"),
    [
        ("optree", "wengert.core.containers.container_classes.load_optree()"),
        ("llvmlite.binding", "wg.jit(lambda x: np.sin(x))(np.ones(3))"),
    ],
)
def test_python_ends_when_a_daemons_thread_has_loaded_a_library(library: str, use: str) -> None:
    """Stopped in the middle of that, the thread would abort the process."""
    text = LOADING.format(library=library, use=use)
    switches = {**os.environ, "WENGERT_NATIVE": "1", "WENGERT_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=switches, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\n", "")


WALKING = """
import dataclasses, sys, threading, time
import wengert.core.containers.container_classes as containers, wengert.core.containers.tree_leaves as tree
class Slow:
    def __init__(self):
        self.x = 1.0
containers.register(Slow, lambda slow: (begun.set() or time.sleep(0.3) or [slow.x], None), lambda _, xs: Slow())
begun = threading.Event()
threading.Thread(target=lambda: tree.flatten([Slow()]) and print("walked", flush=True), daemon=True).start()
begun.wait()
"""


def test_python_ends_when_a_daemons_thread_has_walked_containers() -> None:
    """Stopped where optree calls Python, the thread would abort the process."""
    done = subprocess.run([sys.executable, "-c", WALKING], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_another_thread_walks_containers() -> None:
    trees = [{"a": 1.0, "b": (2.0, [3.0] * 50)}] * 20
    stop = threading.Event()

    def walk() -> None:
        while not stop.is_set():
            flatten(trees, lambda x: type(x) is str)

    def fork() -> list[int]:
        found = []
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                flatten(trees)
                os._exit(0)
            found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        return found

    assert in_threads(fork, walk, walk)[0] == [0] * 20


FORKING = """
import os, signal
run = wg.jit(lambda x: np.sin(x))
def use():
    for _ in range(3): run(np.ones(3))
child = os.fork()
if not child:
    signal.alarm(60)
    use()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("library", ["wengert.native.entries.calling", "wengert.compile.codegen", "llvmlite.binding"])
def test_a_fork_while_another_thread_loads_what_compiles(library: str) -> None:
    use = "[run(np.ones(3)) for run in [wg.jit(lambda x: np.sin(x))] for _ in range(3)]"
    text = LOADING.format(library=library, use=use) + FORKING
    switches = {**os.environ, "WENGERT_NATIVE": "1", "WENGERT_CACHE": "0"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text]  # 3.12 warns of forks beside threads
    done = subprocess.run(command, capture_output=True, text=True, env=switches, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\n0\n", "")


AT_ANY_TIME = """
import gc, os, signal, sys, threading, time
import numpy as np
import wengert as wg

def function(x):
    return np.sum(wg.while_loop(lambda c: np.sum(c) < 20.0, lambda c: c * 1.5 + 1.0, np.linalg.solve(np.eye(2) * 2, x)))

def use():
    run = wg.jit(wg.grad(function))
    for _ in range(4): run(np.ones(2))

thread = threading.Thread(target=use)
thread.start()
found = []
for _ in range(int(sys.argv[1])):
    time.sleep(float(sys.argv[2]))
    child = os.fork()
    if not child:
        signal.alarm(60)
        use()
        os._exit(0 if gc.isenabled() else 3)
    found.append(child)
thread.join()
print({os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in found})
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("native", ["0", "1"] if OPTIONS.every else ["1"])
def test_forks_while_another_thread_uses_the_library_for_the_first_time(native: str) -> None:
    for count, apart in [(2, 0.006)] + [(20, 0.001 * i) for i in range(1, 20)] * OPTIONS.every:
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", AT_ANY_TIME, str(count), str(apart)]
        environment = {**os.environ, "WENGERT_NATIVE": native}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        assert (done.returncode, done.stdout, done.stderr) == (0, "{0}\n", "")
