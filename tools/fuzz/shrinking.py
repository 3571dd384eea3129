"""Make a failing program smaller: take statements away and put parts of expressions in their place."""

from __future__ import annotations

import ast
import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

from tools.fuzz.programs import Program

__all__ = ["pruned", "shrunk"]

NEEDED = ("program", "loss", "nested")
SECONDS = 30
SIMPLE = ("x", "y", "s", "0.5")
NO_EXPRESSIONS = (ast.Slice, ast.Starred, ast.FormattedValue)

Path = tuple[tuple[str, int | None], ...]
Edit = tuple[Path, str, Any]  # a node, one of its fields, and the field's new value


def shrunk(program: Program, fails: Callable[[Program], bool], budget: int = 300) -> Program:
    """Return a smaller program that fails as well; `budget` bounds how many are tried, and the seconds spent."""
    program, position, start = pruned(program), 0, time.process_time()
    while True:
        found = list(edits(ast.parse(program.source)))
        for k in range(len(found)):
            i = (position + k) % len(found)  # goes on where the last one was found, and ends after a round
            attempt = edited(program, found[i])
            if len(attempt.source) >= len(program.source):
                continue
            if budget == 0 or time.process_time() - start > SECONDS:
                return program
            budget -= 1
            if fails(attempt):
                program, position = pruned(attempt), i
                break
        else:
            return program


def pruned(program: Program) -> Program:
    """Return a program without definitions that nothing uses."""
    tree = ast.parse(program.source)
    while True:
        used = set().union(*(loaded_by(statement) - defined(statement) for statement in tree.body))
        kept = [statement for statement in tree.body if not defined(statement) or defined(statement) & used]
        if len(kept) == len(tree.body):
            return dataclasses.replace(program, source=ast.unparse(tree) + "\n")
        tree.body = kept


def loaded_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement uses."""
    return {x.id for x in ast.walk(statement) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load)}


def defined(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of the module defines, if it may be left out where they are not used."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name} - set(NEEDED)
    if isinstance(statement, ast.Import):
        return {name.name for name in statement.names} - {"numpy", "wengert"}
    if isinstance(statement, ast.Assign):
        return {name.id for name in ast.walk(statement.targets[0]) if isinstance(name, ast.Name)}
    return set()


def edited(program: Program, edit: Edit) -> Program:
    """Return a program after an edit."""
    path, name, value = edit
    tree = ast.parse(program.source)
    node: Any = tree
    for field, index in path:
        node = getattr(node, field) if index is None else getattr(node, field)[index]
    setattr(node, name, value)
    return dataclasses.replace(program, source=ast.unparse(tree) + "\n")


def edits(tree: ast.Module) -> Iterator[Edit]:
    """Return what may make a program smaller: first without statements, then with simpler expressions."""
    nodes = list(walked(tree))
    for path, node in nodes:
        for name in ("body", "orelse"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and path:
                yield from shorter(path, name, statements)
    place = next(i for i, s in enumerate(tree.body) if isinstance(s, ast.FunctionDef) and s.name == "program")
    for path, node in nodes:
        if path[:1] == (("body", place),) and path[1:2] != (("body", 0),):
            yield from simplified(path, node)


def shorter(path: Path, name: str, statements: list[ast.stmt]) -> Iterator[Edit]:
    """Return edits that leave a statement out, or put what it holds in its place."""
    for i, statement in reversed(list(enumerate(statements))):
        before, after = statements[:i], statements[i + 1 :]
        if not isinstance(statement, ast.Return):
            yield path, name, [*before, *after] or ([ast.Pass()] if name == "body" else [])
        if isinstance(statement, ast.If | ast.For | ast.While | ast.Try | ast.With):
            for inner in (statement.body, getattr(statement, "orelse", [])):
                yield path, name, [*before, *inner, *after] or [ast.Pass()]


def simplified(path: Path, node: ast.AST) -> Iterator[Edit]:
    """Return edits that put something simpler in the place of each expression of a node."""
    if isinstance(node, ast.JoinedStr):  # its parts are no expressions
        return
    for name, value in ast.iter_fields(node):
        items = value if isinstance(value, list) else [value]
        for i, item in enumerate(items):
            if not isinstance(item, ast.expr) or isinstance(getattr(item, "ctx", None), ast.Store):
                continue
            if isinstance(node, ast.Tuple) and len(items) > 1:
                yield path, name, [*items[:i], *items[i + 1 :]]
            if isinstance(node, ast.Return) and isinstance(item, ast.Tuple):
                continue
            for part in simpler(item, name == "func", isinstance(node, ast.Subscript | ast.Attribute)):
                yield path, name, [*items[:i], part, *items[i + 1 :]] if isinstance(value, list) else part


def simpler(expression: ast.expr, called: bool, taken_from: bool) -> Iterator[ast.expr]:
    """Return expressions to try in the place of another: names, a number, and what it consists of."""
    if not called and not isinstance(expression, ast.Name | ast.Constant | ast.Lambda | ast.Slice):
        for text in SIMPLE[: 3 if taken_from else 4]:
            yield ast.parse(text, mode="eval").body
    for part in ast.walk(expression):
        if isinstance(part, ast.expr) and part is not expression and not isinstance(part, NO_EXPRESSIONS):
            yield part


def walked(node: ast.AST, path: Path = ()) -> Iterator[tuple[Path, ast.AST]]:
    """Return all nodes with their paths from the module, outer ones first."""
    yield path, node
    for name, value in ast.iter_fields(node):
        for i, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, ast.AST):
                yield from walked(item, (*path, (name, i if isinstance(value, list) else None)))
