"""From a function to the syntax tree of its definition, and back: a rewritten tree as the function's code."""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import threading
from collections.abc import Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

from wengert.control.variable_places import HIDDEN, OPERATIONS
from wengert.conversion.syntax_nodes import function_of_statements, parameters
from wengert.errors import UsageError
from wengert.support.attributes import function_name, with_closure
from wengert.support.caches import WeakIdentityMap
from wengert.support.fork_safety import hold_in_forks

Definition: TypeAlias = "ast.FunctionDef | ast.Lambda"

_FILES: dict[str, tuple[str, dict[int, list[ast.AST]]]] = {}
MANY_FILES = 64
PARSING = threading.RLock()
"""Held while a file is parsed: CPython 3.11 counts the depth of trees for all threads together, and fails by that."""
hold_in_forks(PARSING)


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
        with PARSING:
            tree = ast.parse(source)
        for node in ast.walk(tree):
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


FEATURES = 0
for _name in __future__.all_feature_names:
    FEATURES |= getattr(__future__, _name).compiler_flag

_CONVERTED: WeakIdentityMap[CodeType, None] = WeakIdentityMap()


def compile_definition(node: ast.FunctionDef, original: CodeType) -> CodeType:
    """Return the code of a rewritten function.

    Free names of its definition may be those of the original, and `OPERATIONS`.
    """
    free = parameters(*original.co_freevars, OPERATIONS)
    module = ast.Module([function_of_statements(f"{HIDDEN}factory_", free, [node], node)], [])
    code = compile(
        ast.fix_missing_locations(module),
        original.co_filename,
        "exec",
        flags=original.co_flags & FEATURES,
        dont_inherit=True,
    )
    outer = next(x for x in code.co_consts if isinstance(x, CodeType))
    inner = next(x for x in outer.co_consts if isinstance(x, CodeType))
    return remember(rename_code(inner, original.co_name, original.co_qualname))


def rename_code(code: CodeType, name: str, qualname: str) -> CodeType:
    """Return code with the names of the original; what conversion added goes by the name of its surroundings."""
    constants: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = constant.co_name
            if inner.startswith(HIDDEN) or HIDDEN in constant.co_varnames:
                constant = rename_code(constant, name, qualname)
            else:
                constant = rename_code(constant, inner, f"{qualname}.<locals>.{inner}")
        constants.append(constant)
    return code.replace(co_consts=tuple(constants), co_name=name, co_qualname=qualname)


def remember(code: CodeType) -> CodeType:
    """Note that code, with the functions inside, has been converted."""
    _CONVERTED[code] = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            remember(constant)
    return code


def is_converted(code: CodeType) -> bool:
    """Tell whether code is the result of a conversion."""
    return code in _CONVERTED


def bind_code(function: FunctionType, code: CodeType, operations: Any, cells: Sequence[CellType]) -> FunctionType:
    """Return converted code as a function with everything else of the original.

    `operations` is what `OPERATIONS` stands for; `cells` are for the original's free variables.
    """
    known = dict(zip(function.__code__.co_freevars, cells, strict=True))
    known[OPERATIONS] = CellType(operations)
    return with_closure(function, [known[name] for name in code.co_freevars], code)
