"""`match` as `if`: traced values may decide guards, and be compared with the numbers of patterns.

Patterns that look inside of their subject stay Python's: what has no numbers yet has lengths and types all the same.
"""

from __future__ import annotations

import ast
import itertools
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
        if not any(case.guard is not None or is_compared(compared_part(case.pattern)[0]) for case in node.cases):
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
    """Tell whether the subject is compared with a pattern: a number, truth, None, dotted name, class, or several."""
    if isinstance(pattern, ast.MatchOr):
        return all(map(is_compared, pattern.patterns))
    if isinstance(pattern, ast.MatchSingleton):
        return True
    if isinstance(pattern, ast.MatchClass):
        return not pattern.patterns and not pattern.kwd_patterns
    if not isinstance(pattern, ast.MatchValue):
        return False
    return not isinstance(pattern.value, ast.Constant) or isinstance(pattern.value.value, Number)


def compared_part(pattern: ast.pattern) -> tuple[ast.pattern, str | None]:
    """Return a pattern without the name that it gives its subject, `1` and `n` of `case 1 as n`, and that name.

    `case int(n)` means `case int() as n`.
    """
    match pattern:
        case ast.MatchAs(ast.pattern() as inner, name) if is_compared(inner):
            return inner, name
        case ast.MatchClass(ast.Name("int" | "bool"), [ast.MatchAs(None, name)], [], []):
            return locate(ast.MatchClass(pattern.cls, [], [], []), pattern), name
    return pattern, None


def comparison(pattern: ast.pattern, subject: str) -> ast.expr:
    """Return whether the subject is equal to a pattern that it is compared with."""
    name = name_node(subject, pattern)
    if isinstance(pattern, ast.MatchOr):
        return locate(ast.BoolOp(ast.Or(), [comparison(x, subject) for x in pattern.patterns]), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        return locate(ast.Compare(name, [ast.Is()], [locate(ast.Constant(pattern.value), pattern)]), pattern)
    if isinstance(pattern, ast.MatchClass):
        return locate(ast.Call(name_node("isinstance", pattern), [name, pattern.cls], []), pattern)
    assert isinstance(pattern, ast.MatchValue)
    return locate(ast.Compare(name, [ast.Eq()], [pattern.value]), pattern)


def replaced_case(case: ast.match_case, rest: list[ast.stmt], subject: str, matched: str) -> list[ast.stmt]:
    """Return what stands for a case and those that follow it, the `rest`."""
    (pattern, name), place = compared_part(case.pattern), case.pattern
    named = [] if name is None else [assign(name, name_node(subject, place), place)]
    no, yes = (assign(matched, locate(ast.Constant(truth), place), place) for truth in (False, True))
    before: list[ast.stmt] = []
    tests: list[ast.expr] = [name_node(matched, place)]
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        before = [] if pattern.name is None else [assign(pattern.name, name_node(subject, place), place)]
        tests = []
    elif not is_compared(pattern):
        asked = ast.Match(name_node(subject, place), [ast.match_case(pattern, None, [yes])])
        before = [no, locate(asked, place)]
    elif named and case.guard is not None:  # which may read the name, and leaves it where it does not hold
        before = [no, locate(ast.If(comparison(pattern, subject), [*named, yes], []), place)]
    else:
        tests = [comparison(pattern, subject)]
    tests += [] if case.guard is None else [case.guard]
    body = case.body if case.guard is not None else [*named, *case.body]
    if not tests:
        return [*before, *body]
    test = tests[0] if len(tests) == 1 else locate(ast.BoolOp(ast.And(), tests), place)
    return [*before, locate(ast.If(test, body, rest), place)]
