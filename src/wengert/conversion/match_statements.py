"""`match` as `if`: traced values may decide guards, and be compared with the numbers of patterns.

Patterns that look inside of their subject stay Python's: what has no numbers yet has lengths and types all the same.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from numbers import Number
from typing import Any

from wengert.control.variable_places import HIDDEN
from wengert.conversion.syntax_nodes import locate, name_node

SUBJECT, MATCHED = f"{HIDDEN}subject_", f"{HIDDEN}matched_"


class MatchRewriter(ast.NodeTransformer):
    """Replace the `match` statements of a definition about which a traced value may decide."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def visit_Match(self, node: ast.Match) -> Any:
        """Replace a statement with guards, or numbers as patterns; leave others, which no traced value decides."""
        self.generic_visit(node)
        if not any(case.guard is not None or is_compared(compared_part(case)[0]) for case in node.cases):
            return node
        number = next(self.numbers)
        subject, matched = f"{SUBJECT}{number}", f"{MATCHED}{number}"
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            rest = replaced_case(case, rest, subject, matched)
        return [assign(subject, node.subject, node), *rest]


def assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    """Return an assignment to a name."""
    return locate(ast.Assign([name_node(name, place, ast.Store())], value), place)


def is_compared(pattern: ast.pattern) -> bool:
    """Tell whether the subject is compared with a pattern: a number, truth, None, dotted name, or several."""
    if isinstance(pattern, ast.MatchOr):
        return all(map(is_compared, pattern.patterns))
    if isinstance(pattern, ast.MatchSingleton):
        return True
    if not isinstance(pattern, ast.MatchValue):
        return False
    return not isinstance(pattern.value, ast.Constant) or isinstance(pattern.value.value, Number)


def compared_part(case: ast.match_case) -> tuple[ast.pattern, str | None]:
    """Return a pattern without the name that it gives its subject, `1` and `n` of `case 1 as n`, and that name.

    A guard would need the name before it is known whether the pattern fits: such a pattern stays as it is.
    """
    pattern = case.pattern
    inner = pattern.pattern if isinstance(pattern, ast.MatchAs) and case.guard is None else None
    if isinstance(pattern, ast.MatchAs) and inner is not None and is_compared(inner):
        return inner, pattern.name
    return pattern, None


def comparison(pattern: ast.pattern, subject: str) -> ast.expr:
    """Return whether the subject is equal to a pattern that it is compared with."""
    name = name_node(subject, pattern)
    if isinstance(pattern, ast.MatchOr):
        return locate(ast.BoolOp(ast.Or(), [comparison(x, subject) for x in pattern.patterns]), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        return locate(ast.Compare(name, [ast.Is()], [locate(ast.Constant(pattern.value), pattern)]), pattern)
    assert isinstance(pattern, ast.MatchValue)
    return locate(ast.Compare(name, [ast.Eq()], [pattern.value]), pattern)


def replaced_case(case: ast.match_case, rest: list[ast.stmt], subject: str, matched: str) -> list[ast.stmt]:
    """Return what stands for a case and those that follow it, the `rest`."""
    (pattern, name), place = compared_part(case), case.pattern
    body = case.body if name is None else [assign(name, name_node(subject, place), place), *case.body]
    before: Sequence[ast.stmt] = ()
    tests: list[ast.expr] = []
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        before = [] if pattern.name is None else [assign(pattern.name, name_node(subject, place), place)]
    elif is_compared(pattern):
        tests = [comparison(pattern, subject)]
    else:
        no, yes = (assign(matched, locate(ast.Constant(truth), place), place) for truth in (False, True))
        asked = ast.Match(name_node(subject, place), [ast.match_case(pattern, None, [yes])])
        before, tests = [no, locate(asked, place)], [name_node(matched, place)]
    tests += [] if case.guard is None else [case.guard]
    if not tests:
        return [*before, *body]
    test = tests[0] if len(tests) == 1 else locate(ast.BoolOp(ast.And(), tests), place)
    return [*before, locate(ast.If(test, body, rest), place)]
