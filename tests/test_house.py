"""What `python -m tools.house` counts: lines, files, functions, circles of imports."""

import re
from collections import Counter

from tools import house

FILES = {
    "__init__.py": "from wengert.core.values import tensor\n",
    "core/__init__.py": "",
    "core/values/__init__.py": "",
    "core/values/tensor.py": (
        "from __future__ import annotations\n\n\nclass Tensor:\n    def shape(self):\n"
        '        """Return it.\n\n        Of course.\n        """\n        from wengert.core.values import trace\n'
        "        return trace\n"
    ),
    "core/values/trace.py": "from wengert.core.values.tensor import Tensor\n\n\nclass Trace:\n    pass\n",
    "core/values/trace.pyi": "class Trace: ...\n",
}


def test_lines_and_files_of_folders():
    assert house.folders(FILES) == {".": (1, 1), "core": (0, 1), "core/values": (17, 4)}


def test_functions_are_measured_without_their_docstrings():
    assert house.functions(FILES) == [house.Function(3, "core/values/tensor.py", "shape")]


def test_participles_alone_are_found_among_names():
    names = [house.Function(1, "a.py", name) for name in ("given", "_scaled", "unbound", "seed_of", "find_given")]
    assert [function.name for function in house.participles(names)] == ["given", "_scaled", "unbound"]


def test_functions_have_verbs_and_classes_have_names_of_their_own():
    modules = {path: text for path, text in house.sources().items() if path.endswith(".py")}
    names = [
        (path, name) for path, text in modules.items() for name in re.findall(r"(?m)^ *(?:async )?def (\w+)", text)
    ]
    assert [(path, name) for path, name in names if house.is_participle(name.strip("_"))] == []
    classes = Counter(name for text in modules.values() for name in re.findall(r"(?m)^class (\w+)", text))
    assert [name for name, count in classes.items() if count > 1] == []


def test_definitions_are_found_wherever_they_stand():
    text = "if x:\n    def f():\n        with f:\n            import a\nmatch x:\n    case 1:\n        class C: ..."
    assert sorted(type(node).__name__ for node in house.statements(text)) == ["ClassDef", "FunctionDef", "Import"]


def test_late_imports_make_circles():
    graph = house.imports(FILES)
    assert graph["wengert"] == {"wengert.core.values.tensor"}
    assert house.circles(graph) == [["wengert.core.values.tensor", "wengert.core.values.trace"]]


def test_names_of_several_classes_and_files_with_a_word():
    assert house.repeated_classes(FILES) == {}
    assert house.repeated_classes(FILES | {"other.py": "class Trace: ..."}) == {"Trace": 2}
    assert house.naming(FILES, "Trace") == ["core/values/trace.py", "core/values/trace.pyi"]


def test_the_table_takes_the_place_of_the_one_that_a_page_has():
    old, new = house.table({}, {"a/b.py": "1\n"}), house.table({"a/b.py": "1\n"}, FILES)
    assert "| `a/` | 1 | 1 |  |  |\n" in new
    assert new.endswith("| all | 1 | 1 | 18 | 6 |\n")
    assert house.with_table(f"# Title\n\n{old}\nText.\n", new) == f"# Title\n\n{new}\nText.\n"


def test_the_checkout_is_what_it_looks_at(capsys, monkeypatch):
    monkeypatch.setattr(house, "PACKAGE", "src/wengert/core")  # parsing all takes seconds
    house.main(["--functions", "3"])
    printed = capsys.readouterr().out
    assert " files  values\n" in printed
    assert "longest functions:" in printed
