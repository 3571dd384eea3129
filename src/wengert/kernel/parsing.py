"""Programs from the text that `printing` writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np

from wengert.errors import FileFormatError, describe
from wengert.kernel.kernel import (
    Affine,
    Bound,
    Buffer,
    BufferKind,
    Guard,
    Keep,
    Kernel,
    Operation,
    Program,
    Reduction,
    ReductionKind,
    Stage,
    Store,
    Update,
)

__all__ = ["parsed"]

HEAD = re.compile(r"program (?P<inputs>.*) -> (?P<outputs>.*)")
BUFFER = re.compile(
    rf"buffer (?P<name>\w+): (?P<kind>{'|'.join(get_args(BufferKind))}) "
    r"(?P<dtype>\w+)\[(?P<shape>[\d, ]*)\](?: = (?P<contents>[0-9a-f]*))?"
)
KERNEL = re.compile(r"kernel rows (?P<rows>\d+) tile (?P<tile>\d+)")
STAGE = re.compile(r"  stage (?P<extents>[\d, ]+) lane (?P<lane>\d+)")
GUARD = r"(?: where (?P<guard>.*))?"
OPERATION = re.compile(
    rf"    %(?P<place>\d+) = (?P<name>\w+) (?P<dtype>\w+)(?P<operands>(?: %\d+)*)(?: (?P<what>(?!where ).+?))?{GUARD}"
)
PLACE = re.compile(r"(?P<buffer>\w*)(?:\[(?P<at>[^]]*)\])?")
STORE = re.compile(rf"    store (?P<buffer>\w+)\[(?P<at>[^]]*)\] = %(?P<value>\d+){GUARD}")
UPDATE = re.compile(r"    update (?P<buffer>\w+)\[%(?P<index>\d+)\] (?P<how>\+?=) %(?P<value>\d+)")
REDUCE = re.compile(
    r"    reduce (?P<into>\w+)(?:\[(?P<at>[^]]*)\])? = (?P<combine>\w+) %(?P<value>\d+)(?: times %(?P<factor>\d+))? "
    rf"over (?P<over>[i\d, ]+) \((?P<kind>{'|'.join(get_args(ReductionKind))})\)"
)
KEEP = re.compile(r"  keep (?P<buffer>\w+)\[(?P<at>[^]]*)\] = (?P<number>\w+)")
TERM = re.compile(r"i(\d+)(?:\*(-?\d+))?|(-?\d+)")
BOUND = re.compile(r"(-?\d+) <= i(\d+) < (-?\d+)")


class Lines:
    """Hold the lines of a text and how far they have been read."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.place = 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of the next line, which is then read; None if it is another kind of line."""
        found = pattern.fullmatch(self.lines[self.place]) if self.place < len(self.lines) else None
        if found is not None:
            self.place += 1
        return found

    def all(self, pattern: re.Pattern[str], make: Callable[[re.Match[str]], Any]) -> tuple[Any, ...]:
        """Return what is made of the next lines, as many as match."""
        found = []
        while (line := self.take(pattern)) is not None:
            found.append(make(line))
        return tuple(found)


def parsed(text: str) -> Program:
    """Return the program that a text shows; whether it makes sense is for `checking` to say.

    Raises:
        FileFormatError: a line is none that `printing` writes.
    """
    lines = Lines(text)
    head = lines.take(HEAD)
    if head is None:
        raise unreadable(lines)
    try:
        buffers = lines.all(BUFFER, buffer_of)
        kernels = lines.all(KERNEL, lambda line: kernel_of(line, lines))
    except (ValueError, TypeError) as error:
        raise unreadable(lines) from error
    if lines.place < len(lines.lines):
        raise unreadable(lines)
    return Program(listed(head["inputs"]), listed(head["outputs"]), buffers, kernels)


def unreadable(lines: Lines) -> FileFormatError:
    """Return the error about a line that cannot be read."""
    last = min(lines.place, len(lines.lines) - 1)
    return FileFormatError(
        describe(
            "kernel text",
            f"line {last + 1}, {lines.lines[last]!r:.100}",
            "a line as wengert.kernel.printing writes it is needed",
            "Print the program again",
        )
    )


def listed(names: str) -> tuple[str, ...]:
    """Return names that are separated by commas."""
    return tuple(names.split(", ")) if names else ()


def buffer_of(line: re.Match[str]) -> Buffer:
    """Return the buffer of a line."""
    contents = bytes.fromhex(line["contents"] or "")
    return Buffer(line["name"], numbers(line["shape"]), np.dtype(line["dtype"]), line["kind"], contents)  # type: ignore[arg-type]  # the pattern names the kinds


def kernel_of(line: re.Match[str], lines: Lines) -> Kernel:
    """Return the kernel that begins with a line."""
    stages = lines.all(STAGE, lambda stage: stage_of(stage, lines))
    kept = lines.all(KEEP, lambda keep: Keep(keep["number"], keep["buffer"], affine_of(keep["at"], 1)))
    return Kernel(int(line["rows"]), stages, kept, int(line["tile"]))


def stage_of(line: re.Match[str], lines: Lines) -> Stage:
    """Return the stage that begins with a line."""
    extents = numbers(line["extents"])
    rank = len(extents)
    operations = lines.all(OPERATION, lambda operation: operation_of(operation, rank))
    stores = lines.all(
        STORE, lambda store: Store(store["buffer"], affine_of(store["at"], rank), int(store["value"]), guard_of(store))
    )
    updates = lines.all(UPDATE, lambda u: Update(u["buffer"], int(u["value"]), int(u["index"]), u["how"] == "+="))
    reductions = lines.all(REDUCE, lambda r: reduction_of(r, rank))
    return Stage(extents, operations, stores, reductions, int(line["lane"]), updates)


def operation_of(line: re.Match[str], rank: int) -> Operation:
    """Return the operation of a line."""
    operands = tuple([int(place) for place in re.findall(r"\d+", line["operands"])])
    dtype = np.dtype(line["dtype"])
    if line["name"] == "constant":
        return Operation("constant", operands, dtype, guard=guard_of(line), value=constant_of(line["what"], dtype))
    where = PLACE.fullmatch(line["what"] or "")
    if where is None:
        raise ValueError(line["what"])
    at = None if where["at"] is None else affine_of(where["at"], rank)
    return Operation(line["name"], operands, dtype, where["buffer"], at, guard_of(line))


def constant_of(text: str, dtype: np.dtype[Any]) -> float | int | bool:
    """Return the number of a dtype that a text shows."""
    if dtype.kind == "b":
        return text == "True"
    return float.fromhex(text) if dtype.kind == "f" else int(text)


def reduction_of(line: re.Match[str], rank: int) -> Reduction:
    """Return the reduction of a line."""
    at = None if line["at"] is None else affine_of(line["at"], rank)
    over = numbers(line["over"].replace("i", ""))
    factor = None if line["factor"] is None else int(line["factor"])
    return Reduction(line["combine"], int(line["value"]), line["kind"], over, line["into"], at, factor)  # type: ignore[arg-type]  # the pattern names the kinds


def affine_of(text: str, rank: int) -> Affine:
    """Return the index map that a sum shows.

    >>> affine_of("i1 + i2*-2 + 3", 3)
    Affine(constant=3, coefficients=(0, 1, -2))
    """
    constant, coefficients = 0, [0] * rank
    for term in text.split(" + "):
        found = TERM.fullmatch(term)
        if found is None or (found[1] and int(found[1]) >= rank):
            raise ValueError(text)
        if found[3]:
            constant = int(found[3])
        else:
            coefficients[int(found[1])] = int(found[2] or 1)
    return Affine(constant, tuple(coefficients))


def guard_of(line: re.Match[str]) -> Guard:
    """Return the guard at the end of a line."""
    found: list[Bound] = []
    for text in (line["guard"] or "").split(" and ") if line["guard"] else ():
        bound = BOUND.fullmatch(text)
        if bound is None:
            raise ValueError(text)
        found.append(Bound(int(bound[2]), int(bound[1]), int(bound[3])))
    return tuple(found)


def numbers(text: str) -> tuple[int, ...]:
    """Return whole numbers that are separated by commas."""
    parts: Sequence[str] = text.split(", ") if text else ()
    return tuple(map(int, parts))
