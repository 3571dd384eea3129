"""Formulas on the command line: parsed by Python, checked against a list of what is allowed, and walked.

Nothing is ever executed but NumPy's functions for Tensors, on numbers.
"""

from __future__ import annotations

import ast
import difflib
import functools
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import wengert.numpy as wnp
from wengert.cli.commands import unusable
from wengert.cli.variables import read_variables
from wengert.conversion.syntax_nodes import COMPARISONS, OPERATORS
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.core.values.tensor import Tensor
from wengert.creation import asarray
from wengert.errors import WengertError

LONGEST = 2000  # characters of a formula
DEEPEST = 200  # nested operations: the walk below calls itself twice for each
SHOWN = 60  # characters of a part of a formula in an error

Variables = Mapping[str, Any]
Walk = Callable[[Any, Variables], Any]

BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    kind: getattr(operator, name) for sign, (name, kind) in OPERATORS.items() if sign[0] in "+-*/%@"
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
COMPARING: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    kind: getattr(operator, name) for name, kind in COMPARISONS.values()
}
CONSTANTS: dict[str, float] = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan}
WRITTEN: dict[str, str] = {
    "cot": "1 / tan(x)",
    "csc": "1 / sin(x)",
    "ln": "log(x)",
    "relu": "maximum(x, 0)",
    "sec": "1 / cos(x)",
    "sigmoid": "expit(x)",
}
"""What is written here for functions that others call by these names."""
FILES = ("from", "genfrom", "load", "mem", "save")  # beginnings of names of functions on files and buffers
FAILURES = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


class Formula:
    """Be a formula with values for its variables.

    Attributes:
        tree: its syntax tree.
        variables: the values by name.
        title: its text on one line.
    """

    def __init__(self, text: str, assignments: Sequence[str]) -> None:
        self.tree = parse(text)
        self.variables = read_variables(assignments, number)
        check_names(self.tree, self.variables)
        self.title = " ".join("".join(c if c.isprintable() else " " for c in text).split())

    @property
    def names(self) -> list[str]:
        """What the variables are called."""
        return list(self.variables)

    @property
    def values(self) -> list[Any]:
        """The values of the variables."""
        return list(self.variables.values())

    def scalar(self, *values: Any) -> Any:
        """Return the result for other values, which must be one real number."""
        return one_number(self.array(*values))

    def array(self, *values: Any) -> Any:
        """Return the result for other values, which must be a real number or array."""
        tensors = [asarray(value) if type(value) is np.ndarray else value for value in values]
        return one_array(evaluate(self.tree, dict(zip(self.variables, tensors, strict=True))))

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Say of what fails meanwhile that the formula did; what is infinite or not a number is shown as that."""
        with np.errstate(all="ignore"):
            try:
                yield
            except WengertError:
                raise
            except FAILURES as error:
                raise evaluation_error(self.tree, error) from None


def parse(text: str) -> ast.expr:
    """Return the syntax tree of a formula, in which everything is allowed."""
    if len(text) > LONGEST:
        raise unusable(
            f"a formula of {len(text)} characters", f"at most {LONGEST} are needed", "Use wengert.explain in Python"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the spelling of literals
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        place = f" at character {error.offset}" if error.offset else ""
        raise syntax_error(text, f"{error.msg}{place}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise syntax_error(text, str(error) or "nested too deeply") from None
    if depth(tree) > DEEPEST:
        raise unusable(
            f"a formula that nests more than {DEEPEST} operations",
            "a flatter one is needed",
            "Use wengert.explain in Python",
        )
    check_parts(tree)
    return tree


def number(text: str) -> Any:
    """Return the number that a formula without variables stands for, such as `pi/2`."""
    found = one_number(evaluate(parse(text), {}))
    if isinstance(found, bool | np.bool_):
        raise TypeError("a truth value is no number")
    return float(found)


def syntax_error(text: str, reason: str) -> WengertError:
    """Return the error about a text that is not an expression."""
    return unusable(f"{shorten(text)!r} ({reason})", "a Python expression is needed", "Correct the formula")


def shorten(text: str) -> str:
    """Return a text for an error, without the end of a long one."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def depth(tree: ast.AST) -> int:
    """Return how deeply expressions are nested, without recursion."""
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack += [(child, level + 1) for child in ast.iter_child_nodes(node)]
    return deepest


def check_parts(tree: ast.AST) -> None:
    """Raise a UsageError at the first part of a formula that is not allowed."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if not isinstance(node, ALLOWED):
            raise part_error(node)
        if isinstance(node, ast.Call):
            require_one_array(node, function_name(node))
            stack += [*node.args, *(keyword.value for keyword in node.keywords)]
            literals = [keyword.value for keyword in node.keywords if keyword.arg is not None]
            if len(literals) < len(node.keywords):
                raise part_error(node)
            for value in literals:
                literal(value)
        elif isinstance(node, ast.Subscript):
            index(node.slice)
            stack.append(node.value)
        else:
            stack += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.expr_context)]


def part_error(node: ast.AST) -> WengertError:
    """Return the error about a part that is not allowed in a formula."""
    if isinstance(node, ast.BitXor):
        return unusable("^ in a formula, which is no power in Python", "** is needed", "Write x**2, for instance")
    text = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
    if isinstance(node, ast.IfExp):
        return unusable(f"{shorten(text)!r} in a formula", "a function is needed", "Write where(condition, x, y)")
    return unusable(
        f"{shorten(text)!r} in a formula",
        "numbers, variables, operators, literal indices and functions such as sum(x, axis=0) are needed",
        "Write it in these terms, or use wengert.explain in Python",
    )


def check_names(tree: ast.AST, variables: Variables) -> None:
    """Raise a UsageError unless each variable has a value and each value a variable."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {id(part) for function in calls for part in ast.walk(function)}
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    used = list(dict.fromkeys(names))
    for name in used:
        if name in variables or name in CONSTANTS:
            continue
        if name in function_names():
            raise unusable(f"the function {name} without arguments", "a call is needed", f"Write {name}(x)")
        raise unusable(f"no value for the variable {name}", "a value for each is needed", f"Add {name}=1, for instance")
    for name in variables:
        if name not in used:
            raise unusable(
                f"a value for {name}, which the formula does not contain",
                "a value for each variable, and no other, is needed",
                f"Leave {name} out",
            )
    if not variables:
        raise unusable(
            "a formula without variables", "one to differentiate is needed", 'Write "x**2" x=3, for instance'
        )


@functools.cache
def function_names() -> tuple[str, ...]:
    """Return the names of the functions that formulas may call: those that mean something for Tensors."""
    return tuple(
        name
        for name in dir(wnp)
        if callable(function := getattr(np, name, None))
        and not isinstance(function, type)
        and function in FUNCTIONS
        and not name.startswith(FILES)
    )


@functools.cache
def special_functions() -> dict[str, Any]:
    """Return the functions of `wengert.scipy.special`, which is imported for names that NumPy has not."""
    from wengert.scipy import special

    return {name: getattr(special, name) for name in special.__all__}


def function_name(node: ast.Call) -> str:
    """Return the name of the function that is called, without a leading `np.`."""
    called = node.func
    if isinstance(called, ast.Attribute) and ast.unparse(called.value) in ("np", "numpy", "wnp"):
        called = ast.Name(called.attr)
    if not isinstance(called, ast.Name):
        raise part_error(node)
    known = function_names()
    if called.id not in known and called.id not in special_functions():
        near = difflib.get_close_matches(called.id, known, n=1, cutoff=0.7)
        action = f"Write {near[0]} if you meant that" if near else "See their documentation"
        raise unusable(
            f"the function {called.id}",
            "a function of wengert.numpy or wengert.scipy.special is needed",
            f"Write {WRITTEN[called.id]}" if called.id in WRITTEN else action,
        )
    return called.id


def require_one_array(node: ast.Call, name: str) -> None:
    """Raise a UsageError where the greatest or least of several values is asked for as in Python."""
    if name in ("max", "min") and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant):
        raise unusable(
            f"{shorten(ast.unparse(node))!r}", "one array is needed there", f"Write {name}imum(x, y) of two values"
        )


def literal(node: ast.expr) -> Any:
    """Return the value of an option of a function, which must be written out."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise part_error(node) from None


def evaluate(node: ast.AST, variables: Variables) -> Any:
    """Return the value of a part of a formula."""
    try:
        return WALKS[type(node)](node, variables)
    except WengertError:
        raise
    except FAILURES as error:
        raise evaluation_error(node, error) from None


def evaluation_error(node: ast.AST, error: Exception) -> WengertError:
    """Return the error about a part of a formula that NumPy could not evaluate."""
    reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return unusable(
        f"{shorten(ast.unparse(node))!r} failed ({reason})",
        "operands that NumPy accepts there are needed",
        "Correct the formula or the values",
    )


def constant(node: ast.Constant, _variables: Variables) -> Any:
    """Return a number, or a string, truth value or None among the arguments of a function."""
    value = node.value
    if type(value) is int and abs(value) >= 2**63:
        return float(value)
    return value


def variable(node: ast.Name, variables: Variables) -> Any:
    """Return the value of a variable, or of a constant such as pi."""
    return variables[node.id] if node.id in variables else CONSTANTS[node.id]


def binary(node: ast.BinOp, variables: Variables) -> Any:
    """Return what a binary operator gives."""
    return operate(BINARY[type(node.op)], evaluate(node.left, variables), evaluate(node.right, variables))


def unary(node: ast.UnaryOp, variables: Variables) -> Any:
    """Return what a sign gives."""
    return UNARY[type(node.op)](evaluate(node.operand, variables))


def comparison(node: ast.Compare, variables: Variables) -> Any:
    """Return what a comparison gives; of several in a row the meaning for arrays would be a matter of taste."""
    if len(node.ops) > 1:
        raise unusable(
            f"{shorten(ast.unparse(node))!r}", "one comparison at a time is needed", "Combine two with logical_and"
        )
    return operate(
        COMPARING[type(node.ops[0])], evaluate(node.left, variables), evaluate(node.comparators[0], variables)
    )


def operate(operation: Callable[..., Any], *operands: Any) -> Any:
    """Apply an operator; between plain numbers in floating point, where nothing takes long or fails."""
    for operand in operands:
        if not isinstance(operand, Tensor | int | float | complex | np.generic):
            raise TypeError(f"an operator cannot take {shorten(repr(operand))}")
    if any(isinstance(operand, Tensor) for operand in operands):
        return operation(*operands)
    return operation(*(np.asarray(operand) * 1.0 for operand in operands)).item()


def call(node: ast.Call, variables: Variables) -> Any:
    """Return what a function gives."""
    name = function_name(node)
    function = getattr(wnp, name) if name in function_names() else special_functions()[name]
    options = {str(keyword.arg): literal(keyword.value) for keyword in node.keywords}
    return function(*(evaluate(argument, variables) for argument in node.args), **options)


def subscript(node: ast.Subscript, variables: Variables) -> Any:
    """Return a part of an array."""
    return evaluate(node.value, variables)[index(node.slice)]


def index(node: ast.expr) -> Any:
    """Return an index, which must be written out."""
    if isinstance(node, ast.Tuple):
        return tuple(map(index, node.elts))
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else literal(part) for part in (node.lower, node.upper, node.step)))
    return literal(node)


def sequence(node: ast.List | ast.Tuple, variables: Variables) -> Any:
    """Return a list or tuple."""
    items = [evaluate(item, variables) for item in node.elts]
    return tuple(items) if isinstance(node, ast.Tuple) else items


WALKS: dict[type[ast.AST], Walk] = {
    ast.Constant: constant,
    ast.Name: variable,
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.Compare: comparison,
    ast.Call: call,
    ast.Subscript: subscript,
    ast.List: sequence,
    ast.Tuple: sequence,
}
ALLOWED = (*WALKS, *BINARY, *UNARY, *COMPARING)


def one_array(result: Any) -> Any:
    """Return the result of a formula if it is a real number or array."""
    if not isinstance(result, Tensor | int | float | complex | np.generic):
        raise unusable(
            f"a formula that gives {'several values' if isinstance(result, list | tuple) else repr(result)}",
            "one number is needed",
            "Choose one, as in modf(x)[0], or add them up",
        )
    if getattr(result, "dtype", np.dtype(float)).kind == "c":
        raise unusable(
            "a formula that gives a complex number", "a real one is needed", "Take its real(...) or abs(...)"
        )
    return result


def one_number(result: Any) -> Any:
    """Return the result of a formula if it is one number."""
    shape = getattr(result, "shape", ())
    if shape != ():
        raise unusable(
            f"a formula that gives an array of shape {shape}",
            "one number is needed",
            "Reduce it, with sum(...) for instance",
        )
    return result
