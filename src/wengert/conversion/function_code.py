"""From a rewritten syntax tree to a function.

The tree is compiled under the name of the user's file, with his lines and columns. The code object of the function
is taken out of the compiled module and bound to the globals, defaults and closure cells of the original, so nothing
is executed, no file is written, and tracebacks show the user's own lines.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from wengert.control.variable_places import HIDDEN, OPERATIONS
from wengert.conversion.syntax_nodes import function_of_statements, parameters
from wengert.support.attributes import with_closure
from wengert.support.weak_identity_map import WeakIdentityMap

FEATURES = 0
for _name in __future__.all_feature_names:
    FEATURES |= getattr(__future__, _name).compiler_flag

_CONVERTED: WeakIdentityMap[CodeType, None] = WeakIdentityMap()


def compile_definition(node: ast.FunctionDef, original: CodeType) -> CodeType:
    """Return the code of a rewritten function.

    Args:
        node: its definition; its free names may be those of the original, and `OPERATIONS`.
        original: the code before.
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

    Args:
        function: the original.
        code: its converted code.
        operations: what `OPERATIONS` stands for.
        cells: closure cells for the original's free variables.
    """
    known = dict(zip(function.__code__.co_freevars, cells, strict=True))
    known[OPERATIONS] = CellType(operations)
    return with_closure(function, [known[name] for name in code.co_freevars], code)
