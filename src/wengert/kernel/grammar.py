"""Text of kernels, and kernels of text: a form for each record, names as they are, numbers to the bit.

Equal programs have equal text and different ones different text, so it is what caches and reproducers go by. A form is
a line in which fields of the record stand between braces, each of a kind; what stands between « and » is left out where
the record has nothing there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    Invoke,
    Keep,
    Kernel,
    Loop,
    Operation,
    Product,
    Program,
    Reduce,
    ReductionKind,
    Row,
    Run,
    Stage,
    Store,
    Switch,
    Update,
)
from wengert.support.caches import cached
from wengert.support.records import NamedTuple

INDENTATION = "  "


def text(program: Program, digits: int | None = None) -> str:
    """Return a program as text.

    Args:
        program: the program.
        digits: how many of each constant array are shown; all, if not given, so that the text can be read back.

    >>> at, double = Affine(0, (0, 1)), np.dtype(float)
    >>> load = Operation("load", (), double, "x", at)
    >>> stage = Stage((1, 8), (load, Operation("negative", (0,), double)), (Store("y", at, 1),), lane=1)
    >>> buffers = Buffer("x", (8,), double, "input"), Buffer("y", (8,), double, "output")
    >>> print(text(Program(("x",), ("y",), buffers, (Kernel(1, (stage,)),))))
    program x -> y
    buffer x: input float64[8]
    buffer y: output float64[8]
    kernel rows 1 tile 1
      stage 1, 8 lane 1
        %0 = load float64 x[i1]
        %1 = negative float64 %0
        store y[i1] = %1
    """
    shown = "\n".join(lines_of(PROGRAM, program))
    return shown if digits is None else re.sub(rf"(?m)( = [0-9a-f]{{{digits}}})[0-9a-f]+$", r"\1...", shown)


def parse_program(text: str) -> Program:
    """Return the program that a text shows; whether it makes sense is for `checking` to say.

    Raises:
        FileFormatError: a line is none that `text` gives.
    """
    reader = Reader(text)
    try:
        program = reader.take(PROGRAM)
        if program is None or reader.place < len(reader.lines):
            raise reader.unreadable()
    except (ValueError, TypeError) as error:
        raise reader.unreadable() from error
    found: Program = program
    return found


# Fields


class Kind(NamedTuple):
    """Say how a field of a record is written.

    Attributes:
        pattern: what it looks like.
        read: gives the value of a text in a space of so many dimensions.
        write: gives the text of a value.
        absent: the value that is left out.
    """

    pattern: str
    read: Callable[[str, int], Any] = lambda text, rank: text
    write: Callable[[Any], str] = str
    absent: Any = ""


def affine_text(at: Affine) -> str:
    """Return an index map as a sum.

    >>> affine_text(Affine(3, (0, 1, -2)))
    'i1 + i2*-2 + 3'
    """
    terms = [f"i{d}" if c == 1 else f"i{d}*{c}" for d, c in enumerate(at.coefficients) if c]
    return " + ".join([*terms, *([str(at.constant)] if at.constant or not terms else [])])


def affine_of(text: str, rank: int) -> Affine:
    """Return the index map that a sum shows.

    >>> affine_of("i1 + i2*-2 + 3", 3)
    Affine(constant=3, coefficients=(0, 1, -2))
    """
    constant, coefficients = 0, [0] * rank
    for term in text.split(" + "):
        found = re.fullmatch(r"i(\d+)(?:\*(-?\d+))?|(-?\d+)", term)
        if found is None or (found[1] and int(found[1]) >= rank):
            raise ValueError(text)
        if found[3]:
            constant = int(found[3])
        else:
            coefficients[int(found[1])] = int(found[2] or 1)
    return Affine(constant, tuple(coefficients))


def guard_of(text: str, rank: int) -> Guard:
    """Return the bounds that a text shows."""
    found: list[Bound] = []
    for part in text.split(" and "):
        bound = re.fullmatch(r"(-?\d+) <= i(\d+) < (-?\d+)", part)
        if bound is None:
            raise ValueError(text)
        found.append(Bound(int(bound[2]), int(bound[1]), int(bound[3])))
    return tuple(found)


def list_kind(pattern: str, read: Callable[[str], Any] = str, write: Callable[[Any], str] = str) -> Kind:
    """Return the kind of several values with commas between them."""
    items = rf"(?:{pattern}(?:, {pattern})*)?"
    return Kind(
        items, lambda text, _: tuple(map(read, text.split(", "))) if text else (), lambda x: ", ".join(map(write, x))
    )


def number_of(text: str) -> float | int | bool:
    """Return the number that a text shows to the bit."""
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdecimal() else float.fromhex(text)


def field_of(text: str) -> tuple[str, int]:
    """Return a name and a whole number."""
    name, value = text.split()
    return name, int(value)


KINDS = {
    "": Kind(r"\w+"),
    "name": Kind(r"[\w.]+"),
    "names": list_kind(r"\w+"),
    "int": Kind(r"\d+", lambda text, _: int(text), absent=None),
    "ints": list_kind(r"-?\d+", int),
    "dimensions": list_kind(r"i\d+", lambda text: int(text[1:]), "i{}".format),
    "places": Kind(
        r"(?: %\d+)*",
        lambda text, _: tuple([int(place) for place in re.findall(r"\d+", text)]),
        lambda places: "".join([f" %{place}" for place in places]),
    ),
    "dtype": Kind(r"\w+", lambda text, _: np.dtype(text)),
    "buffer kind": Kind("|".join(get_args(BufferKind))),
    "reduction kind": Kind("|".join(get_args(ReductionKind))),
    "hex": Kind("[0-9a-f]+", lambda text, _: bytes.fromhex(text), bytes.hex, b""),
    "number": Kind(r"\S+", lambda text, _: number_of(text), lambda x: x.hex() if isinstance(x, float) else str(x)),
    "at": Kind(r"[^]]*", affine_of, affine_text, None),
    "at row": Kind(r"[^]]*", lambda text, _: affine_of(text, 1), affine_text, None),
    "guard": Kind(
        r".+",
        guard_of,
        lambda guard: " and ".join([f"{bound.low} <= i{bound.dimension} < {bound.high}" for bound in guard]),
        (),
    ),
    "adds": Kind(r"\+?=", lambda text, _: text == "+=", lambda add: "+=" if add else "=", None),
    "reverse": Kind("reverse", lambda text, _: True, lambda _: "reverse", False),
    "fields": list_kind(r"\w+ -?\d+", field_of, lambda field: f"{field[0]} {field[1]}"),
}
"""The kinds of fields."""


# Records


class RecordForm:
    """Say how a record is written.

    Args:
        record: its class.
        line: the line, with its fields.
        parts: the forms of the records that it has, line by line, by the fields that they are in.
        program: the field of the program that it runs, if it does, which is written last and indented.
    """

    def __init__(
        self, record: type, line: str, parts: Mapping[str, Sequence[RecordForm]] | None = None, program: str = ""
    ) -> None:
        self.record, self.parts, self.program = record, dict(parts or {}), program
        self.pieces = [re.split(r"\{(\w+)(?::([\w ]+))?\}", piece) for piece in re.split("[«»]", line)]
        self.kinds = {
            name: KINDS[kind or ""]
            for piece in self.pieces
            for name, kind in zip(piece[1::3], piece[2::3], strict=True)
        }

    @cached
    def pattern(self) -> re.Pattern[str]:
        """What its line looks like."""
        found = ""
        for n, (first, *others) in enumerate(self.pieces):
            own = re.escape(first)
            for name, plain in zip(others[::3], others[2::3], strict=True):
                own += f"(?P<{name}>{self.kinds[name].pattern}){re.escape(plain)}"
            found += f"(?:{own})?" if n % 2 else own
        return re.compile(found)

    def line(self, values: Mapping[str, Any]) -> str:
        """Return the line of a record with some fields."""
        found = ""
        for n, (first, *others) in enumerate(self.pieces):
            if n % 2 and values[others[0]] == self.kinds[others[0]].absent:
                continue
            found += first
            for name, plain in zip(others[::3], others[2::3], strict=True):
                found += self.kinds[name].write(values[name]) + plain
        return found


CONSTANT = RecordForm(Operation, "    %{place:int} = {name} {dtype:dtype} {value:number}« where {guard:guard}»")
OPERATION = RecordForm(
    Operation,
    "    %{place:int} = {name} {dtype:dtype}{operands:places}« {buffer}»«[{at:at}]»« where {guard:guard}»",
)
STORE = RecordForm(Store, "    store {buffer}[{at:at}] = %{value:int}« where {guard:guard}»")
UPDATE = RecordForm(Update, "    update {buffer}[%{index:int} + {at:at}] {add:adds} %{value:int}")
REDUCE = RecordForm(
    Reduce,
    "    reduce {into}«[{at:at}]» = {combine} %{value:int}« times %{factor:int}» over {over:dimensions} "
    "({kind:reduction kind})",
)
STAGE = RecordForm(
    Stage,
    "  stage {extents:ints} lane {lane:int}",
    {"operations": (CONSTANT, OPERATION), "stores": (STORE,), "updates": (UPDATE,), "reductions": (REDUCE,)},
)
KEEP = RecordForm(Keep, "  keep {buffer}[{at:at row}] = {number}")
KERNEL = RecordForm(Kernel, "kernel rows {rows:int} tile {tile:int}", {"stages": (STAGE,), "kept": (KEEP,)})
COPY = RecordForm(Copy, "copy {source} to {target}")
ROUTINE = RecordForm(
    Invoke,
    "routine {name:name} of {arguments:names} results {results:int} work {work:int} cycles {cycles:number} "
    "with {fields:fields}",
)
PRODUCT = RecordForm(
    Product,
    "product {into}[{at:at}] = {left}[{left_at:at}] * {right}[{right_at:at}]« + {addend}[{addend_at:at}]» "
    "over {extents:ints}",
)
RUN = RecordForm(Run, "run {arguments:names}", program="program")
SWITCH = RecordForm(
    Switch, "switch {index}", {"cases": (RecordForm(Run, "  case {arguments:names}", program="program"),)}
)
LOOP = RecordForm(
    Loop,
    "loop rounds {rounds:int}« count {count}»« starts {starts}»« going {going}»« {reverse:reverse}»",
    {
        "constants": (RecordForm(Row, "  constant {buffer} as {row}"),),
        "carried": (RecordForm(Carried, "  carry {start} as {into}« from {out}»« known {known}» to {result}"),),
        "rows": (RecordForm(Row, "  row {buffer} as {row}"),),
    },
    program="body",
)
PROGRAM = RecordForm(
    Program,
    "program {inputs:names} -> {outputs:names}« failing {failing}»",
    {
        "buffers": (
            RecordForm(Buffer, "buffer {name}: {kind:buffer kind} {dtype:dtype}[{shape:ints}]« = {contents:hex}»"),
        ),
        "steps": (KERNEL, COPY, PRODUCT, ROUTINE, RUN, SWITCH, LOOP),
    },
)


def form_of(record: Any, forms: Sequence[RecordForm]) -> RecordForm:
    """Return that of some forms that a record is written in."""
    if isinstance(record, Operation):
        return CONSTANT if record.name == "constant" else OPERATION
    return next(form for form in forms if form.record is type(record))


def lines_of(form: RecordForm, record: Any, place: int = 0) -> Iterator[str]:
    """Yield the lines of a record, which has a place among its like."""
    yield form.line({**vars(record), "place": place})
    for name, forms in form.parts.items():
        for n, part in enumerate(getattr(record, name)):
            yield from lines_of(form_of(part, forms), part, n)
    if form.program:
        yield from [f"{INDENTATION}{line}" for line in lines_of(PROGRAM, getattr(record, form.program))]


class Reader:
    """Hold the lines of a text, how far they have been read, and what is known of where they stand.

    Attributes:
        depth: how far the lines of the present program are indented.
        rank: how many dimensions the present stage or product has.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.place = self.depth = self.rank = 0

    def take(self, form: RecordForm) -> Any:
        """Return the record of the next lines, which are then read; None if it is in another form."""
        line = self.lines[self.place] if self.place < len(self.lines) else ""
        is_here = line[: self.depth].isspace() or not self.depth
        match = form.pattern.fullmatch(line, self.depth) if is_here else None
        if match is None or (form is CONSTANT) != (match.groupdict().get("name") == "constant"):
            return None
        self.place += 1
        texts = match.groupdict()
        if "extents" in texts:
            self.rank = len(KINDS["ints"].read(texts["extents"], 0))
        values = {
            name: kind.absent if texts[name] is None else kind.read(texts[name], self.rank)
            for name, kind in form.kinds.items()
        }
        values.pop("place", None)
        if form is CONSTANT:
            values["operands"] = ()
        values |= {name: self.all(forms) for name, forms in form.parts.items()}
        if form.program:
            self.depth += len(INDENTATION)
            values[form.program] = self.take(PROGRAM)
            self.depth -= len(INDENTATION)
            if values[form.program] is None:
                raise self.unreadable()
        return form.record(**values)

    def all(self, forms: Sequence[RecordForm]) -> tuple[Any, ...]:
        """Return the records of the next lines, as many as are in some forms."""
        found = []
        while (record := next(filter(None, map(self.take, forms)), None)) is not None:
            found.append(record)
        return tuple(found)

    def unreadable(self) -> FileFormatError:
        """Return the error about a line that cannot be read."""
        last = min(self.place, len(self.lines) - 1)
        given = f"line {last + 1}, {self.lines[last]!r:.100}"
        needed = "a line as wengert.kernel.grammar writes it is needed"
        return FileFormatError("kernel text", given, needed, "Print the program again")
