"""Random kernels, legal by construction, and inputs for them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from wengert.kernel.kernel import (
    Affine,
    Bound,
    Buffer,
    Guard,
    Keep,
    Kernel,
    Operation,
    Program,
    Reduce,
    Stage,
    Store,
)
from wengert.support.machine import MACHINE, Machine
from wengert.support.records import fields_of

__all__ = ["as_if", "inputs_for", "random_program"]

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
INTEGERS = (np.dtype(np.int64), np.dtype(np.int32))
BOOL = np.dtype(bool)
UNARY = ("negative", "absolute", "floor", "sin", "sqrt")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
COMPARISONS = ("equal", "not_equal", "less", "greater_equal")


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


class Writer:
    """Write one program: each piece reads what others have written before."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.scans = np.random.default_rng(seed + 1000)
        self.buffers: dict[str, Buffer] = {}
        self.readable: list[str] = []

    def choose(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def count(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def buffer(self, shape: tuple[int, ...], dtype: Any, kind: Any, contents: bytes = b"") -> str:
        name = f"{kind[0]}{len(self.buffers)}"
        self.buffers[name] = Buffer(name, shape, dtype, kind, contents)
        return name

    def program(self) -> Program:
        for _ in range(self.count(1, 3)):
            shape = tuple(self.count(1, 9) for _ in range(self.count(0, 2)))
            self.readable.append(self.buffer(shape, self.choose(*FLOATS, *FLOATS, *INTEGERS, BOOL), "input"))
        if self.chance(0.5):
            values = self.random.integers(0, 3, self.count(1, 5))
            self.readable.append(self.buffer(values.shape, values.dtype, "constant", values.tobytes()))
        kernels = tuple(self.kernel() for _ in range(self.count(1, 3)))
        buffers = tuple(self.buffers.values())
        named = {kind: tuple(b.name for b in buffers if b.kind == kind) for kind in ("input", "output")}
        return Program(named["input"], named["output"], buffers, kernels)

    def kernel(self) -> Kernel:
        rows = self.count(1, 6)
        inner = tuple(self.count(1, 9) for _ in range(self.count(0, 2)))
        self.numbers: dict[str, Any] = {}
        self.own: list[str] = []
        self.late: list[str] = []
        stages = tuple(self.stage((rows, *(inner if self.chance(0.8) else inner[:1]))) for _ in range(self.count(1, 3)))
        kept = tuple(
            Keep(number, self.written((rows,), dtype, late=True), Affine(0, (1,)))
            for number, dtype in self.numbers.items()
            if self.chance(0.5)
        )
        self.readable += self.late
        tile = self.choose(*range(1, rows + 1))
        return Kernel(rows, stages, kept, tile)

    def written(self, shape: tuple[int, ...], dtype: Any, *, late: bool = False) -> str:
        name = self.buffer(shape, dtype, self.choose("output", "temporary"))
        self.late.append(name)
        return name

    def stage(self, extents: tuple[int, ...]) -> Stage:
        self.extents = extents
        self.operations: list[Operation] = []
        for _ in range(self.count(1, 3)):
            self.leaf()
        for _ in range(self.count(0, 6)):
            self.node()
        value = len(self.operations) - 1
        stores: list[Store] = []
        reductions: list[Reduce] = []
        if len(extents) > 1 and self.scans.random() < 0.2:
            return self.scan(value)
        for _ in range(self.count(1, 2)):
            self.result(value, stores, reductions)
            value = self.count(0, value)
        self.own += [s.buffer for s in stores if self.buffers[s.buffer].kind == "row"]
        lane = self.choose(*range(len(extents)))
        return Stage(extents, tuple(self.operations), tuple(stores), tuple(reductions), lane)

    def scan(self, value: int) -> Stage:
        """Return a stage whose only result is what has been combined so far along a dimension."""
        extents, dtype = self.extents, self.operations[value].dtype
        over = int(self.scans.integers(1, len(extents)))
        combine = str(self.scans.choice(["and", "or"] if dtype.kind == "b" else ["add", "maximum", "minimum"]))
        factors = [n for n, o in enumerate(self.operations) if o.dtype == dtype and combine == "add"]
        factor = int(self.scans.choice(factors)) if factors and self.scans.random() < 0.5 else None
        name, at = self.written(extents, dtype), Affine(0, strides(extents))
        lane = int(self.scans.choice([d for d in range(len(extents)) if d != over]))
        result = Reduce(combine, value, "scan", (over,), name, at, factor)
        return Stage(extents, tuple(self.operations), (), (result,), lane)

    def put(self, name: str, operands: tuple[int, ...], dtype: Any, **rest: Any) -> int:
        self.operations.append(Operation(name, operands, dtype, **rest))
        return len(self.operations) - 1

    def guard(self) -> Guard:
        bounds = []
        for dimension, n in enumerate(self.extents):
            if n > 1 and self.chance(0.3):
                low = self.count(0, n - 1)
                bounds.append(Bound(dimension, low, self.count(low, n)))
        return tuple(bounds)

    def place(self, size: int, guard: Guard, rows: bool) -> Affine:
        """Return an index map that stays within a size where a guard holds."""
        spans = [(0, n) for n in self.extents]
        for bound in guard:
            spans[bound.dimension] = bound.low, bound.high
        low = high = 0
        coefficients = []
        for dimension, (start, stop) in enumerate(spans):
            c = self.choose(0, 1, 1, -1, 2, stop) if rows or dimension else 0
            ends = sorted((c * start, c * max(stop - 1, start)))
            if high + ends[1] - low - ends[0] >= size:
                c, ends = 0, [0, 0]
            coefficients.append(c)
            low, high = low + ends[0], high + ends[1]
        return Affine(self.count(0, size - 1 - (high - low)) - low, tuple(coefficients))

    def leaf(self) -> None:
        kind = self.choose("load", "load", "load", "constant", "number", "index", "gather")
        if kind == "load" or (kind == "number" and not self.numbers):
            buffer = self.buffers[self.choose(*self.readable, *self.own)]
            guard = self.guard() if self.chance(0.3) else ()
            at = self.place(buffer.size, guard, buffer.kind != "row")
            self.put("load", (), buffer.dtype, buffer=buffer.name, at=at, guard=guard)
        elif kind == "constant":
            dtype = self.choose(*FLOATS, *INTEGERS)
            value = self.choose(0.5, -0.0, 3.0, math.inf) if dtype.kind == "f" else self.count(-3, 3)
            self.put("constant", (), dtype, value=value)
        elif kind == "number":
            name = self.choose(*self.numbers)
            self.put("number", (), self.numbers[name], buffer=name)
        else:
            at = Affine(self.count(-2, 2), tuple(self.count(-2, 2) for _ in self.extents))
            place = self.put("index", (), np.dtype(np.int64), at=at)
            long = [b for b in self.readable if self.buffers[b].size > 2]
            if kind == "gather" and long:
                buffer = self.buffers[self.choose(*long)]
                bits = self.put("constant", (), np.dtype(np.int64), value=1)
                index = self.put("and", (place, bits), np.dtype(np.int64))
                at = Affine(self.count(0, buffer.size - 2), (0,) * len(self.extents))
                self.put("gather", (index,), buffer.dtype, buffer=buffer.name, at=at)

    def operand(self, dtype: Any = None) -> int:
        """Return an operation so far, converted to a dtype."""
        place = self.count(0, len(self.operations) - 1)
        given = self.operations[place].dtype
        if dtype is None or given == dtype:
            return place
        if dtype.kind == "b":
            zero = self.put("constant", (), given, value=given.type(0).item())
            return self.put("not_equal", (place, zero), BOOL)
        if given.kind == "f" and dtype.kind == "i":  # of which C says nothing where it does not fit
            return self.put("constant", (), dtype, value=7)
        return self.put("convert", (place,), dtype)

    def node(self) -> None:
        dtype = self.choose(*FLOATS, FLOATS[0], INTEGERS[0])
        kind = self.choose("unary", "binary", "binary", "comparison", "select", "pick", "logic")
        if kind == "unary":
            self.put(self.choose(*UNARY), (self.operand(FLOATS[0]),), FLOATS[0])
        elif kind == "binary":
            self.put(self.choose(*BINARY), (self.operand(dtype), self.operand(dtype)), dtype)
        elif kind == "comparison":
            self.put(self.choose(*COMPARISONS), (self.operand(dtype), self.operand(dtype)), BOOL)
        elif kind == "select":
            self.put("select", (self.operand(BOOL), self.operand(dtype), self.operand(dtype)), dtype)
        elif kind == "pick":
            self.put("pick", (self.operand(dtype), self.operand(dtype)), dtype, guard=self.guard())
        else:
            self.put(self.choose("and", "or", "xor"), (self.operand(BOOL), self.operand(BOOL)), BOOL)

    def result(self, value: int, stores: list[Store], reductions: list[Reduce]) -> None:
        """Store a value, or combine it over some dimensions."""
        dtype, extents = self.operations[value].dtype, self.extents
        inner = tuple(range(1, len(extents)))
        kind = self.choose("store", "row buffer", "row", "nested", "total", "column")
        combine = self.choose("and", "or") if dtype.kind == "b" else self.choose("add", "maximum", "minimum")
        if kind == "row buffer":
            name = self.buffer(extents[1:], dtype, "row")
            stores.append(Store(name, Affine(0, (0, *strides(extents[1:]))), value))
        elif kind == "row" and inner:
            self.late_number(value, combine, inner, reductions)
        elif kind == "nested" and len(inner) > 1:
            name = self.written((extents[0], extents[1]), dtype)
            at = Affine(0, (extents[1], 1, *(0,) * (len(inner) - 1)))
            reductions.append(Reduce(combine, value, "nested", inner[1:], name, at))
        elif kind == "total":
            name = self.written((), dtype)
            reductions.append(Reduce(combine, value, "total", (0, *inner), name, Affine(0, (0,) * len(extents))))
        elif kind == "column" and inner:
            name = self.written(extents[1:2], dtype)
            over = (0, *inner[1:])
            at = Affine(0, (0, 1, *(0,) * (len(inner) - 1)))
            reductions.append(Reduce(combine, value, "column", over, name, at))
        else:
            name = self.written(extents, dtype)
            stores.append(Store(name, Affine(0, strides(extents)), value))

    def late_number(self, value: int, combine: str, over: tuple[int, ...], reductions: list[Reduce]) -> None:
        name = f"n{len(self.numbers)}"
        self.numbers[name] = self.operations[value].dtype
        reductions.append(Reduce(combine, value, "row", over, name))


def random_program(seed: int) -> Program:
    """Return a random program."""
    return Writer(seed).program()


def inputs_for(program: Program, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Return an array for each input."""
    random = np.random.default_rng(seed)
    kinds = program.buffers_by_name
    return [(3 * random.normal(size=kinds[name].shape)).astype(kinds[name].dtype) for name in program.inputs]


def as_if(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Let decisions be those of another machine, which differs in some fields of the record."""
    assert fields.keys() <= {*fields_of(Machine)}
    for name, value in fields.items():
        monkeypatch.setitem(vars(MACHINE), name, value)
