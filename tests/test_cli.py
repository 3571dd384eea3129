"""The command line: the text of the example, and one clear line for every mistake."""

import os
import subprocess
import sys

import numpy as np
import pytest

import wengert
import wengert.numpy as wnp
from wengert.cli import calibration, formula_parser, main
from wengert.native.cache import ObjectCache
from wengert.support import config
from wengert.support.machine import read_record

EXAMPLE = """\
log(x1) + x1*x2 - sin(x2)

forward
  x1                                     2.0
  x2                                     5.0
  v1 = log(x1)                           0.6931471805599453
  v2 = x1 * x2                           10.0
  v3 = v1 + v2                           10.693147180559945
  v4 = sin(x2)                          -0.9589242746631385
  v5 = v3 - v4                           11.652071455223084

reverse
  v5' = 1                                1.0
  v4' = v5' * dv5/dv4                   -1.0
  v3' = v5' * dv5/dv3                    1.0
  v2' = v3' * dv3/dv2                    1.0
  v1' = v3' * dv3/dv1                    1.0
  x2' = v4' * dv4/dx2 + v2' * dv2/dx2    1.7163378145367738
  x1' = v2' * dv2/dx1 + v1' * dv1/dx1    5.5

value     11.652071455223084
gradient  (5.5, 1.7163378145367738)
"""


def result(capsys, *arguments):
    """The last two lines of `wengert grad`: value and gradient."""
    assert main(["grad", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return [line.split(None, 1)[1] for line in captured.out.splitlines()[-2:]]


def test_the_example(capsys):
    assert main(["grad", "log(x1) + x1*x2 - sin(x2)", "x1=2", "x2=5"]) == 0
    assert capsys.readouterr().out == EXAMPLE


@pytest.mark.parametrize(
    ("arguments", "value", "gradient"),
    [
        (["x**2", "x=3"], "9.0", "6.0"),
        (["-x**2", "x=3"], "-9.0", "-6.0"),
        (["--x", "x=3"], "3.0", "1.0"),
        (["+x % 2 + x // 2", "x=3"], "2.0", "1.0"),
        (["2**3 * x", "x=1"], "8.0", "8.0"),
        (["9**9**9**9 * x", "x=1"], "inf", "inf"),
        (["x / 3", "x=1.5e3"], "500.0", "0.3333333333333333"),
        (["x * 10**400", "x=1"], "inf", "inf"),
        (["sum(x * y)", "x=[1,2]", "y=[3,4]"], "11.0", "([3.0, 4.0], [1.0, 2.0])"),
        (["sum(x @ y)", "x=[[1,2],[3,4]]", "y=[1,1]"], "10.0", "([[1.0, 1.0], [1.0, 1.0]], [4.0, 6.0])"),
        (["x[0, 1:][-1]", "x=[[1,2],[3,4]]"], "2.0", "[[0.0, 1.0], [0.0, 0.0]]"),
        (["sum(where(x > 0, x, 0)[[0, 0]])", "x=[1, -2, 3]"], "2.0", "[2.0, 0.0, 0.0]"),
        (["sum(x, axis=-1, keepdims=True)[0]", "x=[1, 2]"], "3.0", "[1.0, 1.0]"),
        (["sum(x, 0)", "x=[1, 2]"], "3.0", "[1.0, 1.0]"),
        (["sum(reshape(x, (1, 2)), axis=(0, 1))", "x=[1, 2]"], "3.0", "[1.0, 1.0]"),
        (["np.sin(x)", "x=0"], "0.0", "1.0"),
        (["erf(x)", "x=0"], "0.0", "1.1283791670955126"),
        (["cos(x)", "x=pi/2*2"], "-1.0", "-1.2246467991473532e-16"),
        (["pi * x", "x=1"], "3.141592653589793", "3.141592653589793"),
        (["e * 2", "e=4"], "8.0", "2.0"),
        (["größe * 2", "größe=3"], "6.0", "2.0"),
        (["modf(x)[0]", "x=2.5"], "0.5", "1.0"),
        (["abs(x * 1j)", "x=2"], "2.0", "1.0"),
        (["sqrt(x)", "x=0"], "0.0", "inf"),
        (["log(x)", "x=0"], "-inf", "inf"),
        (["( x\n+ 1 )", "x=-inf"], "-inf", "1.0"),
        (["x + " * 198 + "x", "x=1"], "199.0", "199.0"),
    ],
)
def test_values_and_gradients(capsys, arguments, value, gradient):
    assert result(capsys, *arguments) == [value, gradient]


def test_arrays_from_files(capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    assert result(capsys, "sum(x**2)", f"x=@{tmp_path / 'x.npy'}") == ["5.0", "[0.0, 2.0, 4.0]"]
    np.save(tmp_path / "single.npy", np.arange(3, dtype=np.float32))
    assert result(capsys, "sum(x**2)", f"x=@{tmp_path / 'single.npy'}") == ["5.0", "[0.0, 2.0, 4.0]"]


FORMULA_PARTS = (
    "numbers, variables, operators, literal indices and functions such as sum(x, axis=0) are needed. "
    "Write it in these terms, or use wengert.explain in Python."
)
NUMBERS = (
    "a number or a list of numbers, all rows of the same length, is needed. Write x=2, x=pi/4, x=[1,2,3] or "
    "x=@file.npy."
)
UNKNOWN = "a function of wengert.numpy or wengert.scipy.special is needed."
ACCEPTED = "operands that NumPy accepts there are needed. Correct the formula or the values."
EXPRESSION = "a Python expression is needed. Correct the formula."

MISTAKES = [
    (["x +", "x=1"], f"'x +' (invalid syntax); {EXPRESSION}"),
    (["", "x=1"], f"'' (invalid syntax); {EXPRESSION}"),
    (["x; y", "x=1"], f"'x; y' (invalid syntax at character 2); {EXPRESSION}"),
    (["x = 2", "x=1"], None),
    (["x\0", "x=1"], None),
    (["\udcff", "x=1"], None),
    (["(" * 300, "x=1"], None),
    (["1" * 1999 + "8" * 0, "x=1"], None),
    (["-" * 1500 + "x", "x=1"], None),
    (["x" + "[0]" * 300, "x=1"], "a formula that nests more than 200 operations; a flatter one is needed. Use "
     "wengert.explain in Python."),
    (["x+" * 1500 + "x", "x=1"],
     "a formula of 3001 characters; at most 2000 are needed. Use wengert.explain in Python."),
    (["frobnicate(x)", "x=1"],
     f"the function frobnicate; {UNKNOWN} See their documentation."),
    (["sine(x)", "x=1"],
     f"the function sine; {UNKNOWN} Write sin if you meant that."),
    (["ln(x)", "x=1"],
     f"the function ln; {UNKNOWN} Write log(x)."),
    (["max(x, y)", "x=1", "y=1"], "'max(x, y)'; one array is needed there. Write maximum(x, y) of two values."),
    (["x if x > 0 else 0", "x=1"],
     "'x if x > 0 else 0' in a formula; a function is needed. Write where(condition, x, y)."),
    (["x", "x=2*y"], f"x=2*y; {NUMBERS}"),
    (["sin + x", "x=1"], "the function sin without arguments; a call is needed. Write sin(x)."),
    (["x * y", "x=1"], "no value for the variable y; a value for each is needed. Add y=1, for instance."),
    (["x", "x=1", "z=2"], "a value for z, which the formula does not contain; a value for each variable, and no other, "
     "is needed. Leave z out."),
    (["2 + 3"], 'a formula without variables; one to differentiate is needed. Write "x**2" x=3, for instance.'),
    (["x", "x=1", "x=2"], "x with two values; one value for each variable is needed. Give x once."),
    (["x", "x"], "'x'; a variable's name, = and a value are needed. Write x=2, for instance."),
    (["x", "=2"], "'=2'; a variable's name, = and a value are needed. Write x=2, for instance."),
    (["x", "lambda=2"], "'lambda=2'; a variable's name, = and a value are needed. Write x=2, for instance."),
    (["x", "x="], f"x=; {NUMBERS}"),
    (["x", "x=two"], f"x=two; {NUMBERS}"),
    (["x", "x=True"], f"x=True; {NUMBERS}"),
    (["x", "x=[[1,2],[3]]"], f"x=[[1,2],[3]]; {NUMBERS}"),
    (["x", "x=['a']"], f"x=['a']; {NUMBERS}"),
    (["x", "x={1}"], f"x={{1}}; {NUMBERS}"),
    (["x", "x=__import__('os')"], f"x=__import__('os'); {NUMBERS}"),
    (["x", "x=" + "[" * 5000], None),
    (["x * 2", "x=[1,2]"], "a formula that gives an array of shape (2,); one number is needed. Reduce it, with "
     "sum(...) for instance."),
    (["modf(x)", "x=1.5"], "a formula that gives several values; one number is needed. Choose one, as in "
     "modf(x)[0], or add them up."),
    (["sum(x * 1j)", "x=1"], "a formula that gives a complex number; a real one is needed. Take its real(...) or "
     "abs(...)."),
    (["x[5]", "x=[1,2]"], f"'x[5]' failed (index 5 is out of bounds for axis 0 with size 2); {ACCEPTED}"),
    (["sum(x, axis=7)", "x=[1]"], f"'sum(x, axis=7)' failed (axis 7 is out of bounds for array of dimension 1); "
     f"{ACCEPTED}"),
    (["sum(x, foo=7)", "x=1"], None),
    (["sum()", "x=1"], None),
    (["sum(x, axis='a')", "x=1"], None),
    (["x * 'a'", "x=1"], f"\"x * 'a'\" failed (an operator cannot take 'a'); {ACCEPTED}"),
    (["[1, 2] * x", "x=1"], f"'[1, 2] * x' failed (an operator cannot take [1, 2]); {ACCEPTED}"),
    (["x(1)", "x=1"],
     f"the function x; {UNKNOWN} See their documentation."),
    (["1 < x < 2", "x=1"], "'1 < x < 2'; one comparison at a time is needed. Combine two with logical_and."),
    (["x[i]", "x=[1,2]"], f"'i' in a formula; {FORMULA_PARTS}"),
    (
        ["x ^ 2", "x=1"],
        "^ in a formula, which is no power in Python; ** is needed. Write x**2, for instance.",
    ),
    (["x.sum()", "x=1"], f"'x.sum()' in a formula; {FORMULA_PARTS}"),
    (["x.real", "x=1"], f"'x.real' in a formula; {FORMULA_PARTS}"),
    (["sum(x, axis=x)", "x=1"], f"'x' in a formula; {FORMULA_PARTS}"),
    (["sum(*x)", "x=1"], f"'*x' in a formula; {FORMULA_PARTS}"),
    (["sum(**x)", "x=1"], f"'sum(**x)' in a formula; {FORMULA_PARTS}"),
    (["(y := x)", "x=1"], f"'(y := x)' in a formula; {FORMULA_PARTS}"),
    (["[y for y in x]", "x=1"], f"'[y for y in x]' in a formula; {FORMULA_PARTS}"),
    (["(lambda: 1)()", "x=1"], f"'(lambda: 1)()' in a formula; {FORMULA_PARTS}"),
    (["f'{x}'", "x=1"], None),
    (["not x", "x=1"], None),
    (["x is 1", "x=1"], None),
    (["x and 1", "x=1"], f"'x and 1' in a formula; {FORMULA_PARTS}"),
    (["__import__('os').system('true')", "x=1"], f"\"__import__('os').system('true')\" in a formula; {FORMULA_PARTS}"),
    (["x.__class__", "x=1"], f"'x.__class__' in a formula; {FORMULA_PARTS}"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_in_formulas(capsys, arguments, message):
    assert main(["grad", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("wengert grad: ")
    assert "; " in captured.err
    assert captured.err.endswith(".\n")
    if message is not None:
        assert captured.err == f"wengert grad: {message}\n"


def test_shapes_that_do_not_broadcast(capsys):
    assert main(["grad", "sum(x + y)", "x=[1,2]", "y=[1,2,3]"]) == 2
    assert capsys.readouterr().err == (
        "add: shapes (2,) and (3,); shapes that broadcast are needed: equal from the right, or 1. "
        "Reshape one of them.\n"
    )


def test_files_that_cannot_be_used(capsys, tmp_path):
    whole = tmp_path / "whole.npy"
    np.save(whole, np.arange(30.0))
    np.save(tmp_path / "objects.npy", np.array([None, {}], dtype=object))
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "truth.npy", np.array([True]))
    np.savez(tmp_path / "archive.npz", a=np.ones(1))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "cut.npy").write_bytes(whole.read_bytes()[:-4])
    header = whole.read_bytes()
    (tmp_path / "huge.npy").write_bytes(header.replace(b"(30,)", b"(9999999999999999,)").replace(b" " * 14, b"", 1))
    for name in ("none", "objects", "text", "truth", "empty", "cut", "huge"):
        check_file(capsys, tmp_path / f"{name}.npy")
    check_file(capsys, tmp_path / "archive.npz")
    check_file(capsys, tmp_path)


def check_file(capsys, path):
    assert main(["grad", "sum(x)", f"x=@{path}"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"wengert grad: x=@{path}")


def test_files_with_any_byte_damaged_give_no_traceback(capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    content = (tmp_path / "x.npy").read_bytes()
    for position in range(0, 128, 3):
        for value in (0, 40, 255):
            damaged = bytearray(content)
            damaged[position] = value
            (tmp_path / "x.npy").write_bytes(damaged)
            assert main(["grad", "sum(x)", f"x=@{tmp_path / 'x.npy'}"]) in (0, 2)
            assert capsys.readouterr().err.count("\n") <= 1


def test_formulas_may_call_functions_that_mean_something_for_tensors_only():
    names = formula_parser.function_names()
    assert set(names) <= set(wnp.__all__)
    assert {"sin", "sum", "where", "matmul"} <= set(names)
    assert not {"fromfile", "fromstring", "frombuffer", "load", "save", "savetxt", "genfromtxt", "memmap"} & set(names)
    assert "float64" not in names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gard"], "wengert: argument command: invalid choice: 'gard'"),
        (["--frobnicate"], "wengert: unrecognized arguments: --frobnicate"),
        (["grad"], "wengert grad: the following arguments are required: formula"),
        (["demo", "--epochs"], "wengert demo: argument --epochs: expected one argument"),
        (["demo", "--epochs", "0"], "wengert demo: argument --epochs: '0' is not a positive whole number"),
        (["demo", "--epochs", "many"], "wengert demo: argument --epochs: 'many' is not a positive whole number"),
        (["demo", "--picture", "/no/such/folder/x.png"], "wengert demo: --picture '/no/such/folder/x.png'"),
        (["demo", "--picture", "/"], "wengert demo: --picture '/'"),
        (["demo", "--picture", ""], "wengert demo: --picture ''"),
    ],
)
def test_mistakes_on_the_command_line(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message)
    assert captured.err.count("\n") == 1


def test_without_a_command_it_helps(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: wengert ")


@pytest.mark.parametrize("arguments", [["--help"], ["grad", "--help"], ["demo", "--help"], ["grad", "-h"]])
def test_help(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: wengert")


def run(*arguments, **options):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "wengert", *arguments], capture_output=True, text=True, timeout=120, **options
    )


def test_as_a_process():
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wengert {wengert.__version__}\n", "")
    done = run("grad", "x +", "x=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_terminals_that_show_ascii_only():
    done = run("grad", "ø*2", "ø=1", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.startswith("\\xf8*2\n")


def test_a_pipe_that_is_closed_early():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "wengert", "grad", "x + " * 150 + "x", "x=1"],
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    assert done.stderr == b""


def test_profile(capsys, tmp_path):
    (tmp_path / "profiled.py").write_text("import numpy as np\ndef loss(x, n):\n    return np.sum(np.exp(x) / n)\n")
    function = f"{tmp_path / 'profiled.py'}:loss"
    assert main(["profile", function, "--shapes", "100,3", "int64[3]", "--calls", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["time", "kernel", "between", "all"]
    assert main(["profile", function, "--shapes", "float64[]", "float64[]", "--calls", "2"]) == 0
    assert 0.0 <= float(capsys.readouterr().out.splitlines()[1].split()[2].replace(",", "")) < 1e6  # in registers
    (tmp_path / "summed.py").write_text(
        "import numpy as np\nfrom wengert import distributed\n"
        "run = distributed.total(lambda w, x: np.sum(w * x), [np.ones(3), np.ones(4)])\n"
    )
    capsys.readouterr()
    assert main(["profile", f"{tmp_path / 'summed.py'}:run", "--shapes", "float64[]", "--calls", "2"]) == 0
    title, *threads = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert (title, {*threads}) == ("waiting", {"ms"})
    assert main(["profile", function, "--shapes", "100,3"]) == 2
    assert capsys.readouterr().err.startswith("wengert profile: 1 --shapes for ")


def test_doctor(capsys, monkeypatch):
    monkeypatch.setattr(config, "NATIVE", True)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Wengert", wengert.__version__]
    assert lines[-1].startswith("native code  works: a first function took ")
    monkeypatch.setattr(config, "NATIVE", False)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "native code  switched off by WENGERT_NATIVE=0",
        "             Unset WENGERT_NATIVE.",
    ]


def test_doctor_measures_the_machine_for_later_processes(capsys, monkeypatch, tmp_path):
    kept = ObjectCache(str(tmp_path / "kept"))
    path = tmp_path / "kept" / "machine.json"
    monkeypatch.setattr(calibration, "object_cache", lambda: kept)
    monkeypatch.setattr(calibration, "PLACE", str(path))
    monkeypatch.setattr(config, "NATIVE", True)
    assert main(["doctor", "--calibrate"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("measured     clock ")
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert 100 < read_record(str(path)).clock < 20_000
    kept.refusal = "others can write to it"
    assert main(["doctor", "--calibrate"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "measured     nothing is kept: others can write to it"


def test_what_a_function_of_the_user_raises_is_one_line(capsys, tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def last(w):\n    return w[5]\n")
    for command in ("graph", "profile"):
        assert main([command, f"{path}:last", "--shapes", "3"]) == 2
        text = capsys.readouterr().err
        assert "which raised IndexError: index 5 is out of bounds for axis 0 with size 3" in text
        assert text.endswith("line 2); a function of arrays of these shapes is needed. Correct it, or --shapes.\n")
