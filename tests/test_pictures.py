"""Pictures: the layout of boxes and wires, and what they show of graphs."""

import itertools
import random
import xml.etree.ElementTree

import numpy as np
import pytest
from scipy.sparse import csr_array

import wengert as wg
from wengert.core.graph.diagrams import picture_of
from wengert.errors import DtypeError, UsageError
from wengert.graph import gradient, to_html, to_svg, trace
from wengert.pictures.boxes import Box, Wire
from wengert.pictures.layout import BENDS, GAP, assign_layers, choose_wires, lay_out, set_apart
from wengert.pictures.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"


def textbook(x1, x2):
    return np.log(x1) + x1 * x2 - np.sin(x2)


def repeated(x, count):
    for _ in iter(range(count)):  # written out
        x = np.sin(x) * x
    return x.sum()


def branching(x):
    def body(carry, i):
        return np.sin(carry) * i, carry

    y, _ = wg.scan(body, x, np.arange(3.0))
    return wg.cond(y.sum() > 0, lambda y: np.exp(y).sum(), lambda y: y.sum(), y)


def some_wires(seed, count):
    """Wires between boxes as they might be."""
    draw = random.Random(seed)
    return [
        Wire(draw.randrange(max(0, target - 9), target), 0, target, operand)
        for target in range(1, count)
        for operand in range(draw.randrange(3))
    ]


def forward_of(graph):
    """The lines of the boxes of a backward pass, with those of the forward pass that they belong to."""
    boxes = picture_of(graph, "").every_box()
    return {box.lines[0]: box.forward and box.forward.lines[0] for box in boxes if box.kind == "derived"}


@pytest.mark.parametrize("seed", range(5))
def test_boxes_stand_apart_and_wires_lead_downward(seed):
    draw = random.Random(seed)
    sizes = [(draw.uniform(20, 200), draw.uniform(20, 60)) for _ in range(60)]
    wires = some_wires(seed, 60)
    found = lay_out(sizes, [(3, 1)] * 60, wires)
    assert found == lay_out(sizes, [(3, 1)] * 60, wires)
    assert all(found.layers[w.source] < found.layers[w.target] for w in wires)
    for layer in set(found.layers):
        row = sorted((found.lefts[i], sizes[i][0]) for i in range(60) if found.layers[i] == layer)
        assert all(left + width + GAP <= after + 1e-6 for (left, width), (after, _) in itertools.pairwise(row))
    for (source, _), pieces in found.wires.items():
        assert all(piece.y <= piece.bottom < piece.to_y for piece in pieces)
        assert pieces[0].y == found.tops[source] + sizes[source][1]
    assert sum(len(pieces) for pieces in found.wires.values()) >= len(wires)
    assert min(found.lefts) >= -1e-6
    assert max(x + w for x, (w, _) in zip(found.lefts, sizes, strict=True)) <= found.width + 1e-6


def test_layers_keep_wires_short():
    wires = [Wire(0, 0, 2, 0), Wire(2, 0, 3, 0), Wire(3, 0, 4, 0), Wire(1, 0, 4, 1)]
    assert assign_layers(5, wires) == [0, 2, 1, 2, 3]


def test_the_longest_wires_are_left_out_when_they_are_too_many():
    count = 2000
    layers = [*range(count), *range(count, 2 * count)]
    wires = [Wire(i, 0, i + 1, 0) for i in range(2 * count - 1)]
    wires += [Wire(i, 0, 2 * count - 1 - i, 1) for i in range(count - 1)]
    drawn, left_out = choose_wires(layers, wires)
    assert sum(layers[w.target] - layers[w.source] - 1 for w in drawn) <= BENDS * len(layers) + 100
    assert min(layers[w.target] - layers[w.source] for w in left_out) >= 100
    assert len(drawn) + len(left_out) == len(wires)


def test_positions_are_the_nearest_that_are_in_order():
    draw = random.Random(3)
    wanted = [draw.uniform(0, 10) for _ in range(6)]
    pulls = [draw.uniform(1, 3) for _ in range(6)]

    def cost(xs):
        return sum(p * (x - w) ** 2 for x, w, p in zip(xs, wanted, pulls, strict=True))

    found = set_apart(wanted, pulls, [2.0] * 5)
    assert all(b - a >= 2 - 1e-9 for a, b in itertools.pairwise(found))
    for i, sign in itertools.product(range(6), (1e-4, -1e-4)):
        for j in range(i, 6):
            moved = [x + sign * (i <= k <= j) for k, x in enumerate(found)]
            if all(b - a >= 2 - 1e-9 for a, b in itertools.pairwise(moved)):
                assert cost(moved) >= cost(found)


def test_few_wires_cross_where_none_need():
    wires = [Wire(0, 0, 5, 0), Wire(1, 0, 4, 0), Wire(2, 0, 3, 0)]
    found = lay_out([(40.0, 20.0)] * 6, [(1, 1)] * 6, wires)
    order = sorted(range(3), key=found.lefts.__getitem__)
    assert sorted((3, 4, 5), key=found.lefts.__getitem__) == [5 - i for i in order]


def test_pictures_of_graphs_are_svg_with_names_operations_and_types():
    graph = trace(textbook)(2.0, 5.0)
    text = to_svg(graph)
    assert text == graph.to_svg() == to_svg(trace(textbook)(2.0, 5.0))
    root = xml.etree.ElementTree.fromstring(text)
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert words[:4] == ["x1", "float", "x2", "float"]
    assert {"v1 = log(x1)", "v2 = x1 * x2", "float64[]", "output 0: v5"} <= set(words)
    hints = [element.text for element in root.iter(f"{SVG}title")]
    hint = next(text for text in hints if text.startswith("v1 = log(x1)"))
    assert "type: float64[]" in hint
    assert "operation: log" in hint
    assert "source: return np.log(x1) + x1 * x2 - np.sin(x2)" in hint


def test_sub_graphs_stand_inside_of_the_boxes_of_their_equations():
    picture = picture_of(trace(wg.grad(branching))(np.ones(2)), "")
    nested = [box for box in picture.boxes if box.inside]
    assert [box.facts["operation"] for box in nested] == ["scan", "cond", "cond", "scan"]
    assert [title for title, _ in nested[1].inside] == ["branches[0]", "branches[1]"]
    root = xml.etree.ElementTree.fromstring(picture.to_svg())
    classes = [element.get("class") for element in root.iter(f"{SVG}g")]
    assert classes.count("picture") == 1 + sum(len(box.inside) for box in nested)


def test_text_of_users_is_escaped():
    picture = Picture("a < b", [Box("input", ["<script>&"], {"x": "</title>"})], [])
    root = xml.etree.ElementTree.fromstring(picture.to_svg())
    assert [element.text for element in root.iter(f"{SVG}text")] == ["<script>&"]
    assert "</script>&" not in picture.to_html()
    assert "<title>a &lt; b</title>" in picture.to_html()


def test_equations_of_sparse_matrices_have_the_picture_of_the_pattern():
    matrix = csr_array([[1.0, 0.0], [2.0, 3.0]])
    graph = trace(lambda x: wg.sparse.jacobian(lambda y: matrix @ y**2)(x) @ x)(np.ones(2))
    (drawn,) = [box.svg for box in picture_of(graph, "").boxes if box.svg]
    root = xml.etree.ElementTree.fromstring(drawn)
    assert [element.text for element in root.iter(f"{SVG}title")] == ["2 x 2, 3 elements"]
    assert len([*root.iter(f"{SVG}rect")]) == 4
    assert "2 x 2, 3 elements" in graph.to_html()


def test_pages_need_nothing_else():
    page = to_html(trace(textbook)(2.0, 5.0))
    assert page == trace(textbook)(2.0, 5.0).to_html()
    assert "@@" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("draw", [to_svg, to_html])
def test_what_is_no_graph_is_refused(draw):
    with pytest.raises(DtypeError, match=rf"^{draw.__name__}: a str; a graph is needed\. Make one with"):
        draw("graph")


def test_notebooks_show_pictures_of_graphs_that_are_not_too_large():
    assert "<svg" in trace(textbook)(2.0, 5.0)._repr_html_()
    assert trace(lambda x: repeated(x, 300))(1.0)._repr_html_() is None


def test_empty_graphs_have_pictures():
    graph = trace(lambda x: 3.0)(1.0)
    assert "output 0: 3.0" in graph.to_svg()
    assert wg.graph.Graph((), (), ()).to_svg().startswith("<svg")
    assert wg.graph.Graph((), (), ()).to_html().startswith("<!doctype html>")


def test_equations_of_a_backward_pass_know_those_of_the_forward_pass():
    found = forward_of(trace(wg.grad(textbook, argnums=(0, 1)))(2.0, 5.0))
    assert found["v1 = cos(x2)"] is None  # the sine itself is not needed
    graph = gradient(trace(textbook)(2.0, 5.0))
    assert forward_of(graph)["v6 = cos(x2)"] == "v4 = sin(x2)"


def test_each_turn_of_a_loop_and_each_call_of_a_function_is_told_from_the_others():
    found = forward_of(trace(wg.grad(lambda x: repeated(x, 3)))(np.ones(3)))
    cosines = {line.split(" = ")[1]: forward.split(" = ")[1] for line, forward in found.items() if "cos" in line}
    assert {k.replace("cos", "sin"): v for k, v in cosines.items()} == {v: v for v in cosines.values()}
    assert len(cosines) == 3


def test_what_the_forward_pass_did_not_need_is_not_mistaken_for_another_turn():
    def powers(x):
        for _ in range(3):
            x = np.sin(x) ** 2
        return x

    found = forward_of(trace(wg.grad(powers))(1.0))
    assert found["v6 = 2 * v5"] is None
    assert found["v9 = 2 * v3"] == "v4 = v3 ** 2"
    assert found["v13 = 2 * v1"] == "v2 = v1 ** 2"


def test_derivatives_of_derivatives_know_what_they_come_from():
    found = forward_of(trace(wg.grad(wg.grad(lambda x: np.sin(x) * x)))(1.0))
    assert any(forward and forward.endswith("= cos(x)") and "sin" in line for line, forward in found.items())


def test_bodies_of_loops_know_the_forward_pass_of_the_body():
    found = forward_of(trace(wg.grad(branching))(np.ones(2)))
    assert found["v3 = cos(x1)"] == "v1 = sin(x1)"
    assert found["v1 = x1 * x2"] == "v2 = v1 * x2"


def test_graphs_of_thousands_of_equations_grow_no_faster_than_they_do():
    sizes = [len(trace(wg.grad(lambda x, n=n: repeated(x, n)))(np.ones(3)).to_svg()) for n in (20, 40, 80)]
    assert sizes[2] < 2.3 * sizes[1] < 2.3 * 2.3 * sizes[0]


def test_pictures_are_saved_by_the_end_of_the_name(tmp_path):
    picture = wg.visualize(wg.tensor(2.0, requires_grad=True) * 3.0)
    for name, text in (("tape.svg", picture.to_svg()), ("tape.html", picture.to_html())):
        picture.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    with pytest.raises(UsageError, match=r"save: a picture for the file 'tape.png'; a name that ends in .svg or .html"):
        picture.save(str(tmp_path / "tape.png"))
    with pytest.raises(AttributeError, match=r"no attribute 'savefig'; write picture.save"):
        picture.savefig("tape.svg")
    with pytest.raises(AttributeError, match=r"'Graph' object .* write wengert.graph.save\(graph, path\), or"):
        trace(np.sin)(1.0).save("sine.svg")
