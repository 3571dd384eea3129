"""Native functions, constants and templates: what programs are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from wengert.native.structs import Scalar, Signature, Type, Void, suffix
from wengert.support.caches import cached
from wengert.support.records import FieldRecord

MARK = "~"
"""What stands in the text of a template where names begin that are to become those of a function."""
BEGIN = f"{MARK}begin"
"""The block that a template begins in."""


class NativeFunction(FieldRecord):
    """A native function, which is equal to itself alone.

    Attributes:
        name: by which it is called.
        signature: its type.
        body: what writes its body; none if the system has it.
        parameters: their names, if they are not those of the Python function that writes the body.
        rare: whether it is called so rarely that its callers keep nothing in memory for its sake.
        brief: whether it takes so little of a program's time that LLVM is to write it quickly, however slow it is.
        convention: LLVM's name of how it is called, which says what registers it leaves alone; none for the usual one.
        features: what its processor can do, as LLVM lists it, if that is not what is said for the whole program.
    """

    name: str
    signature: Signature
    body: Callable[..., None] | None = None
    parameters: tuple[str, ...] = ()
    rare: bool = False
    brief: bool = False
    convention: str = ""
    features: str = ""

    __eq__, __hash__ = object.__eq__, object.__hash__

    @cached
    def head(self) -> str:
        """Its convention, type and name, as definitions and calls have them."""
        return f"{self.convention} {self.signature.returns} @{self.name}".lstrip()

    @property
    def attributes(self) -> str:
        """What stands behind its parameters in definitions."""
        found = f"{' cold' * self.rare}{' noinline' * (self.rare or self.brief)}{' optnone' * self.brief}"
        return f'{found} "target-features"="{self.features}"' if self.features else found


class ConstantTable(FieldRecord):
    """Constants in memory.

    Attributes:
        name: of them.
        scalar: their type.
        values: the constants.
    """

    name: str
    scalar: Scalar
    values: tuple[float, ...]


class Template(FieldRecord):
    """Instructions that are written once and pasted into functions often, which is a hundred times as fast.

    Attributes:
        text: the instructions; `MARK` stands where a name is to become one that the function does not have.
        results: the types and names of what they give.
        called: the functions that they call.
        block: the block that they end in.
    """

    text: str
    results: tuple[tuple[Type, str], ...]
    called: tuple[NativeFunction | ConstantTable, ...]
    block: str


def argument(number: int) -> str:
    """Return what stands for an argument of a template."""
    return f"%{MARK}argument{number}."


def native(returns: Type | Void, *parameters: Type) -> Callable[[Callable[..., None]], NativeFunction]:
    """Make a native function of a Python function that writes it."""
    return lambda body: NativeFunction(body.__name__, Signature(returns, parameters), body)


@functools.cache
def external(name: str, returns: Type | Void, *parameters: Type) -> NativeFunction:
    """Return a function of the C library or of the processor."""
    return NativeFunction(name, Signature(returns, parameters))


@functools.cache
def intrinsic(name: str, of: tuple[Type, ...], returns: Type | Void, parameters: tuple[Type, ...]) -> NativeFunction:
    """Return one of LLVM's functions that exist for many types."""
    return external(".".join(["llvm", name, *map(suffix, of)]), returns, *parameters)


def join_by_commas(items: Sequence[object]) -> str:
    """Return items with commas between them, as between parentheses."""
    return ", ".join(map(str, items))
