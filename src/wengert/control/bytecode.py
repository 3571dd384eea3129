"""What the instructions of a function name, call and store."""

from __future__ import annotations

import dis
import sys
from collections import Counter
from functools import lru_cache
from types import CodeType
from typing import Any

from wengert.support.records import NamedTuple

MANY = 500
"""Values that are looked at before a function counts as one that may write, which take some 0.3 ms."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


WRITING = words(
    "apply_along_axis apply_over_axes batch_norm copyto fill_diagonal fromfunction mask_indices nan_to_num "
    "piecewise place put put_along_axis putmask"
)
"""Functions that write to what they are given, or may; or call what they are given with several operands."""

STORING = words("inplace out overwrite_input")
"""Parameters by which functions are given what they write to, or are told to."""


GROUPS = ("BUILD_", "JUMP_", "LOAD_FAST", "POP_JUMP_", "RETURN_", "STORE_FAST", "UNARY_", "UNPACK_")

HARMLESS = words(
    "BINARY_SLICE BINARY_SUBSCR CACHE CALL CALL_KW COMPARE_OP CONTAINS_OP COPY COPY_FREE_VARS DELETE_FAST DICT_UPDATE "
    "END_FOR EXTENDED_ARG FOR_ITER GET_ITER GET_LEN IS_OP KW_NAMES LIST_APPEND LIST_EXTEND LIST_TO_TUPLE "
    "LOAD_ASSERTION_ERROR LOAD_ATTR LOAD_CLOSURE LOAD_CONST LOAD_DEREF LOAD_GLOBAL LOAD_METHOD MAKE_CELL MAKE_FUNCTION "
    "MAP_ADD NOP POP_TOP PRECALL PUSH_NULL RAISE_VARARGS RERAISE RESUME SET_ADD SET_FUNCTION_ATTRIBUTE SET_UPDATE SWAP "
    "TO_BOOL YIELD_VALUE"
)
"""Instructions, and beginnings of such, that change no object but new containers; `is_harmless` knows some more."""

INTRINSICS = frozenset((3, 5, 6))
"""Of the functions of CALL_INTRINSIC_1: the end of a generator, unary plus, a list as a tuple."""

WITHOUT_EFFECT = words("CACHE EXTENDED_ARG KW_NAMES NOP PRECALL RESUME")
"""Instructions that leave the stack as it is."""

NULL_LAST = sys.version_info >= (3, 13)
"""Whether what is no method has its empty place on the stack behind it."""

JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class MayWriteError(Exception):
    """Say that something is not known to write to no array."""


class Chain(NamedTuple):
    """Name a variable from outside, of a function around or global, and attributes of it: `np.linalg.norm`."""

    name: str
    free: bool
    attributes: tuple[str, ...] = ()


class MemberName(NamedTuple):
    """Name an attribute of what is not known before the function runs."""

    name: str


class Uses(NamedTuple):
    """Hold what a function's instructions use, and those of the functions that are written in it.

    Attributes:
        chains: the variables from outside.
        members: the attributes of other values.
        calls: what is called, None if that is not known, and with how many operands by place.
    """

    chains: frozenset[Chain]
    members: frozenset[str]
    calls: frozenset[tuple[Chain | MemberName | None, int]]


@lru_cache(maxsize=1000)
def uses_of(code: CodeType) -> Uses | None:
    """Return what code uses; None if an instruction may write to an array."""
    found = InstructionReader(code, frozenset())
    try:
        found.read()
    except MayWriteError:
        return None
    chains = frozenset(chain for chain, count in found.chains.items() if count > 0)
    return Uses(chains, frozenset(found.members), frozenset(found.calls))


class InstructionReader:
    """Follow the instructions of code one after the other, with the names of what is on the stack.

    Where it jumps, or is jumped to, nothing is known of the stack.

    Args:
        code: the code.
        local: the variables of functions around it that are not known before these run.
    """

    def __init__(self, code: CodeType, local: frozenset[str]) -> None:
        self.code = code
        self.local = local | set(code.co_cellvars)
        self.chains: Counter[Chain] = Counter()
        self.members: set[str] = set()
        self.calls: set[tuple[Chain | MemberName | None, int]] = set()
        self.stack: list[Any] = []
        self.keywords = 0

    def read(self) -> None:
        """Read all instructions; raise a MayWriteError if one may write."""
        for constant in self.code.co_consts:
            if isinstance(constant, CodeType):
                inner = InstructionReader(constant, self.local)
                inner.read()
                self.chains += inner.chains
                self.members |= inner.members
                self.calls |= inner.calls
            elif not STORING.isdisjoint((constant,) if type(constant) is str else names_in(constant)):
                raise MayWriteError
        for instruction in dis.get_instructions(self.code):
            if not is_harmless(instruction, self.code):
                raise MayWriteError
            if instruction.is_jump_target:
                self.stack.clear()
            self.follow(instruction)
            if instruction.opcode in JUMPS:
                self.stack.clear()

    def follow(self, instruction: dis.Instruction) -> None:
        """Do to the stack what an instruction does."""
        name, stack = instruction.opname, self.stack
        if name == "KW_NAMES":
            self.keywords = len(self.code.co_consts[instruction.arg or 0])
        if name in WITHOUT_EFFECT:
            return
        if name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
            self.call(name, instruction.arg or 0)
            return
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        free = name == "LOAD_DEREF"
        if name == "LOAD_GLOBAL" or (free and instruction.argval not in self.local):
            chain = Chain(instruction.argval, free)
            self.chains[chain] += 1
            stack += [chain] if effect == 1 else [chain, None] if NULL_LAST else [None, chain]
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            stack += [self.attribute(self.pop(), instruction.argval), *[None] * effect]
        elif name.startswith("LOAD_") or name in ("COPY", "PUSH_NULL"):
            stack += [instruction.argval if name == "LOAD_CONST" else None] * effect
        elif name == "SWAP":
            stack.clear()
        else:
            for _ in range(max(0, -effect) + 1):
                self.pop()
            stack += [None] * (max(0, effect) + 1)

    def pop(self) -> Any:
        """Return what is on top of the stack, if that is known, and take it off."""
        return self.stack.pop() if self.stack else None

    def attribute(self, owner: Any, name: str) -> Chain | MemberName:
        """Return an attribute of what was on the stack."""
        if type(owner) is Chain:
            self.chains[owner] -= 1
            found = owner._replace(attributes=(*owner.attributes, name))
            self.chains[found] += 1
            return found
        self.members.add(name)
        return MemberName(name)

    def call(self, name: str, count: int) -> None:
        """Note a call with so many operands."""
        if name == "CALL_FUNCTION_EX":
            count, places = 1, MANY
        else:
            if name == "CALL_KW":
                names = self.pop()
                self.keywords = len(names) if type(names) is tuple else 0
            places = count - self.keywords
        self.keywords = 0
        for _ in range(count):
            self.pop()
        callees = self.pop(), self.pop()
        self.calls.add((next((x for x in callees if type(x) in (Chain, MemberName)), None), places))
        self.stack.append(None)


def names_in(constant: Any) -> tuple[Any, ...]:
    """Return the names that a constant of code consists of; none if it is no tuple."""
    return constant if type(constant) is tuple else ()


def is_harmless(instruction: dis.Instruction, code: CodeType) -> bool:
    """Tell whether an instruction writes to no array."""
    name, arg = instruction.opname, instruction.arg or 0
    if name == "BINARY_OP":
        return not instruction.argrepr.endswith("=")
    if name == "CALL_FUNCTION_EX":
        return not arg & 1  # without arguments by computed names
    if name == "CALL_INTRINSIC_1":
        return arg in INTRINSICS
    if name == "STORE_DEREF":
        return instruction.argval in code.co_cellvars
    return name in HARMLESS or name.startswith(GROUPS)
