"""Print how large the rooms of the code are, its longest functions, and circles of imports.

`python -m tools.house` looks at the checkout; `--commit NAME` at another state of the repository, which takes git;
`--since COMMIT` prints a table of lines and files of each folder at that commit and now, and with `--page` writes it
into the decision record about the house. Lines and files are those of Python and its stubs; a function's lines are
those without its docstring; imports count wherever they stand, in functions and for type checkers, too.
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import posixpath
import re
import subprocess
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "Function",
    "circles",
    "folders",
    "functions",
    "imports",
    "naming",
    "participles",
    "repeated_classes",
    "sources",
    "statements",
    "table",
]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/wengert"
PAGE = "docs/adr/*-the-house.md"
"""The decision record that has the table."""
HEAD = "| folder | lines before | files before | lines | files |\n|---|--:|--:|--:|--:|\n"
IRREGULAR = re.compile(
    "(mis|over|re|un)?(begun|bound|broken|built|chosen|done|drawn|found|frozen|given|gone|held|hidden|kept|known|laid|left"
    "|made|met|seen|shapen|swept|taken|told|written)"
)
"""Participles that do not end in -ed, and are no verbs either."""
VERBS = re.compile(
    "embed|feed|need|seed|speed|succeed|reversed|searchsorted|aligned|clipped|factorized|labelled|placed|skipped"
)
"""Words that end in -ed and are none, or are the names of Python's protocols, NumPy's functions and public names."""
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of statements that hold statements, or what these stand in."""
Sources = Mapping[str, str]
"""The texts of files by their paths below the package."""


class Function(NamedTuple):
    """Hold how long a function is without its docstring, and where it stands."""

    lines: int
    path: str
    name: str


def sources(commit: str = "") -> dict[str, str]:
    """Return the files of the package, those of the checkout if no commit is given."""
    if not commit:
        folder = ROOT / PACKAGE
        return {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(folder.rglob("*.py*"))
            if path.suffix in (".py", ".pyi")
        }
    listed = git("ls-tree", "-r", "--name-only", commit, PACKAGE).splitlines()
    paths = [path for path in listed if path.endswith((".py", ".pyi"))]
    return {path.removeprefix(f"{PACKAGE}/"): git("show", f"{commit}:{path}") for path in paths}


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=True, text=True).stdout


def folders(files: Sources) -> dict[str, tuple[int, int]]:
    """Return the lines and the number of files of each folder, those of the folders inside of it apart."""
    found: dict[str, tuple[int, int]] = {}
    for path, text in files.items():
        folder = posixpath.dirname(path) or "."
        lines, count = found.get(folder, (0, 0))
        found[folder] = lines + text.count("\n"), count + 1
    return dict(sorted(found.items()))


@functools.cache
def statements(text: str) -> list[ast.stmt]:
    """Return the definitions and imports of a file, wherever they stand; expressions have none and are passed by.

    Definitions keep their first statement alone: each garbage collection would go through the trees of all files.
    """
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        for child in itertools.chain.from_iterable(getattr(node, name, ()) for name in BLOCKS):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
                found.append(child)
            waiting.append(child)
    for definition in found:
        del getattr(definition, "body", [])[1:]
    return found


def functions(files: Sources) -> list[Function]:
    """Return all functions, the longest first."""
    found = []
    for path, text in files.items():
        for node in statements(text):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(Function(length(node), path, node.name))
    return sorted(found, reverse=True)


def participles(found: Sequence[Function]) -> list[Function]:
    """Return the functions that are named by a participle alone, which does not say what they do."""
    return [function for function in found if is_participle(function.name.strip("_"))]


def is_participle(word: str) -> bool:
    """Tell whether a name is a participle, and nothing besides."""
    if IRREGULAR.fullmatch(word) is not None:
        return True
    return word.endswith("ed") and "_" not in word and VERBS.fullmatch(word) is None


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    first, last = node.body[0], node.end_lineno
    assert last is not None
    documented = (first.end_lineno or first.lineno) - first.lineno + 1 if ast.get_docstring(node, clean=False) else 0
    return last - node.lineno + 1 - documented


def imports(files: Sources) -> dict[str, set[str]]:
    """Return which modules of the package each module imports, wherever the statement stands."""
    modules = {module_of(path): path for path in files if path.endswith(".py")}
    return {
        module: {name for node in statements(files[path]) for name in imported(node, modules)}
        for module, path in modules.items()
    }


def module_of(path: str) -> str:
    """Return the full name of the module in a file."""
    return ("wengert/" + path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(node: ast.stmt, modules: Container[str]) -> Iterator[str]:
    """Yield the modules, of those given, that a statement imports or takes names from."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    elif isinstance(node, ast.ImportFrom) and (base := node.module) is not None and base in modules:
        names = [f"{base}.{alias.name}" for alias in node.names]
        yield from (name if name in modules else base for name in names)


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the modules that import each other, by whatever way round, the largest circle first."""
    found, seen = [], set[str]()
    reached = {module: reach(graph, module) for module in graph}
    for module in graph:
        if module not in seen and module in reached[module]:
            circle = sorted(other for other in reached[module] if module in reached[other])
            seen.update(circle)
            found.append(circle)
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def reach(graph: Mapping[str, set[str]], module: str) -> set[str]:
    """Return the modules that a module imports, and those that these do."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        news = graph[waiting.pop()] - found
        found |= news
        waiting += news
    return found


def repeated_classes(files: Sources) -> dict[str, int]:
    """Return the names that more than one class has, and how many have them; stubs say again what there is."""
    named = (node for path, text in files.items() if path.endswith(".py") for node in statements(text))
    names = Counter(node.name for node in named if isinstance(node, ast.ClassDef))
    return {name: count for name, count in names.most_common() if count > 1}


def naming(files: Sources, word: str) -> list[str]:
    """Return the files that have a word."""
    return [path for path, text in files.items() if re.search(rf"\b{re.escape(word)}\b", text)]


def table(before: Sources, now: Sources) -> str:
    """Return a table of the folders, as they were and as they are."""
    one, other = folders(before), folders(now)
    rows = [(name, [*one.get(name, (0, 0)), *other.get(name, (0, 0))]) for name in sorted({*one, *other})]
    totals = [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]
    lines = [line("(root)" if name == "." else f"`{name}/`", numbers) for name, numbers in rows]
    return HEAD + "".join([*lines, line("all", totals)])


def line(name: str, numbers: Sequence[int]) -> str:
    """Return a row of the table; what is not there is left out."""
    return f"| {name} | " + " | ".join(f"{n:,}" if n else "" for n in numbers) + " |\n"


def with_table(page: str, text: str) -> str:
    """Return the page with another table in the place of the one that it has."""
    before, _, rest = page.partition(HEAD)
    lines = rest.splitlines(keepends=True)
    count = next((i for i, row in enumerate(lines) if not row.startswith("|")), len(lines))
    return before + text + "".join(lines[count:])


def summary(files: Sources, most: int) -> str:
    """Return what the command prints of one state."""
    sizes = folders(files)
    rows = [f"{lines:7,} lines {count:4} files  {name}" for name, (lines, count) in sizes.items()]
    rows.append(f"{sum(x for x, _ in sizes.values()):7,} lines {len(files):4} files")
    rows += ["", "longest functions:"]
    found = functions(files)
    rows += [f"{lines:5}  {path}: {name}" for lines, path, name in found[:most]]
    rows += ["", "circles of imports:"]
    rows += [
        f"{len(circle):5}  {', '.join(x.removeprefix('wengert.') for x in circle[:8])}{' ...' * (len(circle) > 8)}"
        for circle in circles(imports(files))
    ]
    rows += ["", f"functions named by a participle alone: {len(participles(found))}"]
    rows += [f"names of several classes: {repeated_classes(files)}"]
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the facts, or the table of folders."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commit", default="", help="look at this state instead of the checkout")
    parser.add_argument("--since", default="", help="print lines and files of each folder then and now")
    parser.add_argument("--page", action="store_true", help="write that table into the decision record")
    parser.add_argument("--functions", type=int, default=30, help="how many of the longest functions are listed")
    parser.add_argument("--named", default="", help="print the files that have these words instead, as cbrt,tanh")
    options = parser.parse_args(arguments)
    now = sources(options.commit)
    if options.named:
        for word in options.named.split(","):
            paths = naming(now, word)
            print(f"{word}, {len(paths)} files: {', '.join(paths)}")
        return
    if not options.since:
        print(summary(now, options.functions))
        return
    text = table(sources(options.since), now)
    if options.page:
        (page,) = ROOT.glob(PAGE)
        page.write_text(with_table(page.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
