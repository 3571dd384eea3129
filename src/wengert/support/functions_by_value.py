"""Functions that go to another process by value, as cloudpickle sends those of `__main__`: with the source they need.

The other process has not got what a script or notebook defines, so functions under its names are sent as what they are
made of. cloudpickle forgets which file code is of. The statements that define the functions go along, so that control
flow is converted there, and errors show lines, as here.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeAlias

from wengert.support.digests import digest_of
from wengert.support.function_contents import reach, variables_of
from wengert.support.function_protocol import LikeFunction, global_name

Key: TypeAlias = tuple[str, int]
"""What tells functions apart: the qualified name, and the first line."""
Files: TypeAlias = "dict[str, dict[int, str]]"
"""Statements by their first lines, by the names of their files."""
MANY = 300
"""Functions whose source is sent at most."""


def reduce_function(value: Any, build: Callable[..., Any], parts: tuple[Any, ...]) -> Any:
    """Return what pickle wants to know of something like a function: its name in a module, or what it is made of.

    Args:
        value: the function.
        build: what makes it again.
        parts: what of.
    """
    name = global_name(value)
    by_cloudpickle = asks_cloudpickle()
    if name and not (by_cloudpickle and is_sent_by_value(value)):
        return name
    if not by_cloudpickle:
        return build, parts
    places, files = sources_of(reachable_functions(parts))
    return rebuild_function, (build, parts, places, files)


def asks_cloudpickle() -> bool:
    """Tell whether it is cloudpickle that asks: pickle calls from machine code, so the next frame is who called it."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("wengert."):
        frame = frame.f_back
    return frame is not None and "cloudpickle" in frame.f_globals.get("__name__", "").split(".")


def is_sent_by_value(function: Any) -> bool:
    """Tell whether cloudpickle sends a function as what it is made of: no other process can import its module."""
    module = getattr(function, "__module__", None)
    if module is None or module == "__main__" or module not in sys.modules or global_name(function) is None:
        return True
    listed: Iterable[str] = getattr(sys.modules.get("cloudpickle"), "list_registry_pickle_by_value", frozenset)()
    return any(module == name or module.startswith(f"{name}.") for name in listed)


def reachable_functions(parts: Iterable[Any]) -> list[FunctionType]:
    """Return the functions sent by value among some values, and those that these name, hold, or call methods of."""

    def inside(value: Any) -> Iterable[Any]:
        if isinstance(value, FunctionType):
            return [x for _, x in variables_of(value)] if is_sent_by_value(value) else ()
        if isinstance(value, MethodType):
            return value.__func__, type(value.__self__)
        if isinstance(value, functools.partial) and not isinstance(value, LikeFunction):  # these send their own
            return value.func, *value.args
        if isinstance(value, type) and is_sent_by_value(value):
            return vars(value).values()
        return value if isinstance(value, tuple | list) else ()

    functions = (x for x in reach(parts, inside) if isinstance(x, FunctionType) and is_sent_by_value(x))
    return list(islice(functions, MANY))


def sources_of(functions: Sequence[FunctionType]) -> tuple[dict[Key, str], Files]:
    """Return the files of functions, and of each file the statements, of no other one, that functions are part of."""
    places: dict[Key, str] = {}
    files: Files = {}
    for function in functions:
        code = function.__code__
        lines = linecache.getlines(code.co_filename, function.__globals__)
        if lines:
            places[key_of(code)] = code.co_filename
            first, last = extent_of(code.co_filename, "".join(lines), code.co_firstlineno)
            files.setdefault(code.co_filename, {})[first] = "".join(lines[first - 1 : last])
    return places, files


def key_of(code: CodeType) -> Key:
    """Return what tells a function apart from others of a file."""
    return code.co_qualname, code.co_firstlineno


@functools.lru_cache(8)
def statement_extents(_filename: str, source: str) -> list[tuple[int, int]]:
    """Return the first and last lines of the statements of a file; nothing if it cannot be parsed."""
    import ast  # which only sending needs

    try:
        body = ast.parse(source).body
    except SyntaxError:
        return []
    return [
        (min(x.lineno for x in (node, *getattr(node, "decorator_list", ()))), node.end_lineno or node.lineno)
        for node in body
    ]


def extent_of(filename: str, source: str, line: int) -> tuple[int, int]:
    """Return the first and last lines of the statement of a file that a line is part of."""
    return next((x for x in statement_extents(filename, source) if x[0] <= line <= x[1]), (line, line))


def rebuild_function(build: Callable[..., Any], parts: tuple[Any, ...], places: dict[Key, str], files: Files) -> Any:
    """Return something like a function of its parts, whose code and the code they use get their files back."""
    names = {name: enter_source(name, statements) for name, statements in files.items()}
    for function in reachable_functions(parts):
        place = places.get(key_of(function.__code__))
        if place is not None and not linecache.getlines(function.__code__.co_filename):
            function.__code__ = code_of_file(function.__code__, names[place])
    return build(*parts)


def enter_source(filename: str, statements: dict[int, str]) -> str:
    r"""Let a file have some statements at their lines; return its name, another one where something else is there.

    >>> for statement in ("x = 1\n", "x = 1\n", "y = 2\n"):
    ...     name = enter_source("/nowhere.py", {2: statement})
    ...     name.partition(" ")[0], linecache.getlines(name)
    ('/nowhere.py', ['\n', 'x = 1\n'])
    ('/nowhere.py', ['\n', 'x = 1\n'])
    ('</nowhere.py', ['\n', 'y = 2\n'])
    """
    own = {first: statement.splitlines(keepends=True) for first, statement in statements.items()}
    lines = linecache.getlines(filename)
    if any(is_other(lines[first - 1 : first - 1 + len(rows)], rows) for first, rows in own.items()):
        filename = f"<{filename} {digest_of(repr(statements).encode()).hex()[:12]}>"
        lines = linecache.getlines(filename)
    if all(lines[first - 1 : first - 1 + len(rows)] == rows for first, rows in own.items()):
        return filename
    lines = [*lines, *["\n"] * (max(first + len(rows) for first, rows in own.items()) - 1 - len(lines))]
    for first, rows in own.items():
        lines[first - 1 : first - 1 + len(rows)] = rows
    linecache.cache[filename] = sum(map(len, lines)), None, lines, filename  # which nothing reads again
    return filename


def is_other(lines: Sequence[str], rows: Sequence[str]) -> bool:
    """Tell whether a file has something else in the place of some lines."""
    return any(line not in ("\n", row) for line, row in zip(lines, rows, strict=False))


def code_of_file(code: CodeType, filename: str) -> CodeType:
    """Return code, and what is inside of it, as code of a file."""
    constants = tuple([code_of_file(x, filename) if isinstance(x, CodeType) else x for x in code.co_consts])
    return code.replace(co_filename=filename, co_consts=constants)
