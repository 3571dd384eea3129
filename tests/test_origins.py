"""Equations name the line of the operation that they come from, those of derivatives too."""

import numpy as np
import pytest

import wengert as wg
from wengert.core.graph.graph import subgraphs
from wengert.graph import gradient, render, trace

POINT = np.array([0.5, 0.6])


def program(x):
    a = np.sin(x)  # marked sine
    b = a * x  # marked product
    b[0] *= 2.0  # marked writing
    c = b[0] + b[1]  # marked parts
    return c * np.sum(a)  # marked end


def looped(x):
    def body(c, v):
        c = c * np.tanh(v)  # marked body
        return c, c

    last, every = wg.scan(body, x[0], x)  # marked scan
    return wg.cond(last > 0.0, lambda v: np.sum(np.exp(v)), np.sum, every)  # marked cond


def lines(graph):
    """Return the marks of the lines that equations come from, those of inner graphs too; their text without one."""
    found, graphs = set(), [graph]
    while graphs:
        for equation in graphs.pop().equations:
            text = equation.position.text
            found.add(text.partition("# marked ")[2] or text)
            graphs += [inner for _, inner in subgraphs(equation.params)]
    return found


def lines_of(graph, primitive):
    """Return the marks of the lines of the equations of one primitive, in order."""
    found = [e.position.text for e in graph.equations if e.primitive.name == primitive]
    return [text.partition("# marked ")[2] for text in found]


FIRST = {"sine", "product", "writing", "parts", "end"}
TRANSFORMED = {
    "grad": wg.grad(program),
    "of a sum of grad": wg.grad(lambda x: wg.grad(program)(x).sum()),
    "grad of jit": wg.grad(wg.jit(program)),
    "jit of grad": wg.jit(wg.grad(program)),
    "jvp": lambda x: wg.jvp(program, (x,), (x,)),
    "hvp": lambda x: wg.hvp(program, x, x),
    "vmap of grad": lambda x: wg.vmap(wg.grad(program))(np.multiply.outer(np.ones(3), x)),
    "jacobian": lambda x: wg.jacobian(program)(2.0 * x),
    "taylor": lambda x: wg.taylor(program, (x,), (x,), order=3),
    "grad of checkpoint": lambda x: wg.grad(wg.checkpoint(program))(x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_equations_of_derivatives_come_from_the_lines_of_the_function(name):
    found = lines(trace(TRANSFORMED[name])(POINT))
    assert found >= FIRST
    assert all(name in text for text in found - FIRST)  # what the transformation itself adds: unit vectors, a sum


def test_each_equation_of_a_gradient_comes_from_the_operation_that_it_is_the_derivative_of():
    graph = trace(wg.grad(program))(POINT)
    assert lines(graph) == FIRST
    assert lines_of(graph, "cos") == ["sine"]
    assert lines_of(graph, "multiply") == ["product", "writing", "writing", "product", "product", "sine"]
    listing = render(graph, positions=True)
    assert "cos(x)  # float64[2]  File" in listing
    assert "in program: a = np.sin(x)  # marked sine" in listing


def test_the_gradient_of_a_graph_comes_from_the_lines_of_its_equations():
    assert lines(gradient(trace(program)(POINT))) == FIRST


def test_bodies_of_loops_and_branches_keep_their_lines_in_both_halves():
    graph = trace(wg.grad(looped))(POINT)
    assert lines(graph) == {"body", "scan", "cond"}
    loops = [e for e in graph.equations if e.primitive.name == "scan"]
    bodies = [lines(body) for e in loops for _, body in subgraphs(e.params)]
    assert len(bodies) == 2
    assert all("body" in body for body in bodies)


def test_what_is_recorded_on_a_tape_by_a_jitted_function_or_a_sweep_names_its_line():
    x = wg.tensor(POINT, requires_grad=True)
    (slope,) = wg.autograd.grad(program(x), [x], create_graph=True)
    assert "# marked" in slope.grad_fn.position.text


def test_what_a_hook_records_in_a_recorded_sweep_has_its_own_line():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    hidden = np.exp(x) * 2.0
    hidden.register_hook(lambda ct: ct * 3.0)  # hooked
    (slope,) = wg.autograd.grad(np.sin(hidden), [x], [np.ones(2)], create_graph=True)
    places, waiting = set(), [slope.grad_fn]
    while waiting:
        node = waiting.pop()
        places.add(node.position.text)
        waiting += [parent for parent in node.next_functions if parent is not None]
    assert any("# hooked" in text for text in places)
    assert any("np.exp(x)" in text for text in places)


def test_a_rule_of_the_users_is_named_itself():
    @wg.custom_rule
    def doubled(x):
        return x * 2.0

    def backward(x, ct):
        return (ct * np.cosh(x),)  # marked rule

    doubled.defvjp(lambda x: (doubled(x), x), backward)
    assert lines(trace(wg.grad(lambda x: doubled(x).sum()))(POINT)) == {"rule"}


@pytest.mark.parametrize("folder", ["numpy", "site-packages/numpy_model", "wengert"])
def test_folders_of_the_user_may_have_any_name(folder):
    names: dict = {}
    code = compile("def f(x):\n    return x * x\n", f"/home/somebody/{folder}/model.py", "exec")
    exec(code, names)  # noqa: S102 - a file of a name of our choice
    (equation,) = trace(names["f"])(2.0).equations
    assert equation.position.filename == f"/home/somebody/{folder}/model.py"


def eigenvectors(x):
    return np.sum((np.linalg.eigh(x * np.eye(2))[1].T @ POINT) ** 2 * POINT)  # marked eigenvectors


def element(x):
    return x[np.argmax(x) * 5]  # marked element


def greatest(x):
    return np.max(x[x > 9.0])  # marked greatest


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: wg.grad(eigenvectors)(2.0), "eigenvectors"),
        (lambda: wg.jit(wg.grad(eigenvectors))(2.0), "eigenvectors"),
        (lambda: wg.grad(wg.jit(eigenvectors))(2.0), "eigenvectors"),
        (lambda: wg.jvp(wg.grad(eigenvectors), (2.0,), (1.0,)), "eigenvectors"),
        (lambda: wg.jit(element)(POINT), "element"),
        (lambda: wg.jit(greatest)(POINT), "greatest"),
    ],
)
def test_errors_of_numpy_while_graphs_and_derivatives_run_name_the_users_line(call, line):
    with pytest.raises((np.linalg.LinAlgError, IndexError, ValueError)) as caught:
        call()
    (note,) = caught.value.__notes__
    assert f"# marked {line}" in note
