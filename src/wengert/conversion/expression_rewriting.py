"""Rewrite expressions: what waits for a truth becomes a function, and what decides or is called goes through calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from wengert.control.variable_places import HIDDEN, OPERATIONS
from wengert.conversion.syntax_nodes import MUTATORS, SIGNS, SUSPENDING, constant, locate, name_node, parameters

UNLIFTABLE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
DECISIONS = ("any", "all", "sum")
ITERATORS = ("enumerate", "zip", "reversed")
ITEM = f"{HIDDEN}item_"


def is_decision(node: ast.Call) -> bool:
    """Tell whether a call is of `any`, `all` or `sum`, of a generator expression that can be rewritten."""
    if not isinstance(node.func, ast.Name) or node.func.id not in DECISIONS or node.keywords or len(node.args) != 1:
        return False
    items = node.args[0]
    if not isinstance(items, ast.GeneratorExp) or any(isinstance(x, UNLIFTABLE) for x in ast.walk(items)):
        return False
    targets = [x for generator in items.generators for x in ast.walk(generator.target) if isinstance(x, ast.expr)]
    return all(isinstance(x, ast.Name | ast.Tuple) for x in targets) and not any(x.is_async for x in items.generators)


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrite the expressions of one function.

    `owner` is the class around it, for private names; empty if there is none. `halves` are names that may have a value
    on some paths alone.
    """

    def __init__(self, owner: str, parameters: Sequence[str]) -> None:
        self.owner = owner
        self.parameters = parameters
        self.halves: set[str] = set()

    def operation(self, name: str, args: Sequence[ast.expr], node: ast.AST) -> ast.Call:
        """Return a call into the library."""
        base = name_node(OPERATIONS, node)
        if base.end_lineno != base.lineno:  # tracebacks would show the last line of the statement
            base.end_lineno, base.end_col_offset = base.lineno, base.col_offset
        function = locate(ast.Attribute(base, name, ast.Load()), base)
        return locate(ast.Call(function, [x if hasattr(x, "lineno") else locate(x, base) for x in args], []), base)

    def delay(self, node: ast.expr) -> ast.expr:
        """Return a function that evaluates an expression when it is called."""
        args = ast.arguments([], [], ast.arg(HIDDEN), [], [], None, [])
        return locate(ast.Lambda(args, node), node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Let the graph ask for a value where only some paths give one."""
        if node.id not in self.halves or not isinstance(node.ctx, ast.Load):
            return node
        return self.operation("read_variable", [node, locate(ast.Constant(node.id), node)], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Rewrite `and` and `or`; operands but the first wait."""
        return self.connection(node, self.visit)

    def connection(self, node: ast.BoolOp, rewrite: Callable[[ast.expr], ast.expr]) -> ast.expr:
        """Rewrite `and` or `or`, whose operands are rewritten so."""
        if any(isinstance(x, UNLIFTABLE) for operand in node.values[1:] for x in ast.walk(operand)):
            self.generic_visit(node)
            return node
        first, *rest = [rewrite(x) for x in node.values]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.operation(name, [first, *map(self.delay, rest)], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Rewrite `not`, and operators that may be the user's."""
        if isinstance(node.op, ast.Not):
            return self.operation("not_", [self.test(node.operand)], node)
        if not isinstance(node.operand, ast.Constant):
            node.operand = self.operation("left_operand", [self.visit(node.operand)], node.operand)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Rewrite operators, which may be the user's."""
        beside = "formatting_operand" if isinstance(node.op, ast.Mod) else "left_operand"
        node.left, node.right = self.operand(beside, node.left), self.operand("right_operand", node.right)
        return node

    def operand(self, name: str, node: ast.expr) -> ast.expr:
        """Rewrite an operand, which may be an object of the user's."""
        rewritten: ast.expr = self.visit(node)
        is_number = isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes)
        return rewritten if is_number else self.operation(name, [rewritten], node)

    def test(self, node: ast.expr) -> ast.expr:
        """Rewrite what is asked for its truth; that of `and` and `or` is asked of operands, which may be objects."""
        found = self.connection(node, self.test) if isinstance(node, ast.BoolOp) else self.visit(node)
        return self.operation("ask_truth", [found], node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Rewrite a conditional expression."""
        lifted = not any(isinstance(x, UNLIFTABLE) for part in (node.body, node.orelse) for x in ast.walk(part))
        if not lifted:
            self.generic_visit(node)
            return node
        test, *both = self.test(node.test), self.visit(node.body), self.visit(node.orelse)
        return self.operation("if_exp", [test, *map(self.delay, both)], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Rewrite comparisons; operands of a chain but the first two wait."""
        lifted = not any(isinstance(x, UNLIFTABLE) for part in node.comparators for x in ast.walk(part))
        if len(node.ops) == 1 and not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
            node.left, node.comparators = (
                self.operand("left_operand", node.left),
                [self.operand("right_operand", node.comparators[0])],
            )
            return node
        self.generic_visit(node)
        if not lifted:
            return node
        signs = locate(constant(tuple(SIGNS[type(x)] for x in node.ops)), node)
        return self.operation("compare", [signs, node.left, *map(self.delay, node.comparators)], node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Let the function called be converted as well; give `super` its arguments."""
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.parameters:
            node.args = [name_node("__class__", node), name_node(self.parameters[0], node)]
            return node
        if is_decision(node):
            return self.decision(node.func, node.args[0])  # type: ignore[arg-type]  # as it has been found to be
        node.func = self.operation("callee", [self.method(node.func)], node.func)
        node.args, node.keywords = list(map(self.visit, node.args)), list(map(self.visit, node.keywords))
        return node

    def gone_through(self, node: ast.expr) -> ast.expr:
        """Rewrite what a `for` statement goes through; of a call nobody else has the result."""
        if not isinstance(node, ast.Call) or (isinstance(node.func, ast.Name) and node.func.id == "super"):
            rewritten: ast.expr = self.visit(node)
            return rewritten
        function = self.operation("callee_in_for", [self.method(node.func)], node.func)
        keywords = [self.visit(x) for x in node.keywords]
        takes_all = isinstance(node.func, ast.Name) and node.func.id in ITERATORS  # others may use what they are given
        arguments = [self.gone_through(x) if takes_all else self.visit(x) for x in node.args]
        return locate(ast.Call(function, arguments, keywords), node)

    def decision(self, function: ast.Name, items: ast.GeneratorExp) -> ast.expr:
        """Rewrite `any`, `all` or `sum` of a generator expression: a traced value may decide what it goes through."""
        first, *rest = items.generators
        if rest:
            inner = locate(ast.GeneratorExp(items.elt, rest), items)
            items.elt = locate(ast.Call(function, [inner], []), items)
        name = first.target.id if isinstance(first.target, ast.Name) else ITEM
        found = (self.term if function.id == "sum" else self.item_truth)(function, items.elt, first.ifs, items)
        if name == ITEM:
            whole = locate(ast.Tuple([name_node(ITEM, items)], ast.Load()), items)
            listed = locate(ast.ListComp(found, [ast.comprehension(first.target, whole, [], 0)]), items)
            found = locate(ast.Subscript(listed, locate(constant(0), items), ast.Load()), items)
        each = locate(ast.Lambda(parameters(name), found), items)
        gone_through = self.operation("iterate", [self.gone_through(first.iter)], first.iter)
        return self.operation(
            "sum_each" if function.id == "sum" else "decide_items", [function, gone_through, each], items
        )

    def item_truth(self, function: ast.Name, truth: ast.expr, tests: Sequence[ast.expr], place: ast.AST) -> ast.expr:
        """Return what an item is for `any` or `all`: nothing that decides, if it fails a test."""
        if tests:
            is_any = function.id == "any"
            tests = tests if is_any else [locate(ast.UnaryOp(ast.Not(), x), x) for x in tests]
            truth = locate(ast.BoolOp(ast.And() if is_any else ast.Or(), [*tests, truth]), place)
        found: ast.expr = self.visit(truth)
        return found

    def term(self, _function: ast.Name, value: ast.expr, tests: Sequence[ast.expr], place: ast.AST) -> ast.expr:
        """Return whether an item is added by `sum`, and what computes what is added."""
        test: ast.expr = locate(ast.Constant(True), place)
        if tests:
            test = tests[0] if len(tests) == 1 else locate(ast.BoolOp(ast.And(), [*tests]), place)
        return locate(ast.Tuple([self.visit(test), self.delay(self.visit(value))], ast.Load()), place)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Let a traced number choose the item that is read."""
        is_read = isinstance(node.ctx, ast.Load)
        node.value, node.slice = (self.visit if is_read else self.rewrite_changed)(node.value), self.visit(node.slice)
        node.value = self.operation("index_target" if is_read else "change_target", [node.value], node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Let properties that are read be converted; mangle private names as Python does inside of a class."""
        if not isinstance(node.ctx, ast.Load):
            node.value, node.attr = self.rewrite_changed(node.value), self.private(node.attr)
            node.value = self.operation("change_target", [node.value], node.value)
            return node
        name = locate(constant(self.private(node.attr)), node)
        return self.operation("read_attribute", [self.visit(node.value), name], node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        """Rewrite an augmented assignment, whose operator may be the user's."""
        if isinstance(node.target, ast.Name):
            name = node.target.id
            known = [] if name not in self.halves else [self.visit(name_node(name, node.target))]
            first = [locate(ast.Assign([name_node(name, node, ast.Store())], x), node) for x in known]
            return [*first, self.augmented_name(node, node.target)]
        target = self.visit(node.target)
        target.value = self.operation("augment_target", target.value.args, target.value)
        node.target, node.value = target, self.visit(node.value)
        return node

    def augmented_name(self, node: ast.AugAssign, target: ast.Name) -> ast.stmt:
        """Rewrite the augmented assignment of a name, which may be an object of the user's."""
        value = self.visit(node.value)
        old, sign = name_node(target.id, target), constant(SIGNS[type(node.op)])
        node.value = self.operation("addend", [sign, old, value], node.value)
        new = self.operation("augment", [sign, old, value], node)
        test = self.operation("is_plain", [old], node)
        return locate(ast.If(test, [node], [locate(ast.Assign([target], new), node)]), node)

    def rewrite_changed(self, node: ast.expr) -> ast.expr:
        """Rewrite what is changed; its names and attributes stay there to tell which it is."""
        if not isinstance(node, ast.Attribute):
            found: ast.expr = self.visit(node)
            return found
        node.value, node.attr = self.rewrite_changed(node.value), self.private(node.attr)
        return node

    def method(self, node: ast.expr) -> ast.expr:
        """Rewrite what is called; a method is not read by itself, and may change its object."""
        if not isinstance(node, ast.Attribute):
            found: ast.expr = self.visit(node)
            return found
        value = (self.rewrite_changed if node.attr in MUTATORS else self.visit)(node.value)
        node.value, node.attr = value, self.private(node.attr)
        return node

    def private(self, name: str) -> str:
        """Return a name as Python has it inside of the class."""
        hidden = bool(self.owner) and name.startswith("__") and not name.endswith("__")
        return f"_{self.owner.lstrip('_')}{name}" if hidden else name

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Rewrite what a comprehension goes through, and the rest."""
        self.generic_visit(node)
        node.iter = self.operation("iterate", [node.iter], node.iter)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        """Rewrite what a generator goes through."""
        node.value = self.operation("iterate", [self.visit(node.value)], node.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Rewrite the body of a nested lambda, unless it is a generator."""
        if any(isinstance(x, SUSPENDING) for x in ast.walk(node.body)):
            return node
        self.generic_visit(node)
        return node
