"""Rewrite a function so that its control flow goes through calls.

Each branch and each loop body becomes a nested function without arguments that shares its variables with the
function around it (`nonlocal`), and the statement a call of `if_stmt`, `while_stmt` or `for_stmt`. `break`,
`continue` and `return` inside of these become flags, and what follows them runs under a test of the flags.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence, Set
from typing import Any

from wengert.control.variable_places import HIDDEN, RESULT, RETURNED
from wengert.conversion.expression_rewriting import ITEM, ExpressionRewriter
from wengert.conversion.match_statements import MatchRewriter
from wengert.conversion.syntax_nodes import (
    DEFINITIONS,
    changes,
    constant,
    exits_always,
    function_of_statements,
    half_assigned,
    is_generator,
    locate,
    loop_exits,
    name_node,
    names_appended,
    own_nodes,
    parameters,
    returns_inside,
    set_flag,
    stays_unconverted,
)

BODY = f"{HIDDEN}body_"
ELSE = f"{HIDDEN}else_"
TEST = f"{HIDDEN}test_"


def rewrite(node: ast.FunctionDef | ast.Lambda, owner: str) -> ast.FunctionDef:
    """Return the definition of a function with its control flow as calls.

    The definition is changed; `owner` is the class around it, for private names, empty if there is none.
    """
    node = MatchRewriter().visit(node)
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
    else:
        body = node.body
    name = f"{HIDDEN}function_"  # the user's name stays free for what it means inside
    return scope_of(function_of_statements(name, without_defaults(node.args), body, node), owner).convert()


def scope_of(node: ast.FunctionDef, owner: str) -> Scope:
    """Return what rewrites a definition."""
    return GeneratorScope(node, owner) if is_generator(node) else Scope(node, owner)


def without_defaults(args: ast.arguments) -> ast.arguments:
    """Return parameters with dummy defaults and without annotations: the function's own are bound later."""
    args.defaults = [ast.Constant(None) for _ in args.defaults]
    args.kw_defaults = [None if x is None else ast.Constant(None) for x in args.kw_defaults]
    return args


class LoopFlags:
    """Hold the flags of one loop."""

    def __init__(self, number: int) -> None:
        self.broken = f"{HIDDEN}broken_{number}_"
        self.continued = f"{HIDDEN}continued_{number}_"


class Scope(ExpressionRewriter, ast.NodeTransformer):
    """Rewrite one function: its statements, and the expressions in them.

    Attributes:
        returns: whether returns become flags, because one stands inside a branch or loop.
        loops: the loops around the present statement, innermost last.
    """

    def __init__(self, node: ast.FunctionDef, owner: str) -> None:
        args = node.args
        stars = [a for a in (args.vararg, args.kwarg) if a is not None]
        super().__init__(owner, [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *stars)])
        self.node = node
        self.returns = returns_inside(node.body)
        self.loops: list[LoopFlags] = []
        self.count = 0
        inside = own_nodes(node)
        self.outer = {n for x in inside if isinstance(x, ast.Nonlocal) for n in x.names}
        self.globals = {n for x in inside if isinstance(x, ast.Global) for n in x.names}

    def convert(self) -> ast.FunctionDef:
        """Return the definition, rewritten."""
        node = self.node
        body = node.body
        named = changes(body).bound
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        if self.returns and not exits_always(body):
            body = [*body, locate(ast.Return(None), node)]
        self.halves = half_assigned(body, {*self.parameters, *self.outer, *self.globals})
        statements = self.block(body[start:])
        if self.returns:
            first = locate(ast.Assign([name_node(RETURNED, node, ast.Store())], ast.Constant(False)), node)
            last = locate(ast.Return(name_node(RESULT, node)), node)
            statements = [first, *statements, last]
        known = {*self.parameters, *self.outer, *self.globals}
        declared: list[ast.stmt] = [  # this binds a name in the function without giving it a value
            locate(ast.AnnAssign(name_node(x, node, ast.Store()), ast.Constant(None), None, 1), node)
            for x in {**named, **changes(statements).bound}
            if x not in known
        ]
        scopes = self.scopes(self.globals, self.outer, node)
        node.body = [*body[:start], *scopes, *declared, *statements] or [locate(ast.Pass(), node)]
        return node

    @staticmethod
    def scopes(common: Set[str], outer: Set[str], node: ast.AST) -> list[ast.stmt]:
        """Return the statements that say which names are global, and which of a function around this one."""
        found = [(ast.Global, common), (ast.Nonlocal, outer)]
        return [locate(kind(sorted(names)), node) for kind, names in found if names]

    # Statements

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements one after another; what follows one that may exit runs under a test."""
        found: list[ast.stmt] = []
        rest = list(statements)
        while rest:
            statement = rest.pop(0)
            flags = self.exits(statement)
            if flags and rest and isinstance(statement, ast.If):
                if exits_always(statement.body):
                    statement.orelse, rest = [*statement.orelse, *rest], []
                elif exits_always(statement.orelse):
                    statement.body, rest = [*statement.body, *rest], []
            found += self.statement(statement)
            if flags and rest:
                if not exits_always([statement]):
                    found += self.guard(flags, self.block(rest), rest[0])
                break
        return found

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Rewrite one statement."""
        result = self.visit(node)
        if result is None:
            return []
        return result if isinstance(result, list) else [result]

    def exits(self, node: ast.stmt) -> list[str]:
        """Return the flags that a statement may set for those after it in its block."""
        found: list[str] = []
        queue: list[tuple[ast.AST, bool]] = [(node, False)]
        while queue:
            inner, looped = queue.pop()
            flag = ""
            if isinstance(inner, ast.Return) and self.returns:
                flag = RETURNED
            elif isinstance(inner, ast.Break) and not looped:
                flag = self.loops[-1].broken
            elif isinstance(inner, ast.Continue) and not looped:
                flag = self.loops[-1].continued
            if flag and flag not in found:
                found.append(flag)
            if isinstance(inner, ast.While | ast.For):
                queue += [(x, True) for x in inner.body]
                queue += [(x, looped) for x in inner.orelse]
            elif not isinstance(inner, DEFINITIONS):
                queue += [(x, looped) for x in ast.iter_child_nodes(inner)]
        return found

    def guard(self, flags: Sequence[str], body: Sequence[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
        """Return statements under the test that none of some flags is set."""
        return self.choice(self.operation("none_set", [name_node(x, node) for x in flags], node), body, [], node)

    def choice(
        self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], node: ast.stmt
    ) -> list[ast.stmt]:
        """Return the call that stands for `if`."""
        one, other = changes(body).places, changes(orelse).places
        places = sorted({*one, *other})
        site = self.site(node, tuple((x, one.get(x, ()), other.get(x, ())) for x in places))
        call = self.operation("if_stmt", [test, name_node(BODY, node), name_node(ELSE, node), constant(site)], node)
        return [self.nest(BODY, body, node), self.nest(ELSE, orelse, node), locate(ast.Expr(call), node)]

    def site(self, node: ast.stmt, lines: tuple[tuple[str, Any, Any], ...]) -> tuple[Any, ...]:
        """Return where a statement stands that changes names, each given with its lines: a `StatementSite`'s parts."""
        return node.lineno, lines, tuple(name for name, *_ in lines if name in self.halves)

    def nest(self, name: str, body: Sequence[ast.stmt], node: ast.AST, argument: str = "") -> ast.stmt:
        """Return the nested function that statements become."""
        bound = set(changes(body).bound)
        scopes = self.scopes(bound & self.globals, bound - self.globals, node)
        inside: list[ast.stmt] = [*scopes, *body] if body else [locate(ast.Pass(), node)]
        return function_of_statements(name, parameters(argument) if argument else parameters(), inside, node)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        """Rewrite a choice."""
        test = self.test(node.test)
        body = self.block(node.body)
        return self.choice(test, body, self.block(node.orelse), node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        """Rewrite a loop; a test that binds names becomes part of the body."""
        if any(isinstance(x, ast.NamedExpr) for x in ast.walk(node.test)):
            leave = [*node.orelse, locate(ast.Break(), node.test)]
            ask = locate(ast.If(locate(ast.UnaryOp(ast.Not(), node.test), node.test), leave, []), node.test)
            node.test, node.body, node.orelse = locate(ast.Constant(True), node.test), [ask, *node.body], []
        appended = names_appended([*node.body, node.test])
        loop, body, stops = self.loop_body(node)
        test = locate(ast.Return(self.test(node.test)), node.test)
        names = {**changes([test]).places}
        for name, lines in changes(body).places.items():
            names[name] = (*names.get(name, ()), *lines)
        site = self.site(node, tuple((x, names[x], ()) for x in sorted(names)))
        pieces = [name_node(TEST, node), name_node(BODY, node)]
        call = self.operation("while_stmt", [*pieces, constant(stops), constant(site), constant(appended)], node)
        found = [self.nest(TEST, [test], node), self.nest(BODY, body, node), locate(ast.Expr(call), node)]
        return self.finish_loop(loop, stops, found, node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """Rewrite a loop over items."""
        appended = names_appended(node.body)
        loop, body, stops = self.loop_body(node)
        item = locate(ast.Assign([self.visit(node.target)], name_node(ITEM, node.target)), node.target)
        body = [item, *body]
        names = changes(body).places
        site = self.site(node, tuple((x, names[x], ()) for x in sorted(names)))
        call = self.operation(
            "for_stmt",
            [
                self.operation("iterate", [self.gone_through(node.iter)], node.iter),
                name_node(BODY, node),
                constant(stops),
                constant(site),
                constant(appended),
            ],
            node,
        )
        found = [self.nest(BODY, body, node, ITEM), locate(ast.Expr(call), node)]
        return self.finish_loop(loop, stops, found, node)

    def loop_body(self, node: ast.While | ast.For) -> tuple[LoopFlags, list[ast.stmt], tuple[str, ...]]:
        """Rewrite the body of a loop; also return its flags, and which of them end it."""
        self.count += 1
        loop = LoopFlags(self.count)
        self.loops.append(loop)
        flags = [flag for x in node.body for flag in self.exits(x)]
        body = self.block(node.body)
        self.loops.pop()
        if loop.continued in flags:
            body = [set_flag(loop.continued, False, node), *body]
        stops = tuple(dict.fromkeys(flag for flag in flags if flag != loop.continued))
        return loop, body, stops

    def finish_loop(
        self, loop: LoopFlags, stops: tuple[str, ...], found: list[ast.stmt], node: ast.While | ast.For
    ) -> list[ast.stmt]:
        """Return the statements of a loop with its flag before and its `else` after it."""
        if loop.broken in stops:
            found = [set_flag(loop.broken, False, node), *found]
        if node.orelse:
            orelse = self.block(node.orelse)
            found += self.guard(stops, orelse, node.orelse[0]) if stops else orelse
        return found

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        """Set the result and the flag."""
        if node.value is not None:
            node.value = self.visit(node.value)
        if not self.returns:
            return [node]
        value = node.value or locate(ast.Constant(None), node)
        return [locate(ast.Assign([name_node(RESULT, node, ast.Store())], value), node), set_flag(RETURNED, True, node)]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        """Set the flag."""
        return set_flag(self.loops[-1].broken, True, node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        """Set the flag."""
        return set_flag(self.loops[-1].continued, True, node)

    def visit_With(self, node: ast.With) -> ast.stmt:
        """Rewrite what is inside."""
        for item in node.items:
            item.context_expr = self.operation("manage", [self.visit(item.context_expr)], item.context_expr)
            item.optional_vars = None if item.optional_vars is None else self.visit(item.optional_vars)
        node.body = self.handle(self.block(node.body), node)
        return node

    def handle(self, body: list[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
        """Return statements of which errors may be handled, so that they cannot wait until the graph runs."""
        return [locate(ast.With([ast.withitem(self.operation("handle_errors", [], node))], body), node)]

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        """Rewrite what is inside; `else` does not run after an exit."""
        flags = [flag for x in node.body for flag in self.exits(x)]
        node.body = self.block(node.body)
        if node.handlers:
            node.body = self.handle(node.body, node)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        if node.orelse:
            orelse = self.block(node.orelse)
            node.orelse = self.guard(flags, orelse, node.orelse[0]) if flags else orelse
        node.finalbody = self.block(node.finalbody)
        return node

    def visit_TryStar(self, node: Any) -> ast.stmt:
        """Rewrite what is inside."""
        result: ast.stmt = self.visit_Try(node)
        return result

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        """Rewrite what is inside."""
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.body = self.block(case.body)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        """Assign without the annotation, which names of the function around may not have; it is not evaluated."""
        target = self.visit(node.target)
        return None if node.value is None else locate(ast.Assign([target], self.visit(node.value)), node)

    def visit_Global(self, _: ast.Global) -> None:
        """Leave it out: it stands at the beginning of the function now."""

    def visit_Nonlocal(self, _: ast.Nonlocal) -> None:
        """Leave it out: it stands at the beginning of the function now."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Rewrite a nested function, unless it stays as it is."""
        node.decorator_list = [self.visit(x) for x in node.decorator_list]
        node.args.defaults = [self.visit(x) for x in node.args.defaults]
        node.args.kw_defaults = [None if x is None else self.visit(x) for x in node.args.kw_defaults]
        return node if stays_unconverted(node) else scope_of(node, self.owner).convert()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        """Leave coroutines as they are."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Rewrite the methods of a nested class, nothing else of it."""
        node.body = [
            scope_of(x, "").convert() if isinstance(x, ast.FunctionDef) and not stays_unconverted(x) else x
            for x in node.body
        ]
        return node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """Rewrite an assertion as a choice, unless Python leaves them out."""
        if sys.flags.optimize:
            return [node]
        test = self.operation("not_", [self.test(node.test)], node)
        message = None if node.msg is None else self.visit(node.msg)
        return self.choice(test, [locate(ast.Assert(locate(ast.Constant(False), node), message), node)], [], node)


class GeneratorScope(Scope):
    """Rewrite one generator: statements that yield or return stay Python's own, and so do the exits of their loops."""

    def __init__(self, node: ast.FunctionDef, owner: str) -> None:
        super().__init__(node, owner)
        self.returns = False

    def is_pythons(self, node: ast.If | ast.While | ast.For) -> bool:
        """Tell whether a statement is carried out in the generator itself."""
        inside = own_nodes(node)
        if any(isinstance(x, ast.Yield | ast.YieldFrom | ast.Return) for x in inside):
            return True
        return not self.loops and isinstance(node, ast.If) and any(loop_exits([node]))

    def exits(self, node: ast.stmt) -> list[str]:
        """Return the flags that a statement may set; exits of loops of Python's set none."""
        return super().exits(node) if self.loops else []

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        """Rewrite a choice, or what is in it."""
        if not self.is_pythons(node):
            return super().visit_If(node)
        node.test = self.test(node.test)
        return self.with_blocks(node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        """Rewrite a loop, or what is in it."""
        if not self.is_pythons(node):
            return super().visit_While(node)
        node.test = self.test(node.test)
        return self.with_blocks(node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """Rewrite a loop over items, or what is in it."""
        if not self.is_pythons(node):
            return super().visit_For(node)
        iterable = self.operation("iterate", [self.visit(node.iter)], node.iter)
        node.target, node.iter = self.visit(node.target), iterable
        return self.with_blocks(node)

    def with_blocks(self, node: ast.If | ast.While | ast.For) -> list[ast.stmt]:
        """Rewrite the blocks of a statement of Python's; loops around it are Python's, too."""
        node.body, node.orelse = self.block(node.body) or [locate(ast.Pass(), node)], self.block(node.orelse)
        return [node]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        """Set the flag, or leave a loop of Python's."""
        return super().visit_Break(node) if self.loops else node

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        """Set the flag, or go on with a loop of Python's."""
        return super().visit_Continue(node) if self.loops else node
