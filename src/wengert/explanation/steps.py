"""Wengert lists as they are shown: steps with values and adjoints; as plain text, in colours, as a notebook's table."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.diagnostics.source_positions import Position
from wengert.core.graph.printing import exact_text, formula, value_text
from wengert.core.values.tensor import raw
from wengert.explanation.listing import ListedOperation, Lister, Reference

if TYPE_CHECKING:
    from rich.console import RenderableType


SHOWN = 200  # steps of a section that are shown before its middle is left out


@dataclass(frozen=True, slots=True)
class ListRow:
    """Be one line: `name = formula`, its value, and the source line that asked for it where that tells something.

    `more` are further values, for the columns after the first.
    """

    name: str
    formula: str
    value: str
    position: Position | None = None
    more: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What stands to the left of the value."""
        return f"{self.name} = {self.formula}" if self.formula else self.name

    @property
    def values(self) -> tuple[str, ...]:
        """All values."""
        return self.value, *self.more


@dataclass(frozen=True, slots=True)
class ListSection:
    """Be a titled group of lines; `columns` are the titles of the values if there are several."""

    title: str
    rows: Sequence[ListRow]
    columns: tuple[str, ...] = ()

    def shown(self) -> list[ListRow]:
        """Return the rows, with one that counts them in place of the middle of a very long list."""
        if len(self.rows) <= SHOWN:
            return list(self.rows)
        half = SHOWN // 2
        nothing = ("",) * (len(self.columns) - 1)
        left_out = ListRow(f"... {len(self.rows) - 2 * half} more steps ...", "", "", None, nothing)
        return [*self.rows[:half], left_out, *self.rows[-half:]]


def sources(rows: Sequence[ListRow]) -> list[str]:
    """Return the source line of each row, empty where it repeats the one above, or is the same for all."""
    places = [row.position for row in rows]
    if len({(p.filename, p.line) for p in places if p is not None and p.text}) < 2:
        return [""] * len(rows)
    texts = ["" if p is None or not p.text else f"{os.path.basename(p.filename)}:{p.line}  {p.text}" for p in places]
    return [text if i == 0 or text != texts[i - 1] else "" for i, text in enumerate(texts)]


def justify(values: Sequence[str]) -> list[str]:
    """Return values with a space before those without a sign, if any has one, so that digits line up."""
    if not any(value.startswith("-") for value in values):
        return list(values)
    return [value if value.startswith("-") else f" {value}" for value in values]


def columns_of(section: ListSection, rows: Sequence[ListRow]) -> list[list[str]]:
    """Return the values of a section column by column, signs in line, the title of the column first if it has one."""
    columns = [justify(values) for values in zip(*(row.values for row in rows), strict=True)]
    return [[title, *values] for title, values in zip(section.columns or [""] * len(columns), columns, strict=True)]


def as_text(title: str, sections: Sequence[ListSection], results: Sequence[tuple[str, str]]) -> str:
    """Return a list as plain text in columns."""
    shown = [section.shown() for section in sections]
    left = max((len(row.label) for rows in shown for row in rows), default=0)
    left = max([left, *(len(section.title) - 2 for section in sections if section.columns)])
    single = [row.value for section, rows in zip(sections, shown, strict=True) for row in rows if not section.columns]
    lines = [title]
    for section, rows in zip(sections, shown, strict=True):
        columns = columns_of(section, rows)
        widths = [max(map(len, column)) for column in columns]
        if not section.columns:
            widths = [max(map(len, single), default=0) + 1]
        cells = zip(*columns, strict=True)
        texts = ["   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
        lines += ["", f"{section.title:<{left + 2}}   {texts[0] if texts else ''}".rstrip()]
        for row, text, source in zip(rows, texts[1:], sources(rows), strict=True):
            lines.append(f"  {row.label:<{left}}   {text}   {source}".rstrip())
    width = max(len(name) for name, _ in results)
    lines += ["", *(f"{name:<{width}}  {value}" for name, value in results)]
    return "\n".join(lines)


def as_rich(title: str, sections: Sequence[ListSection], results: Sequence[tuple[str, str]]) -> RenderableType:
    """Return a list as rich tables, whose source lines give way first where the terminal is narrow."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(title, style="bold"), Text()]
    for section in sections:
        rows = section.shown()
        lines = sources(rows)
        columns = columns_of(section, rows)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", expand=any(lines))
        table.add_column(section.title, style="bold green", header_style="bold cyan", no_wrap=True)
        table.add_column("operation" if any(row.formula for row in rows) else "", overflow="fold")
        for name in section.columns or ("value" if section.title == "forward" else "adjoint",):
            table.add_column(name, style="yellow", overflow="fold")
        if any(lines):
            table.add_column("source", style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
        for row, line, *values in zip(rows, lines, *(column[1:] for column in columns), strict=True):
            cells = [row.name, row.formula, *values]
            table.add_row(*map(Text, [*cells, line] if any(lines) else cells))
        parts.append(table)
    width = max(len(name) for name, _ in results)
    parts += [Text.assemble((f"{name:<{width}}  ", "bold cyan"), (value, "bold yellow")) for name, value in results]
    return Group(*parts)


def as_html(title: str, sections: Sequence[ListSection], results: Sequence[tuple[str, str]]) -> str:
    """Return a list as an HTML table; pointing at a step shows its source line."""
    left = 'style="text-align: left"'
    code = 'style="text-align: left; font-family: monospace"'
    from html import escape  # the table of entities would be a fiftieth of the import

    lines = [f"<table><caption {code}>{escape(title)}</caption>"]
    for section in sections:
        titles = "".join(f"<th {left}>{escape(name)}</th>" for name in section.columns)
        lines.append(f'<tr><th {left} colspan="{2 if titles else 3}">{escape(section.title)}</th>{titles}</tr>')
        for row in section.shown():
            hint = "" if row.position is None else f' title="{escape(str(row.position))}"'
            cells = "".join(f"<td {code}>{escape(cell)}</td>" for cell in (row.name, row.formula, *row.values))
            lines.append(f"<tr{hint}>{cells}</tr>")
    for name, value in results:
        lines.append(f'<tr><th {left}>{escape(name)}</th><td {code} colspan="2">{escape(value)}</td></tr>')
    return "\n".join([*lines, "</table>"])


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """Be one forward step.

    Attributes:
        name: the argument's name, or v1, v2, ...
        formula: the operation on earlier steps; empty for arguments.
        value: its value, as a NumPy scalar or an array that nothing else shares.
        position: the source line that asked for it; None for arguments.
    """

    name: str
    formula: str
    value: Any
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Adjoint:
    """Be one reverse step: the derivative of the result with respect to one forward step.

    Attributes:
        name: the forward step's name with a prime.
        formula: the sum over the steps that used it, `dv2/dx` being a partial derivative (a Jacobian for arrays).
        value: its value, in the shape of the forward step.
    """

    name: str
    formula: str
    value: Any


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Show how a function and its gradient are computed; print it, or display it in a notebook.

    Attributes:
        title: what is explained.
        inputs: the arguments, as steps without a formula.
        forward: the steps in the order of evaluation.
        reverse: the adjoints in the order of the reverse sweep.
        value: the function's result.
        gradient: the gradient as `wengert.grad` gives it; with several arguments a tuple with one for each.
        tangents: in forward mode, which has no reverse steps, the derivatives of all steps by each argument.
        higher: derivatives of order 2, 3, ..., where they were asked for.
    """

    title: str
    inputs: tuple[ExplainedStep, ...]
    forward: tuple[ExplainedStep, ...]
    reverse: tuple[Adjoint, ...]
    value: Any
    gradient: Any
    tangents: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    higher: Sequence[Any] = ()

    def __repr__(self) -> str:
        return as_text(*self.layout())

    def _repr_html_(self) -> str:
        return as_html(*self.layout())

    def __rich__(self) -> RenderableType:
        return as_rich(*self.layout())

    def layout(self) -> tuple[str, list[ListSection], list[tuple[str, str]]]:
        """Return title, sections and results as text."""
        steps = self.steps()
        adjoints = [ListRow(a.name, a.formula, value_text(a.value)) for a in self.reverse]
        results = [("value", exact_text(raw(self.value))), ("gradient", gradient_text(self.gradient))]
        results += [(f"order {k}", gradient_text(found)) for k, found in enumerate(self.higher, start=2)]
        sections = [steps] if self.tangents else [steps, ListSection("reverse", adjoints)]
        return self.title, sections, results

    def steps(self) -> ListSection:
        """Return the forward steps with their values, and in forward mode with their tangents."""
        moved = zip(*self.tangents.values(), strict=True) if self.tangents else itertools.repeat(())
        rows = [
            ListRow(s.name, s.formula, value_text(s.value), s.position, tuple(map(value_text, tangents)))
            for s, tangents in zip((*self.inputs, *self.forward), moved, strict=False)
        ]
        return ListSection(
            "forward", rows, ("value", *(f"d/d{name}" for name in self.tangents)) if self.tangents else ()
        )


def gradient_text(gradient: Any) -> str:
    """Return derivatives in any containers as text."""
    return repr(map_leaves(Shown, gradient))


class Shown:
    """Be shown as the text of a final value, inside any container."""

    def __init__(self, value: Any) -> None:
        self.text = exact_text(raw(value))

    def __repr__(self) -> str:
        return self.text


def name_results(listing: Lister, inputs: Sequence[Reference], names: Sequence[str]) -> dict[Reference, str]:
    """Return the names of the inputs and v1, v2, ... for the results of what was listed."""
    known: dict[Reference, str] = dict(zip(inputs, names, strict=True))
    prefix = free_prefix(names)
    for count, result in enumerate((r for o in listing.operations for r in o.results), start=1):
        known[result] = f"{prefix}{count}"
    for result, source in listing.same.items():
        known[result] = known[source]
    return known


def steps_of(operation: ListedOperation, known: Mapping[Reference, str]) -> list[ExplainedStep]:
    """Return the forward steps of an operation: one for each of its results."""
    operands = [x if isinstance(x, str) else known[x] for x in operation.operands]
    text = formula(operation.name, operands, operation.shapes, operation.params)
    several = len(operation.results) > 1
    return [
        ExplainedStep(known[result], f"{text}[{i}]" if several else text, value, operation.position)
        for i, (result, value) in enumerate(zip(operation.results, operation.values, strict=True))
    ]


def free_prefix(names: Sequence[str]) -> str:
    """Return the letter that numbers the steps: v, unless an argument is called so."""
    for prefix in ("v", "w", "u", "t"):
        if not any(re.match(rf"{prefix}\d+\b", name) for name in names):
            return prefix
    return "step"
