"""What the documentation says is true: docstring examples, the README's examples, links, and what must be there."""

import doctest
import importlib
import inspect
import linecache
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

import wengert
from tests.cases import together
from tools import make_pictures, public_names, reference
from wengert.core.values.numpy_overrides import FUNCTIONS

ROOT = Path(__file__).resolve().parent.parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md")
    for path in ROOT.glob(pattern)
    if ".venv" not in path.parts
)
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(wengert.__path__, "wengert.")
    if not module.name.endswith("__main__")
)
PUBLIC = ("wengert", "wengert.autograd", "wengert.extend", "wengert.graph", "wengert.testing", "wengert.errors")


def blocks_of(page: str) -> list[str]:
    """The blocks of Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)


def is_session(block: str) -> bool:
    """Whether a block is what one sees at the prompt, and not a file."""
    return block.startswith(">>> ")


def run(test: doctest.DocTest, clear: bool = True) -> None:
    """Run a doctest; a failure raises with its report."""
    reports: list[str] = []
    with patch.object(linecache, "checkcache"):  # which debuggers ask, of all files, in each test
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=reports.append, clear_globs=clear)
    assert not reports, "".join(reports)


def run_file(path: Path, namespace: dict[str, object]) -> None:
    """Run a file whose names stand beside those of a namespace."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    vars(module).update(namespace)
    specification.loader.exec_module(module)
    namespace.update({name: value for name, value in vars(module).items() if not name.startswith("__")})


@together("name", ["wengert", *MODULES])
def test_docstring_examples(name):
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        if test.examples:  # most docstrings have none, and each test takes half a millisecond to set up
            run(test)


LONG = "docs/guides/differential-equations.md"


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.long) if p == LONG else p for p in PAGES])
def test_examples_of_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before, namespace = dict(FUNCTIONS), {}
    for number, block in enumerate(blocks_of(page)):
        name = f"{page}, block {number + 1}"
        if is_session(block):
            test = doctest.DocTestParser().get_doctest(block, namespace, name, name, 0)
            run(test, clear=False)
            namespace.update(test.globs)
        else:
            path = tmp_path / f"block_{number}.py"
            path.write_text(block)
            run_file(path, namespace)
    FUNCTIONS.update(before)  # examples enter rules for functions that have some of the library's, and for others
    own = ("wengert.", "scipy.")
    for function in [f for f, rule in FUNCTIONS.items() if not (rule.__module__ or "").startswith(own)]:
        del FUNCTIONS[function]


@together("page", PAGES)
def test_blocks_of_pages_run_or_are_no_python(page):
    languages = re.findall(r"^ *(?:```|~~~)(.*)$", (ROOT / page).read_text(), re.MULTILINE)[::2]
    assert set(languages) <= {"python", "text"}, "what is Python runs; all else is text"


def python_blocks() -> list[str]:
    """The blocks of Python in the README."""
    return blocks_of("README.md")


@pytest.mark.long
def test_the_tour_runs_when_typed_at_the_prompt():
    blocks = python_blocks()
    assert blocks, "the README has a tour"
    lines = [x.source for block in blocks for x in doctest.DocTestParser().get_examples(block) if not x.exc_msg]
    typed = "\n".join(["import warnings; warnings.simplefilter('error')\n", *lines])
    command = [sys.executable, "-i", "-q"]
    found = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, check=True)
    assert "Error" not in found.stderr, found.stderr


def test_the_readmes_file_runs_as_a_file(tmp_path):
    (block,) = [block for block in python_blocks() if not is_session(block)]
    path = tmp_path / "readme_file.py"
    path.write_text(block)
    namespace = {"wg": wengert}
    run_file(path, namespace)
    root = namespace["root"]
    assert [round(wengert.grad(root)(x), 9) for x in (4.0, 16.0)] == [0.25, 0.125]
    assert root.trace_count == 1


@together("page", PAGES)
def test_links_of_pages(page):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (ROOT / page).parent.joinpath(target).exists()] == []
    outside = [target for target in targets if "://" in target]
    assert [target for target in outside if not re.fullmatch(r"https://[a-z0-9.-]+\.[a-z]+(/[^\s<>]*)?", target)] == []


SOURCE = ROOT / "src" / "wengert"
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def code_of(page: str) -> list[str]:
    """What stands between backticks in the text of a page."""
    return CODE.findall("".join((ROOT / page).read_text().split("```")[::2]))


@together("page", sorted({*PAGES} - {"CHANGELOG.md"}))
def test_files_that_pages_name_are_there(page):
    files = [name for name in code_of(page) if re.fullmatch(r"[\w./-]+/[\w.-]+\.(pyi?|toml)|[\w-]+/([\w-]+/)*", name)]
    roots = ROOT, ROOT / "src", SOURCE
    assert [name for name in files if not any((root / name).exists() for root in roots)] == []


def named(name: str) -> object:
    """What a name with a path stands for: `traces/tape.Tape` is the class of that name in that file."""
    folder, _, last = name.rpartition("/")
    module, *attributes = last.split(".")
    found = importlib.import_module(
        ".".join(["wengert", *folder.split("/"), module]) if folder else f"wengert.{module}"
    )
    for attribute in attributes:
        found = getattr(found, attribute)
    return found


def test_names_on_the_page_about_the_architecture_are_there():
    words = {word for path in SOURCE.rglob("*.py") for word in re.findall(r"\w+", path.read_text())}
    for name in code_of("docs/architecture.md"):
        if not re.fullmatch(r"[\w./]+", name) or (SOURCE / name).exists() or (ROOT / name).exists():
            continue  # an expression, a file or a folder
        if "/" in name or (SOURCE / f"{name.partition('.')[0]}.py").exists():
            assert named(name), name
        else:
            assert words.issuperset(re.findall(r"\w+", name)), f"{name} is nowhere in the source"


def test_the_map_of_the_architecture_has_every_room():
    named_units = {word for code in code_of("docs/architecture.md") for word in re.split(r"[/.]", code)}
    units = {p.stem for p in SOURCE.iterdir() if (p / "__init__.py").exists() or p.suffix == ".py"}
    rooms = {p.parent.name for p in (SOURCE / "core").glob("*/__init__.py")}
    public = {name for name in units | rooms if not name.startswith("_")}
    assert public <= named_units, f"docs/architecture.md has no word on {public - named_units}"


WRITTEN = {f"docs/{name}.md" for name in ("benchmarks", "left-out", "public-names", "special-functions", "supported")}
"""Pages that tools write, an entry a line."""


def test_lines_of_pages_are_short():
    apart = ("|", "!", "<", "    ")  # tables, pictures, code
    long = []
    for page in sorted({*PAGES} - WRITTEN):
        blocks = (ROOT / page).read_text().split("```")[::2]
        lines = [line for block in blocks for line in block.splitlines()]
        long += [f"{page}: {line:.60}" for line in lines if len(line) > 120 and not line.startswith(apart)]
    assert not long


@together("module", public_names.MODULES)
def test_the_reference_has_every_public_name(module):
    page = reference.page(module)
    entries = set(re.findall(rf"^## .* \{{ #{re.escape(module)}\.(\w+) \}}$", page, flags=re.MULTILINE))
    others = set(re.findall(r"`(\w+)`", page.partition("## Other names")[2]))
    assert entries | others == set(importlib.import_module(module).__all__)
    assert not entries & others


def test_docstrings_in_the_reference():
    text = """
    Return x.

    Args:
        x: a number,
            or two.
        *rest: `others`.

    Returns:
        What it is.

    >>> 1 + 1
    2

    Of which more
    >>> 2
    2
    """
    assert reference.rendered(inspect.cleandoc(text)).split("\n\n") == [
        "Return x.",
        "**Arguments**",
        "- `x`: a number, or two.\n- `*rest`: `others`.",
        "**Returns**",
        "What it is.",
        "```python\n>>> 1 + 1\n2\n```",
        "Of which more",
        "```python\n>>> 2\n2\n```",
    ]


def test_names_in_full_are_links():
    text = "`wengert.grad` and `wengert.grad()`, [`wengert.grad`](x), ``` `wengert.grad` ```, `wengert.no`"
    assert reference.linked(text, {"wengert.grad": "a.md#g"}, "../") == (
        "[`wengert.grad`](../a.md#g) and [`wengert.grad`](../a.md#g), [`wengert.grad`](x), ``` `wengert.grad` ```, "
        "`wengert.no`"
    )


def public_objects() -> dict[str, object]:
    """Public functions and classes by their full names, as far as the library defines them itself."""
    found = {}
    for module in PUBLIC:
        if importlib.util.find_spec(module) is None:
            continue
        namespace = importlib.import_module(module)
        for name in namespace.__all__:
            thing = getattr(namespace, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[f"{module}.{name}"] = thing
    return found


OBJECTS = public_objects()


@together("name", OBJECTS)
def test_public_names_have_a_docstring_with_an_example(name):
    thing = OBJECTS[name]
    text = inspect.getdoc(thing) or ""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        assert text  # an example would only show it raised
        return
    assert ">>> " in text, f"{name} has no runnable example"


MIRRORED = re.compile(r"see `(numpy|scipy)\.")


@together("name", OBJECTS)
def test_docstrings_say_what_functions_take_and_return(name):
    """Functions of NumPy and SciPy point to their documentation instead."""
    thing, text = OBJECTS[name], inspect.getdoc(OBJECTS[name]) or ""
    if not inspect.isfunction(thing) or MIRRORED.search(text) or name.startswith(("wengert.numpy.", "wengert.scipy.")):
        return
    signature = inspect.signature(thing)
    assert "Args:" in text or not signature.parameters, f"{name} does not say what it takes"
    assert "Returns:" in text or signature.return_annotation in (None, "None"), f"{name} does not say what it returns"


@together("name", sorted(dir(wengert.Tensor)))
def test_public_members_of_tensor_have_a_docstring(name):
    if not name.startswith("_"):
        assert inspect.getdoc(getattr(wengert.Tensor, name)), f"Tensor.{name} has no docstring"


def test_functions_of_the_numpy_namespace_have_a_docstring():
    namespace = wengert.numpy
    functions = {name: getattr(namespace, name) for name in namespace.__all__}
    assert [name for name, f in functions.items() if inspect.isfunction(f) and not inspect.getdoc(f)] == []


def test_decision_records_are_numbered_without_gaps():
    names = sorted(path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_every_decision_record_is_listed():
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    records = (ROOT / "docs" / "adr").glob("[0-9]*.md")
    assert [record.name for record in records if f"]({record.name})" not in index] == []


def test_the_changelog_has_the_version():
    assert f"[{wengert.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_has_the_version():
    assert f"\nversion: {wengert.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_readme_begins_with_two_commands_that_do_all_the_setting_up():
    text = (ROOT / "README.md").read_text()
    commands = [line.strip() for line in text.splitlines() if line.startswith("    ")][:2]
    assert all(re.match(r"python3 -m venv \.venv\S* && .*pip install ", command) for command in commands)
    assert commands[0].endswith("wengert demo")
    assert "pytest" in commands[1]
    assert ".venv-test" in commands[1], ".ci/run finds the command by this name"


def without_rounding(text: str) -> str:
    """A text without the numbers that the last bits of a machine's functions change: errors, and many digits."""
    return re.sub(r"\d\.\de-\d\d|\d+\.\d{9,}", "#", text)


@pytest.mark.parametrize("name", make_pictures.COMMANDS)
def test_pictures_show_what_the_commands_print(name):
    svg = (make_pictures.PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    shown, printed = make_pictures.text_of(svg), make_pictures.words_of(make_pictures.COMMANDS[name])
    assert without_rounding(shown) == without_rounding(printed)


def test_pictures_of_graphs_are_as_they_are_drawn():
    for name, svg in make_pictures.graphs().items():
        assert (make_pictures.PICTURES / f"{name}.svg").read_text(encoding="utf-8") == svg
