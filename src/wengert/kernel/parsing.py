"""Programs from the text that `printing` writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np

from wengert.errors import FileFormatError
from wengert.kernel.kernel import (
    Affine,
    Bound,
    Buffer,
    BufferKind,
    Carried,
    Copy,
    Guard,
    Keep,
    Kernel,
    Loop,
    Operation,
    Program,
    Reduction,
    ReductionKind,
    Routine,
    Row,
    Run,
    Stage,
    Step,
    Store,
    Update,
)
from wengert.kernel.printing import TOLD

HEAD = re.compile(r"program (?P<inputs>.*) -> (?P<outputs>.*?)(?: failing (?P<failing>\w+))?")
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
COPY = re.compile(r"copy (?P<source>\w+) to (?P<target>\w+)")
ROUTINE = re.compile(
    r"routine (?P<name>[\w.]+) of (?P<arguments>[\w, ]+) results (?P<results>\d+) work (?P<work>\d+) "
    r"cycles (?P<cycles>\S+) with (?P<fields>.*)"
)
RUN = re.compile(r"run (?P<arguments>[\w, ]+)")
LOOP = re.compile(
    r"loop rounds (?P<rounds>\d+)(?: count (?P<count>\w+))?(?: starts (?P<starts>\w+))?(?: going (?P<going>\w+))?"
    r"(?P<reverse> reverse)?"
)
CONSTANT = re.compile(r"  constant (?P<buffer>\w+) as (?P<row>\w+)")
CARRY = re.compile(
    r"  carry (?P<start>\w+) as (?P<into>\w+) (?:from (?P<out>\w+)|known (?P<known>\w+)) to (?P<result>\w+)"
)
ROW = re.compile(r"  row (?P<buffer>\w+) as (?P<row>\w+)")
INDENTATION = 2
TERM = re.compile(r"i(\d+)(?:\*(-?\d+))?|(-?\d+)")
BOUND = re.compile(r"(-?\d+) <= i(\d+) < (-?\d+)")


class Lines:
    """Hold the lines of a text, how far they have been read, and how far those of the present program are indented."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.place = self.depth = 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of the next line, which is then read; None if it is another kind of line."""
        line = self.lines[self.place] if self.place < len(self.lines) else ""
        found = pattern.fullmatch(line, self.depth) if line[: self.depth].isspace() or not self.depth else None
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
    try:
        program = program_of(lines)
    except (ValueError, TypeError) as error:
        raise unreadable(lines) from error
    if lines.place < len(lines.lines):
        raise unreadable(lines)
    return program


def program_of(lines: Lines) -> Program:
    """Return the program of the next lines."""
    head = lines.take(HEAD)
    if head is None:
        raise ValueError("no program")
    buffers, steps = lines.all(BUFFER, buffer_of), list[Step]()
    while (step := step_of(lines)) is not None:
        steps.append(step)
    return Program(listed(head["inputs"]), listed(head["outputs"]), buffers, tuple(steps), head["failing"] or "")


def step_of(lines: Lines) -> Step | None:
    """Return the step of the next lines; None if there is none."""
    if (line := lines.take(KERNEL)) is not None:
        return kernel_of(line, lines)
    if (line := lines.take(COPY)) is not None:
        return Copy(line["source"], line["target"])
    if (line := lines.take(ROUTINE)) is not None:
        fields = tuple([(name, int(value)) for name, value in map(str.split, listed(line["fields"]))])
        sizes = int(line["results"]), fields, int(line["work"]), float.fromhex(line["cycles"])
        return Routine(line["name"], listed(line["arguments"]), *sizes)
    if (line := lines.take(RUN)) is not None:
        return Run(nested(lines), listed(line["arguments"]))
    if (line := lines.take(LOOP)) is not None:
        return loop_of(line, lines)
    return None


def nested(lines: Lines) -> Program:
    """Return the program of the next lines, which are indented."""
    lines.depth += INDENTATION
    found = program_of(lines)
    lines.depth -= INDENTATION
    return found


def loop_of(line: re.Match[str], lines: Lines) -> Loop:
    """Return the loop that begins with a line."""
    constants = lines.all(CONSTANT, lambda x: Row(x["buffer"], x["row"]))
    carried = lines.all(CARRY, lambda x: Carried(x["start"], x["into"], x["out"] or "", x["known"] or "", x["result"]))
    rows = lines.all(ROW, lambda x: Row(x["buffer"], x["row"]))
    count, starts, going = [line[word] or "" for word in TOLD]
    reverse = bool(line["reverse"])
    return Loop(nested(lines), constants, carried, rows, int(line["rounds"]), count, starts, going, reverse)


def unreadable(lines: Lines) -> FileFormatError:
    """Return the error about a line that cannot be read."""
    last = min(lines.place, len(lines.lines) - 1)
    given = f"line {last + 1}, {lines.lines[last]!r:.100}"
    needed = "a line as wengert.kernel.printing writes it is needed"
    return FileFormatError("kernel text", given, needed, "Print the program again")


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
