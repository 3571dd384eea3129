"""`visualize`: the tape of a Tensor as a picture; `wengert graph`: the graph of a function as a page."""

import re

import numpy as np
import pytest

import wengert as wg
from wengert.cli import main
from wengert.cli.graphs import example
from wengert.errors import DtypeError, UsageError


def lines_of(picture):
    """What is written on the boxes."""
    return [box.lines[0] for box in picture.boxes]


def test_it_shows_leaves_operations_and_outputs_in_the_order_of_the_tape():
    x = wg.tensor(np.ones((2, 3)), requires_grad=True)
    w = wg.tensor(np.ones((3, 3)), requires_grad=True)
    y = np.tanh(x @ w) * 2.0 + np.ones(3)
    picture = wg.visualize(y.sum())
    assert lines_of(picture) == [
        "x1",
        "x2",
        "v1 = x1 @ x2",
        "v2 = tanh(v1)",
        "v3 = v2 * 2.0",
        "v4 = v3 + constant",
        "v5 = sum(v4)",
        "output 0: v5",
    ]
    assert [box.lines[1] for box in picture.boxes[:3]] == ["float64[2,3]", "float64[3,3]", "float64[2,3]"]
    assert picture.boxes[3].facts["source"] == "y = np.tanh(x @ w) * 2.0 + np.ones(3)"
    assert re.fullmatch(r".*test_visualize\.py:\d+, in test_it_shows.*", picture.boxes[3].facts["line"])
    assert picture.wires[:2] == [(0, 0, 2, 0), (1, 0, 2, 1)]
    assert "<svg" in picture._repr_html_()


def test_operations_with_several_results_and_writes_are_shown():
    x = wg.tensor(np.eye(2) * 2.0, requires_grad=True)
    _, logarithm = np.linalg.slogdet(x)
    y = x.copy()
    y[0, 1:] = logarithm
    picture = wg.visualize([y[0], logarithm])
    found = lines_of(picture)
    assert "v1 = slogdet(x1)" in found
    assert "v3 = v2 with [0, 1:] = v1[1]" in found
    assert found[-2:] == ["output 0: v4", "output 1: v1[1]"]
    assert picture.to_svg().startswith("<svg")


def test_what_a_sweep_has_used_up_can_still_be_seen():
    x = wg.tensor(2.0, requires_grad=True)
    y = x * 3.0
    y.backward()
    assert lines_of(wg.visualize(y)) == ["x1", "v1 = x1 * constant", "output 0: v1"]


def test_inside_of_a_transformation_it_shows_what_that_has_recorded():
    seen = []

    def f(x):
        y = np.sin(x) * x
        seen.extend(lines_of(wg.visualize(y)))
        return y

    wg.grad(f)(2.0)
    assert seen == ["x1", "v1 = sin(x1)", "v2 = v1 * x1", "output 0: v2"]


def test_checkpoints_are_not_computed_again_to_be_seen():
    calls = []

    def f(x):
        calls.append(1)
        return np.sin(x) * 2.0

    x = wg.tensor(2.0, requires_grad=True)
    y = wg.checkpoint(f)(x)
    before = len(calls)
    assert len(wg.visualize(y).boxes) >= 3
    assert len(calls) == before


def test_what_has_no_tape_is_refused():
    with pytest.raises(UsageError, match=r"^visualize: a Tensor for which nothing was recorded; a result of Tensors"):
        wg.visualize(wg.tensor(1.0))
    with pytest.raises(UsageError, match=r"^visualize: a Tensor for which nothing was recorded"):
        wg.jit(lambda x: wg.visualize(x) and x)(1.0)
    with pytest.raises(DtypeError, match=r"^visualize: 1\.0; a Tensor is needed\. Pass a result of Tensors"):
        wg.visualize(1.0)
    with pytest.raises(
        DtypeError, match=r"^visualize: a value of type function; .* Draw a function with wengert\.graph"
    ):
        wg.visualize(lambda x: x)
    with pytest.raises(DtypeError, match=r"^visualize: a value of type list; a Tensor is needed"):
        wg.visualize([])


# wengert graph

MODEL = """
import numpy as np

rate = 3.0

def loss(p, x, y):
    error = np.tanh(x @ p["w"]) + p["b"] - y
    return np.mean(error**2)
"""
SHAPES = ["--shapes", "{'w': '3', 'b': '()'}", "5,3", "5"]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_model.py").write_text(MODEL)
    return tmp_path


def test_a_page_is_written_about_a_function_of_a_file(model, capsys):
    assert main(["graph", "a_model.py:loss", *SHAPES]) == 0
    assert capsys.readouterr().out == "loss.html: 6 equations\n"
    page = (model / "loss.html").read_text()
    assert "<title>a_model.py:loss</title>" in page
    assert "v2 = tanh(v1)" in page


def test_a_picture_is_written_of_a_gradient(model, capsys, monkeypatch):
    monkeypatch.syspath_prepend(model)
    assert main(["graph", "a_model:loss", *SHAPES, "--gradient", "--output", "picture.svg"]) == 0
    assert "picture.svg: " in capsys.readouterr().out
    picture = (model / "picture.svg").read_text()
    assert picture.startswith("<svg")
    assert "forward: v2 = tanh(v1)" in picture


def test_shapes_describe_arrays_and_containers():
    assert example("3,4").shape == example("(3, 4)").shape == example("[3,4]").shape == (3, 4)
    assert example("7").shape == (7,)
    assert example("()").shape == ()
    assert example("float32[2,0]").dtype == np.float32
    assert example("int[2]").dtype == int
    assert example("100000,100000,1000").nbytes > 2**40  # which takes no memory
    found = example("{'w': ['3,4', 'float32[4]']}")
    assert [x.shape for x in found["w"]] == [(3, 4), (4,)]


SHAPES_NEEDED = (
    "shapes, with dtypes where they are not float64, are needed. Write 3,4 or float32[3,4], () for a number, or "
    "{'w': '3,4', 'b': '4'} for containers."
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a_model"], "'a_model'; a module and a function in it are needed. Write package.module:function or "
         "file.py:function."),
        (["a_model.py"], "'a_model.py'; a module and a function in it are needed. Write package.module:function or "
         "file.py:function."),
        (["no_model:f"], "the module 'no_model', which is not there; a module that can be imported is needed. Correct "
         "its name."),
        (["no.py:f"], "'no.py', which is no file; a file with a module is needed. Correct its path."),
        (["a_model.py:los"], "'a_model.py:los', where a_model.py has no los; a function of the module is needed. "
         "Correct its name."),
        (["a_model.py:rate"], "'a_model.py:rate', which is of type float; a function is needed. Name one."),
        (["a_model.py:loss"], "0 --shapes for a_model.py:loss(p, x, y); a shape for each argument is needed. Write "
         "--shapes 3,4 5, for instance."),
        (["a_model.py:loss", "--shapes", "3;4"], f"--shapes '3;4'; {SHAPES_NEEDED}"),
        (["a_model.py:loss", "--shapes", ""], f"--shapes ''; {SHAPES_NEEDED}"),
        (["a_model.py:loss", "--shapes", "text[3]"], f"--shapes 'text[3]'; {SHAPES_NEEDED}"),
        (["a_model.py:loss", "--shapes", "{'w': 3}"], f"--shapes '3'; {SHAPES_NEEDED}"),
        (["a_model.py:loss", "--shapes", "{'w':"], f"--shapes \"{{'w':\"; {SHAPES_NEEDED}"),
        (["a_model.py:loss", "--shapes", "object[3]"], f"--shapes 'object[3]'; {SHAPES_NEEDED}"),
        (["a_model.py:loss", *SHAPES, "--output", "x.pdf"], "--output 'x.pdf'; a name that ends in .html or .svg is "
         "needed. Rename it."),
        (["a_model.py:loss", *SHAPES, "--output", "no/x.svg"], "--output 'no/x.svg', which cannot be written (No such "
         "file or directory); a path to write to is needed. Choose another."),
    ],
)  # fmt: skip
def test_mistakes(model, capsys, arguments, message):
    assert main(["graph", *arguments]) == 2
    assert capsys.readouterr().err == f"wengert graph: {message}\n"
