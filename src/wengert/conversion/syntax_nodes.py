"""Nodes of Python's syntax, asked about and made; and which names and values statements bind or change in place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, TypeVar

from wengert.control.variable_places import HIDDEN, OPERATIONS
from wengert.support.caches import WeakIdentityMap

Located = TypeVar("Located", bound=ast.AST)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
MOST_BACK = 8
"""How far from the end of a list a loop may read items that it carries."""
SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)


OPERATORS: dict[str, tuple[str, type[ast.AST]]] = {
    "+": ("add", ast.Add),
    "-": ("sub", ast.Sub),
    "*": ("mul", ast.Mult),
    "@": ("matmul", ast.MatMult),
    "/": ("truediv", ast.Div),
    "//": ("floordiv", ast.FloorDiv),
    "%": ("mod", ast.Mod),
    "**": ("pow", ast.Pow),
    "<<": ("lshift", ast.LShift),
    ">>": ("rshift", ast.RShift),
    "&": ("and", ast.BitAnd),
    "|": ("or", ast.BitOr),
    "^": ("xor", ast.BitXor),
}
"""Python's names for what operators do: `__add__` is the method and `operator.__add__` the function."""
COMPARISONS: dict[str, tuple[str, type[ast.AST]]] = {
    "==": ("eq", ast.Eq),
    "!=": ("ne", ast.NotEq),
    "<": ("lt", ast.Lt),
    "<=": ("le", ast.LtE),
    ">": ("gt", ast.Gt),
    ">=": ("ge", ast.GtE),
}
SIGNS: dict[type[ast.AST], str] = {
    **{kind: sign for sign, (_, kind) in (OPERATORS | COMPARISONS).items()},
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


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


def names_read(nodes: Iterable[ast.AST], names: Set[str]) -> list[str]:
    """Return which of some names are read inside of nodes."""
    return [x.id for node in nodes for x in ast.walk(node) if isinstance(x, ast.Name) and x.id in names]


def moved_parts(converted: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the functions that conversion made of branches, loops, tests and operands that wait."""
    for node in ast.walk(converted):
        is_branch = isinstance(node, ast.FunctionDef) and node.name.startswith(HIDDEN) and node is not converted
        if is_branch or (isinstance(node, ast.Lambda) and node.args.vararg and node.args.vararg.arg == HIDDEN):
            yield node


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


ADDED: WeakIdentityMap[ast.FunctionDef, Changes] = WeakIdentityMap()
"""What is inside functions that conversion added: in a chain of choices each is inside of all before it."""

MUTATORS = frozenset(
    ("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "sort", "reverse", "fill", "put")
)
"""Methods that change the object they are called on."""
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BOUND: dict[type[ast.AST], Callable[[Any], Iterable[str]]] = {
    ast.Name: lambda node: () if isinstance(node.ctx, ast.Load) else (node.id,),
    ast.Import: lambda node: [x.asname or x.name.split(".")[0] for x in node.names],
    ast.ImportFrom: lambda node: [x.asname or x.name for x in node.names],
    ast.MatchMapping: lambda node: filter(None, (node.rest,)),
    **dict.fromkeys(DEFINED, lambda node: (node.name,)),
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), lambda node: filter(None, (node.name,))),
}
"""The names that nodes bind by themselves."""


def dotted_name(node: ast.expr) -> str:
    """Return the name `a.b.c` of an expression that is one, below any subscripts; else an empty text."""
    while isinstance(node, ast.Subscript | ast.Starred):
        node = uncover(node.value)
    attributes = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = uncover(node.value)
        if isinstance(node, ast.Subscript):
            return ""
    return ".".join([node.id, *reversed(attributes)]) if isinstance(node, ast.Name) else ""


def uncover(node: ast.expr) -> ast.expr:
    """Return an expression without the call into the library that conversion put around it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_operations(node.func.value):
        return node.args[0]
    return node


def is_operations(node: ast.expr) -> bool:
    """Tell whether an expression is the name by which converted code reaches the library."""
    return isinstance(node, ast.Name) and node.id == OPERATIONS


class Changes(ast.NodeVisitor):
    """Collect what statements bind or change, with the lines where they do.

    Attributes:
        bound: names.
        changed: names `a` or `a.b` whose values are changed in place, or attributes that are set.
    """

    def __init__(self) -> None:
        self.bound: dict[str, list[int]] = {}
        self.changed: dict[str, list[int]] = {}

    def bind(self, name: str, node: ast.AST) -> None:
        """Note a binding."""
        self.bound.setdefault(name, []).append(getattr(node, "lineno", 0))

    def change(self, name: str, node: ast.AST) -> None:
        """Note a change in place."""
        if name:
            self.changed.setdefault(name, []).append(getattr(node, "lineno", 0))

    @property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Names bound, and what is changed in place, with lines; attributes of names bound here are left out."""
        found = {name: tuple(lines) for name, lines in self.bound.items()}
        for name, lines in self.changed.items():
            if "." not in name:
                found[name] = tuple(sorted((*found.get(name, ()), *lines)))
            elif name.split(".")[0] not in self.bound:
                found[name] = tuple(lines)
        return found

    def visit(self, node: ast.AST) -> None:
        """Note what a node by itself binds or changes, and what is inside; not the inside of definitions.

        The inside of a function that conversion added belongs to its surroundings.
        """
        if isinstance(node, ast.FunctionDef) and node.name.startswith(HIDDEN):
            self.include(changes_in(node))
            return
        for name in BOUND[type(node)](node) if type(node) in BOUND else ():
            self.bind(name, node)
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            self.change(dotted_name(node), node)
        if isinstance(node, DEFINED):
            for decorator in node.decorator_list:
                self.visit(decorator)
        else:
            getattr(self, f"visit_{type(node).__name__}", self.generic_visit)(node)  # one frame less than by `super`

    def visit_Call(self, node: ast.Call) -> None:
        """Note what methods change that are known to change their object."""
        for function in ast.walk(node.func):  # conversion puts a call around the method
            if isinstance(function, ast.Attribute) and function.attr in MUTATORS:
                self.change(dotted_name(function.value), node)
        self.generic_visit(node)

    def include(self, inner: Changes) -> None:
        """Note what others bind and change, each with the last line."""
        for own, its in ((self.bound, inner.bound), (self.changed, inner.changed)):
            for name, lines in its.items():
                own.setdefault(name, []).append(lines[-1])

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Skip the inside of functions, unless conversion made them."""
        if node.args.vararg is not None and node.args.vararg.arg == HIDDEN:
            self.visit(node.body)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Skip the targets, which are the comprehension's own."""
        self.visit(node.iter)
        for test in node.ifs:
            self.visit(test)


def changes(nodes: Iterable[ast.AST]) -> Changes:
    """Return what statements or expressions bind or change."""
    found = Changes()
    for node in nodes:
        found.visit(node)
    return found


def changes_in(node: ast.FunctionDef) -> Changes:
    """Return what is bound or changed inside a function that conversion added, which stays as it is."""
    found = ADDED.get(node)
    if found is None:
        found = ADDED[node] = changes(node.body)
    return found


def names_appended(parts: Sequence[ast.AST]) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
    """Return the names of which a loop does nothing but append to them, and read the last items, `xs.append(-xs[-1])`.

    Each comes with how far from the end the first item is that is read, 0 for none. A name may be an attribute of a
    variable, `model.states`: then the loop uses that variable for attributes alone, which come third.
    """
    nodes = [x for part in parts for x in ast.walk(part)]
    appended = Counter(name for x in nodes if isinstance(x, ast.Expr) and (name := name_appended(x)))
    read = [found for x in nodes if isinstance(x, ast.Subscript) and (found := item_from_end(x))]
    named = Counter(name for x in nodes if (name := name_or_attribute(x)))
    named.subtract(name for name, _ in read)
    lists: list[tuple[str, int, tuple[str, ...]]] = []
    for name, times in sorted(appended.items()):
        owner, dot, _ = name.rpartition(".")
        attributes = [x for x in named if x.startswith(f"{owner}.")] if dot else []
        alone = not dot or named[owner] == sum(1 for x in nodes if name_or_attribute(x) in attributes)
        if named[name] == times and alone:
            depth = max([depth for other, depth in read if other == name], default=0)
            lists.append((name, depth, tuple(sorted(x.removeprefix(f"{owner}.") for x in attributes))))
    return tuple(lists)


def name_or_attribute(node: ast.AST) -> str:
    """Return a variable's name, or that of an attribute of a variable, `model.states`; empty if a node is neither."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def item_from_end(node: ast.Subscript) -> tuple[str, int] | None:
    """Return the name of what an item is read of, and how far from its end the item is: 2 for `xs[-2]`."""
    index, name = node.slice, name_or_attribute(node.value)
    if not name or not isinstance(node.ctx, ast.Load):
        return None
    if not isinstance(index, ast.UnaryOp) or not isinstance(index.op, ast.USub):
        return None
    known = isinstance(index.operand, ast.Constant) and index.operand.value
    return (name, known) if type(known) is int and 0 < known <= MOST_BACK else None


def name_appended(node: ast.Expr) -> str:
    """Return the name of what a statement appends one item to; empty if it does something else."""
    call = node.value
    if not isinstance(call, ast.Call) or call.keywords or len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return ""
    method = call.func
    return name_or_attribute(method.value) if isinstance(method, ast.Attribute) and method.attr == "append" else ""


def exits_always(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether statements never run on to what follows them."""
    for statement in statements:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return True
        if isinstance(statement, ast.If) and exits_always(statement.body) and exits_always(statement.orelse):
            return True
        if isinstance(statement, ast.While) and is_endless(statement):
            return True
    return False


def is_endless(node: ast.While) -> bool:
    """Tell whether a loop ends by a return or an exception alone."""
    if any(isinstance(x, ast.Break) for x in loop_exits(node.body)):
        return False
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


class PathReads:
    """Find names that a branch of an `if` or a loop binds and that are read where only some paths have bound them.

    Attributes:
        half: the names that one branch of an `if` binds, and nothing before or in the other does, and those of loops.
        read: the names that are read where not all paths have bound them.
    """

    def __init__(self) -> None:
        self.half: set[str] = set()
        self.read: set[str] = set()

    def follow(self, statements: Sequence[ast.stmt], known: Set[str]) -> set[str]:
        """Go through statements before which some names are bound; return the names that are bound after them.

        Loops may run no round, and their bodies see what rounds before bound as bound by some paths alone.
        """
        bound = set(known)
        for statement in statements:
            blocks = [
                x for _, x in ast.iter_fields(statement) if isinstance(x, list) and x and isinstance(x[0], ast.stmt)
            ]
            inside = {id(x) for block in blocks for x in block}
            own = [x for x in ast.iter_child_nodes(statement) if id(x) not in inside]
            if isinstance(statement, ast.If):
                one, other = (self.follow(x, bound) for x in (statement.body, statement.orelse))
                self.half |= (one ^ other) - bound
                after = one & other
            elif isinstance(statement, DEFINITIONS):
                own, after = [statement], bound | set(changes([statement]).bound)
            else:
                ends = [self.follow(x, bound | set(changes(own).bound)) for x in blocks]
                after = bound | set(changes([statement]).bound) if ends or own else bound
                if isinstance(statement, ast.For | ast.While):
                    asked = statement.iter if isinstance(statement, ast.For) else statement.test
                    whole, after = after, bound | set(changes([asked]).bound)
                    self.half |= whole - after
            loads = (x for node in own for x in ast.walk(node) if isinstance(x, ast.Name))
            self.read |= {x.id for x in loads if not isinstance(x.ctx, ast.Store) and x.id not in bound}
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                self.read |= {statement.target.id} - bound
            bound = after
        return bound


def half_assigned(statements: Sequence[ast.stmt], known: Set[str]) -> set[str]:
    """Return the names, none of those `known` before, that may be read where only some paths give them a value."""
    reads = PathReads()
    reads.follow(statements, known)
    return reads.half & reads.read
