"""Functions that go to other processes: by name, or under cloudpickle as what they are made of, with their source."""

from __future__ import annotations

import importlib
import importlib.util
import io
import linecache
import marshal
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.support.functions_by_value import asks_cloudpickle

SCRIPT = """
import numpy as np
import wengert as wg
from wengert import random

SCALE = 3.0

def halved(x):
    while np.sum(x) > 1.0:
        x = x * 0.5
    return x

@wg.jit
def decides(x):
    if np.sum(x) > 0.0:
        return halved(x) * SCALE
    return -x

@wg.custom_rule
def cubed(x):
    return x * x * x

cubed.defvjp(lambda x: (cubed(x), x), lambda x, ct: (ct * (4 * x * x if x > 0 else x),))

class Model:
    scale = 2.0

    @wg.jit
    def loss(self, x):
        if np.sum(x) > 0:
            return np.sum(x * self.scale)
        return 0.0

@wg.jit
def noisy(key, x):
    return x + random.normal(key, size=x.shape)

def fails(x):
    return np.sum(x) / np.linalg.inv(x)

ONE = np.array([1.5, 0.25])
CALLS = {
    "jit": (decides, ONE),
    "jit, other branch": (decides, -ONE),
    "value_and_grad": (wg.jit(wg.value_and_grad(lambda x: np.sum(decides(x) ** 2))), ONE),
    "rule": (wg.grad(cubed), 2.0),
    "jit of rule": (wg.jit(wg.grad(cubed)), -2.0),
    "method": (Model().loss, ONE),
    "gradient of method": (wg.grad(Model().loss), ONE),
    "random": (noisy, random.key(3), ONE),
    "lanes": (wg.jit(wg.vmap(lambda x: x * 2.0 if x > 0 else x, batch_size=2)), np.array([1.0, -1.0, 3.0])),
    "graph": (wg.graph.trace(lambda x: np.sum(x * x))(ONE), ONE),
    "static": (wg.jit(lambda x, n: x**n * SCALE, static_argnums=1), ONE, 3),
}
"""


class CloudPickler(pickle.Pickler):
    """Send functions as cloudpickle does: of `__main__` and without a name by value, without their file."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type) and value.__module__ == "__main__":
            own = {k: v for k, v in vars(value).items() if k not in ("__dict__", "__weakref__")}
            return make_class, (value.__name__, value.__bases__, own)
        if not isinstance(value, types.FunctionType) or value.__module__ != "__main__":
            return NotImplemented
        code = value.__code__.replace(co_filename="<dynamic-code>")
        names = {name for c in codes_of(code) for name in c.co_names}
        held = {name: value.__globals__[name] for name in names if name in value.__globals__}
        modules = {name: x.__name__ for name, x in held.items() if isinstance(x, types.ModuleType)}
        plain = {name: x for name, x in held.items() if name not in modules and x is not value}
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        return make_function, (marshal.dumps(code), value.__qualname__, modules, cells), plain, None, None, fill_globals


def codes_of(code: types.CodeType) -> list[types.CodeType]:
    return [code, *(y for x in code.co_consts if isinstance(x, types.CodeType) for y in codes_of(x))]


def make_class(name: str, bases: Any, own: Any) -> Any:
    return type(name, bases, own)


def make_function(code: bytes, qualname: str, modules: dict[str, str], cells: tuple[Any, ...]) -> Any:
    found = {name: importlib.import_module(x) for name, x in modules.items()}
    closure = tuple(types.CellType(x) for x in cells)
    made = types.FunctionType(marshal.loads(code), {"__name__": "__main__", **found}, None, None, closure)
    made.__qualname__ = qualname
    return made


def fill_globals(function: Any, state: Any) -> None:
    function.__globals__.update(state)


def dumped(value: Any) -> bytes:
    """Return a value pickled as by cloudpickle, whose own code calls the pickler."""
    if importlib.util.find_spec("cloudpickle"):
        import cloudpickle

        return bytes(cloudpickle.dumps(value))
    file = io.BytesIO()
    theirs = {**globals(), "__name__": "cloudpickle.cloudpickle"}
    types.FunctionType(run.__code__, theirs)(CloudPickler(file), value)
    return file.getvalue()


def run(pickler: pickle.Pickler, value: Any) -> None:
    pickler.dump(value)


SEND = """
sys.path[:0] = {paths!r}
from tests.test_functions_by_value import dumped
sent = {{}}
for name, (function, *args) in CALLS.items():
    function(*args)
    sent[name] = dumped(function), pickle.dumps((args, function(*args)))
pathlib.Path({file!r}).write_bytes(pickle.dumps((sent, dumped(wg.jit(fails)))))
"""


def check_sent(file: Path) -> None:
    sent, failing = pickle.loads(file.read_bytes())
    for name, (function, call) in sent.items():
        args, want = pickle.loads(call)
        got = pickle.loads(function)(*args)
        for one, other in zip(wg.tree.leaves(got), wg.tree.leaves(want), strict=True):
            assert type(one) is type(other), name
            np.testing.assert_array_equal(one, other, err_msg=name)
    assert len(sent["jit"][0]) < 1500
    with pytest.raises(np.linalg.LinAlgError) as error:
        pickle.loads(failing)(np.zeros((2, 2)))
    (note,) = error.value.__notes__
    assert 'script.py", line' in note
    assert "in fails: return np.sum(x) / np.linalg.inv(x)." in note


@pytest.mark.long
def test_functions_of_scripts_do_the_same_in_another_process(tmp_path: Path) -> None:
    """This process has no such script, and then no file of it either: code is converted from what was sent."""
    script, file = tmp_path / "script.py", tmp_path / "sent"
    paths = [str(Path(__file__).parents[1]), *sys.path]
    script.write_text(f"import sys, pickle, pathlib\n{SCRIPT}{SEND.format(paths=paths, file=str(file))}")
    subprocess.run([sys.executable, script], check=True)
    check_sent(file)
    script.unlink()
    linecache.checkcache(str(script))
    check_sent(file)


def test_changed_source_under_the_same_name_is_told_apart(tmp_path: Path) -> None:
    from wengert.support.functions_by_value import enter_source

    first = enter_source("/a.py", {3: "def f(x):\n    return x\n"})
    assert enter_source("/a.py", {3: "def f(x):\n    return x\n"}) == first == "/a.py"
    assert enter_source("/a.py", {7: "y = 1\n"}) == "/a.py"
    other = enter_source("/a.py", {3: "def f(x):\n    return 2\n"})
    assert other != "/a.py"
    assert linecache.getline(other, 4) == "    return 2\n"
    assert linecache.getline("/a.py", 4) == "    return x\n"


def named(x: Any) -> Any:
    return x * 2.0


jitted = wg.jit(named)
jitted.__qualname__ = "jitted"


def test_functions_of_modules_go_by_name() -> None:
    assert not asks_cloudpickle()
    assert pickle.loads(pickle.dumps(jitted)) is jitted
    assert len(pickle.dumps(jitted)) < 100
    assert pickle.loads(pickle.dumps(wg.jit(named)))(3.0) == 6.0
