"""Nodes of Python's syntax: asked about, and made."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

__all__ = [
    "SUSPENDING",
    "constant",
    "exits_loop",
    "is_generator",
    "locate",
    "name_node",
    "own_nodes",
    "returns_inside",
    "set_flag",
    "stays_unconverted",
]

Located = TypeVar("Located", bound=ast.AST)
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


def exits_loop(node: ast.stmt) -> bool:
    """Tell whether a `break` or `continue` inside a statement belongs to a loop around it."""
    queue: list[ast.AST] = [node]
    while queue:
        inner = queue.pop()
        if isinstance(inner, ast.Break | ast.Continue):
            return True
        if isinstance(inner, ast.While | ast.For | ast.AsyncFor):
            queue += inner.orelse
        elif not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue += ast.iter_child_nodes(inner)
    return False


def own_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the nodes inside a definition that are not inside of a nested one."""
    found: list[ast.AST] = []
    queue = list(ast.iter_child_nodes(node))
    while queue:
        inner = queue.pop()
        found.append(inner)
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
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
