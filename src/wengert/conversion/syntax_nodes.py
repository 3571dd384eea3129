"""Nodes of Python's syntax: asked about, and made."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

Located = TypeVar("Located", bound=ast.AST)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)


def is_generator(node: ast.AST) -> bool:
    """Tell whether a definition is one of a generator."""
    return isinstance(node, ast.FunctionDef) and any(isinstance(x, ast.Yield | ast.YieldFrom) for x in own_nodes(node))


def stays_unconverted(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a definition is not rewritten: a coroutine, or a generator that yields where errors are handled.

    While such a generator is suspended, what its caller raises would count as handled.
    """
    if isinstance(node, ast.AsyncFunctionDef):
        return True
    handling = (x for x in own_nodes(node) if isinstance(x, ast.With | ast.Try) or type(x).__name__ == "TryStar")
    return any(isinstance(x, ast.Yield | ast.YieldFrom) for statement in handling for x in own_nodes(statement))


def loop_exits(statements: Sequence[ast.stmt]) -> Iterator[ast.Break | ast.Continue]:
    """Yield the `break` and `continue` inside statements that belong to a loop around them."""
    queue: list[ast.AST] = list(statements)
    while queue:
        inner = queue.pop()
        if isinstance(inner, ast.Break | ast.Continue):
            yield inner
        elif isinstance(inner, ast.While | ast.For | ast.AsyncFor):
            queue += inner.orelse
        elif not isinstance(inner, DEFINITIONS):
            queue += ast.iter_child_nodes(inner)


def own_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the nodes inside a definition that are not inside of a nested one."""
    found: list[ast.AST] = []
    queue = list(ast.iter_child_nodes(node))
    while queue:
        inner = queue.pop()
        found.append(inner)
        if not isinstance(inner, DEFINITIONS):
            queue += ast.iter_child_nodes(inner)
    return found


def returns_inside(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether a return stands inside a branch or loop, which will be a function of its own."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inside = any(isinstance(x, ast.Return) for x in own_nodes(statement))
        if isinstance(statement, ast.If | ast.While | ast.For):
            if inside:
                return True
        elif inside:
            inner = [x for x in own_nodes(statement) if isinstance(x, ast.If | ast.While | ast.For)]
            if returns_inside([x for x in inner if isinstance(x, ast.stmt)]) or len(statements) > 1:
                return True
    return False


def locate(node: Located, place: ast.AST) -> Located:
    """Return a new node at the position of an old one."""
    return ast.copy_location(node, place)


def function_of_statements(name: str, args: ast.arguments, body: list[ast.stmt], place: ast.AST) -> ast.FunctionDef:
    """Return the definition of a function without decorators and annotations, at the position of a node."""
    found = ast.FunctionDef(name=name, args=args, body=body, decorator_list=[], returns=None)
    if "type_params" in ast.FunctionDef._fields:
        found.type_params = []  # type: ignore[attr-defined,unused-ignore]  # since Python 3.12
    return locate(found, place)


def parameters(*names: str) -> ast.arguments:
    """Return parameters of these names."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def constant(value: Any) -> ast.expr:
    """Return a constant; tuples of constants are allowed, too."""
    return ast.Constant(value)


def name_node(name: str, place: ast.AST, context: ast.expr_context | None = None) -> ast.Name:
    """Return a name at the position of a node."""
    found: ast.Name = locate(ast.Name(name, context or ast.Load()), place)
    return found


def set_flag(name: str, value: bool, place: ast.AST) -> ast.stmt:
    """Return the statement that sets a flag."""
    found: ast.stmt = locate(
        ast.Assign([name_node(name, place, ast.Store())], locate(ast.Constant(value), place)), place
    )
    return found
