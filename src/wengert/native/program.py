"""Programs in LLVM's language: the text of functions, and templates, which are written once and pasted often."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.native.builder import Builder
from wengert.native.functions import MARK, Function, Table, Template, argument, listed
from wengert.native.structs import VOID, Type
from wengert.native.values import Value


def program(*exported: Function) -> str:
    """Return the text of functions and of all that they call; the others cannot be called from outside."""
    texts: dict[Function | Table, str] = {}
    waiting: list[Function | Table] = list(exported)
    while waiting:
        function = waiting.pop()
        if function not in texts:
            texts[function], called = written(function, exported)
            waiting.extend(called)
    names = [function.name for function in texts]
    if len(set(names)) < len(names):
        raise TypeError(f"two functions have one name: {sorted(names)}")
    return "\n".join(texts[function] for function in sorted(texts, key=lambda f: f.name))


def written(function: Function | Table, exported: Sequence[Function]) -> tuple[str, list[Function | Table]]:
    """Return the text of one function, and those that it calls; or that of constants."""
    if isinstance(function, Table):
        b = Builder(VOID)
        values = listed([b.constant(function.scalar, value) for value in function.values])
        return f"@{function.name} = internal constant [{len(function.values)} x {function.scalar}] [{values}]\n", []
    signature, attributes = function.signature, function.attributes
    if function.body is None:
        return f"declare {function.head}({listed(signature.parameters)}){attributes}\n", []
    b = Builder(signature.returns)
    code = function.body.__code__
    names = function.parameters or code.co_varnames[1 : code.co_argcount]
    if len(names) != len(signature.parameters):
        raise TypeError(f"{function.name}: {len(names)} parameters of {len(signature.parameters)} types")
    parameters = [Value(b, kind, f"%{name}") for kind, name in zip(signature.parameters, names, strict=True)]
    function.body(b, *parameters)
    linkage = "" if function in exported else "internal "
    head = f"define {linkage}{function.head}({listed(parameters)}){attributes} {{\nentry:\n"
    return head + "\n".join([*b.stacked, *b.finished()]) + "\n}\n", list(b.called)


def template(kinds: Sequence[Type], write: Callable[..., Sequence[Value]]) -> Template:
    """Return what a Python function writes as a template.

    Args:
        kinds: the types of its arguments.
        write: what is called with a builder and the arguments, and returns the results.
    """
    b = Builder(VOID, MARK)
    found = write(b, *(Value(b, kind, argument(n)) for n, kind in enumerate(kinds)))
    assert b.block is not None
    return Template("\n".join(b.lines), tuple((x.type, x.text) for x in found), tuple(b.called), b.block)
