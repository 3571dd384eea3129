"""The page of a graph in a real browser: it opens, pans, zooms, folds and explains."""

import numpy as np
import pytest

import wengert as wg
from tools.browser import PROGRAM, Browser
from wengert.graph import trace

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium")


def program(x):
    y, _ = wg.scan(lambda carry, i: (np.sin(carry) * i, carry), x, np.arange(3.0))  # marked scan
    return np.sum(np.tanh(y) * x)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture
def page(browser, tmp_path):
    path = tmp_path / "graph.html"
    path.write_text(trace(wg.grad(program))(np.ones(2)).to_html(), encoding="utf-8")
    browser.complaints.clear()
    browser.open(path)
    yield browser
    requests = [c["request"]["url"] for c in browser.complaints if "request" in c]
    assert requests == [path.as_uri()]  # and nothing was thrown
    assert len(browser.complaints) == 1


def repeated(x):
    for _ in iter(range(150)):  # written out
        x = np.sin(x) * x
    return x.sum()


@pytest.mark.long
def test_of_a_long_picture_only_what_is_near_is_laid_out(browser, tmp_path):
    path = tmp_path / "long.html"
    path.write_text(trace(wg.grad(repeated))(np.ones(3)).to_html(), encoding="utf-8")
    browser.open(path)
    count = "svg.querySelectorAll('.box.shown').length"
    assert 0 < browser.run(count) < 200 < browser.run("boxes.length")
    assert browser.run("boxes[0].element.classList.contains('shown')")
    browser.run("view.scrollTop = view.scrollHeight")
    assert (
        browser.run("new Promise(r => setTimeout(() => r(boxes[0].element.classList.contains('shown')), 100))") is False
    )
    assert browser.run("boxes[boxes.length - 1].element.classList.contains('shown')")
    browser.run("go(5)")
    assert browser.run("boxes[5].frame.getBoundingClientRect().width") > 10
    browser.run("fit()")
    assert browser.run(count) == browser.run("boxes.length")


def place_of(page, label):
    """The place of a box on the screen."""
    script = f"""(() => {{
        const n = facts.findIndex((fact) => fact.label.startsWith({label!r}));
        const place = boxes[n].frame.getBoundingClientRect();
        return [place.left + 8, place.top + 8];
    }})()"""
    return page.run(script)


def test_a_click_tells_what_there_is_to_know(page):
    page.click(*place_of(page, "v3 = tanh"))
    text = page.run("panel.innerText")
    assert text.startswith("v3 = tanh(v1)")
    assert "float64[2]" in text
    assert "test_pages.py:15, in program" in text
    assert "return np.sum(np.tanh(y) * x)" in text
    page.click(*place_of(page, "v4 = tanh_derivative"))
    assert "derivative of\nv3 = tanh(v1)" in page.run("panel.innerText")
    assert page.run("document.querySelectorAll('.origin').length") == 1
    page.run("[...panel.querySelectorAll('a')].find((a) => a.innerText === 'v3 = tanh(v1)').click()")
    assert page.run("panel.querySelector('h2').innerText") == "v3 = tanh(v1)"


def test_it_pans_and_zooms(page):
    page.run("zoomTo(2.4)")
    before = page.run("[view.scrollLeft, view.scrollTop]")
    page.drag(280, 700, 300, 500)
    assert page.run("[view.scrollLeft, view.scrollTop]") == [before[0] - 20, before[1] + 200]
    assert page.run("document.querySelectorAll('.selected').length") == 0
    page.run("document.getElementById('larger').click()")
    assert page.run("scale") == 3
    page.mouse("mouseWheel", 300, 300, deltaX=0, deltaY=-90, modifiers=2)
    assert page.run("new Promise(r => setTimeout(() => r(scale > 3), 200))")
    page.run("document.getElementById('fit').click()")
    assert page.run("size.height * scale <= view.clientHeight + 1 && size.width * scale <= view.clientWidth + 1")


def test_sub_graphs_fold_and_what_is_below_moves_up(page):
    before = page.run("pictures[0].now")
    place = place_of(page, "v1, v2 = scan")
    below = place_of(page, "v3 = tanh")
    page.click(*place, times=2)
    after = page.run("pictures[0].now")
    assert after < before - 100
    assert place_of(page, "v3 = tanh")[1] == pytest.approx(below[1] - (before - after), abs=0.5)
    assert page.run("svg.querySelectorAll('.folded').length") == 1
    joined = """(() => {
        const box = boxes.find((box) => box.folded), wire = wires.get(box.element.dataset.n)[0];
        const place = box.frame.getBoundingClientRect(), path = wire.getBoundingClientRect();
        return [place.bottom, path.top];
    })()"""
    bottom, top = page.run(joined)
    assert top == pytest.approx(bottom, abs=1.5)
    page.click(*place, times=2)
    assert page.run("pictures[0].now") == pytest.approx(before)
    page.run("document.getElementById('fold').click()")
    assert page.run("pictures[0].now") < after
    page.run("document.getElementById('unfold').click()")
    assert page.run("pictures[0].now") == pytest.approx(before)


def test_it_finds_equations_also_inside_of_folded_ones(page):
    page.run("document.getElementById('fold').click()")
    page.run("find.value = 'sin('")
    press = "find.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))"
    page.run(press)
    assert page.run("panel.querySelector('h2').innerText") == "v1 = sin(x1)"
    assert page.run("document.getElementById('found').innerText") == "1 of 1"
    assert page.run("svg.querySelectorAll('.folded').length") < page.run("svg.querySelectorAll('.nest').length")
    page.run("find.value = 'nothing like this'")
    page.run(press)
    assert page.run("document.getElementById('found').innerText") == "none"
