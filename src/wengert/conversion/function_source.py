"""From a function to the syntax tree of its definition."""

from __future__ import annotations

import ast
import copy
import linecache
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from wengert.errors import UsageError
from wengert.support.attributes import function_name

Definition: TypeAlias = "ast.FunctionDef | ast.Lambda"

_FILES: dict[str, tuple[str, dict[int, list[ast.AST]]]] = {}
MANY_FILES = 64


def conversion_error(function: Any, given: str, needed: str) -> UsageError:
    """Return the error about a function whose control flow cannot be converted."""
    name = function_name(function)
    action = "Use wengert.cond, wengert.while_loop, wengert.fori_loop or wengert.numpy.where for the decision"
    return UsageError("jit", f"{name} decides by a traced value, and {given}", needed, action)


def parse_definitions(filename: str, source: str) -> dict[int, list[ast.AST]]:
    """Return the definitions in a file by the first line of their code; a few files are remembered."""
    found = _FILES.get(filename)
    if found is None or found[0] != source:
        if len(_FILES) >= MANY_FILES:
            _FILES.clear()
        table: dict[int, list[ast.AST]] = {}
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                table.setdefault(min(x.lineno for x in (node, *node.decorator_list)), []).append(node)
            elif isinstance(node, ast.Lambda):
                table.setdefault(node.lineno, []).append(node)
        found = _FILES[filename] = (source, table)
    return found[1]


def definition_of(function: FunctionType) -> Definition:
    """Return a copy of the syntax tree of a function's definition.

    Raises:
        UsageError: the source is not there, or it is not the function's any more.
    """
    code = function.__code__
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not source:
        raise conversion_error(
            function,
            "its source is not available",
            "a function in a file is needed to convert it, or Python 3.13, which keeps what is typed at the prompt",
        )
    try:
        candidates = parse_definitions(code.co_filename, source).get(code.co_firstlineno, [])
    except SyntaxError as error:
        raise conversion_error(
            function, f"its file cannot be parsed ({error})", "the source as it was loaded is needed"
        ) from error
    matching = [node for node in candidates if has_signature(node, code)]
    if len(matching) > 1:
        matching = sorted((node for node in matching if contains_code(node, code)), key=extent)
    if not matching:
        raise conversion_error(
            function, f"its source in {code.co_filename} has changed", "the source as it was loaded is needed"
        )
    found = copy.deepcopy(matching[0])
    assert isinstance(found, ast.FunctionDef | ast.Lambda)
    return found


def has_signature(node: ast.AST, code: CodeType) -> bool:
    """Tell whether a definition has the name and the parameters of a code object."""
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return False
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    own = [mangle(x, code) for x in names]
    return name == code.co_name and list(code.co_varnames[:count]) in (names, own)


def mangle(name: str, code: CodeType) -> str:
    """Return a parameter's name as Python has it inside of a class."""
    parts = code.co_qualname.split(".")
    if len(parts) < 2 or not name.startswith("__") or name.endswith("__"):
        return name
    return f"_{parts[-2].lstrip('_')}{name}"


def contains_code(node: ast.AST, code: CodeType) -> bool:
    """Tell whether the body of a lambda has all the instructions of a code object."""
    if not isinstance(node, ast.Lambda):
        return True
    body = node.body
    first, last = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    places = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and end_line is not None and column is not None and end_column  # others have no place
    ]
    return all(first <= start and end <= last for start, end in places)


def extent(node: ast.AST) -> tuple[int, int]:
    """Return how much source a lambda covers: of two nested ones, the inner comes first."""
    assert isinstance(node, ast.FunctionDef | ast.Lambda)
    lines = (node.end_lineno or node.lineno) - node.lineno
    return lines, (node.end_col_offset or 0) - (0 if lines else node.col_offset)
