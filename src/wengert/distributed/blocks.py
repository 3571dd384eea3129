"""Call a function on blocks of rows and add up what it gives: which blocks there are, and when code is compiled.

Jitted code is for one number of rows. All of it is compiled before it is first called, since NumPy's and native code
differ in last bits, and a process that is started later has called less often. And which blocks a partition is cut
into depends on its number of rows alone, and on what `BlockPlan` says, which all processes share.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from wengert.compile.programs import PROCESSOR, Processor, using
from wengert.core.containers.tree_leaves import flatten, map_leaves, place_of
from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.aval import is_number
from wengert.core.values.tensor import Tensor, unwrap_plain
from wengert.distributed.faults import find_nan_rows, has_nan
from wengert.distributed.sources import Rows, row_count
from wengert.distributed.sums import Leaves, add_leaves
from wengert.errors import DtypeError, GraphError, UsageError
from wengert.native.lapack import ONE_THREAD
from wengert.support.functions_by_value import reduce_function
from wengert.support.records import NamedTuple
from wengert.transforms.jit import Jitted, jit
from wengert.transforms.outer_values import OuterValues

FEW = 256
"""Rows of a block that is not worth machine code of its own."""
MOST_SHIFT = 17
"""The largest power of two among the numbers of rows of blocks."""
MANY_LENGTHS = 4
"""More numbers of rows of partitions are not all worth machine code of their own."""
LOOKED_AT = 64
"""Rows on which it is tried out whether a function is a sum over rows."""
MOVED = 0.125
"""What arguments of zeros are moved to there."""
UNLIMITED = 1 << 62
"""Rows of a block where there is no budget."""
SHARE = 8
"""Of a budget, the part that one block may take: several threads have one each, beside rows that are kept."""


class BlockPlan(NamedTuple):
    """Hold what decides how partitions are cut into blocks; the same in all processes.

    Attributes:
        lengths: numbers of rows of partitions that are not cut, in descending order.
        most: how many rows a block may have.
    """

    lengths: tuple[int, ...]
    most: int

    def cut(self, rows: int) -> list[int]:
        """Return the numbers of rows of the blocks of a partition.

        >>> BlockPlan((1000,), 1000).cut(2700)
        [1000, 1000, 512, 188]
        """
        if rows in self.lengths or not rows:
            return [rows]
        powers = [1 << k for k in range(MOST_SHIFT, FEW.bit_length() - 2, -1) if 1 << k <= self.most]
        found = []
        for size in sorted({*powers, *[n for n in self.lengths if n >= FEW]}, reverse=True):
            found += [size] * (rows // size)
            rows %= size
        few = min(FEW, self.most)
        return found + [few] * (rows // few) + ([rows % few] if rows % few else [])


class Summand(NamedTuple):
    """Hold a function of arguments and a block of rows, and how it is called: what travels to other processes.

    Attributes:
        name: the public function that sums it up, for errors.
        fun: the function.
        compiled: whether it is traced and compiled.
        leaves_out_nan: whether rows that give NaN are left out and counted.
        budget: how many bytes a process may use; None for no limit.
    """

    name: str
    fun: Callable[..., Any]
    compiled: bool
    leaves_out_nan: bool
    budget: int | None

    def __reduce__(self) -> Any:
        return reduce_function(self, Summand, tuple(self))

    def outer_values(self) -> OuterValues:
        """Return what the function captures, of which code is made.

        Raises:
            GraphError: it captures what is being differentiated, batched or traced.
        """
        outer = OuterValues((self.fun,), lifted=False)
        for _, _, value in outer.known.values():
            if type(value) is Tensor and value._trace is not None:
                raise traced_error(self.name, "a function that captures a Tensor of shape " + str(value.shape))
        return outer

    def plan(self, args: Sequence[Any], rows: Rows, lengths: Sequence[int] | None) -> BlockPlan:
        """Return how partitions are cut, found out by one: not at all if few numbers of rows occur and blocks fit.

        Raises:
            UsageError: the function is no sum over rows.
        """
        require_sum(self.name, self.fun, args, rows)
        most = UNLIMITED
        if self.compiled and self.budget is not None:
            most = rows_within(self.fun, args, rows, self.budget // SHARE)
        known = {row_count(rows)} if lengths is None else set(lengths)
        if len(known) > MANY_LENGTHS:
            known = {row_count(rows)}
        return BlockPlan(tuple(sorted((n for n in known if n <= most), reverse=True)), most)


def rows_within(fun: Callable[..., Any], args: Sequence[Any], rows: Rows, budget: int) -> int:
    """Return for how many rows a block's values, those kept for the reverse among them, fit into so many bytes."""
    small, large = (memory_for(fun, args, rows, count) for count in (FEW, 2 * FEW))
    each = max((large - small) / FEW, 1e-9)
    return max(int((budget - max(small - FEW * each, 0)) / each), 1)


def memory_for(fun: Callable[..., Any], args: Sequence[Any], rows: Rows, count: int) -> int:
    """Return how many bytes a call for a block of so many rows takes."""
    blocks = [SimpleNamespace(shape=(count, *x.shape[1:]), dtype=x.dtype) for x in rows]
    return jit(fun, native=False).lower(*args, *blocks).memory


ONE_CORE = Processor(team=ctypes.c_void_p())
"""This processor, of which a kernel uses the thread that calls it alone."""


class JittedBlock(Jitted[..., Any]):
    """Be a jitted function of blocks whose bits do not depend on how many threads BLAS has.

    Calls that are machine code alone, which come here only at first, see to that themselves.
    """

    processor = PROCESSOR

    def __call__(self, *args: Any) -> Any:
        """Call the function as jitted ones are called that are not machine code."""
        with ONE_THREAD, using(self.processor):
            return super().__call__(*args)


class BlockRunner:
    """Call a function on the blocks of partitions, and add up what it gives for them, on any thread of a process.

    Args:
        summand: the function.
        plan: how partitions are cut.
        is_shared: whether a call has all processors, which kernels share; else each of several threads has one, and
            kernels that asked the others for help would wait for each other: 200 ms for 57, measured.
    """

    def __init__(self, summand: Summand, plan: BlockPlan, is_shared: bool = False) -> None:
        self.summand, self.plan = summand, plan
        self.jitted = JittedBlock(summand.fun, (), (), (), True) if summand.compiled else None
        if self.jitted is not None and not is_shared:
            self.jitted.processor = ONE_CORE
        self.ready: dict[int, JittedBlock] = {}  # by the numbers of rows that code was compiled for
        self.plain_calls = 0
        self.lock = threading.Lock()
        self.structure: Any = None
        self.flat = -1  # how many arrays and numbers a plain tuple of them has that is the result

    def sum_numbers(self, args: Sequence[Any], rows: Rows) -> tuple[Leaves, int]:
        """Return the leaves of the sum over those rows of a partition that give no NaN, and how many do."""
        with np.errstate(invalid="ignore"):
            leaves = self.sum(args, rows)
            bad = find_nan_rows(self.summand.fun, args, rows) if has_nan(leaves) else []
        if bad:
            leaves = self.sum(args, tuple([np.delete(x, bad, axis=0) for x in rows]))
        return leaves, len(bad)

    def sum(self, args: Sequence[Any], rows: Rows) -> Leaves:
        """Return the leaves of the sum over the rows of a partition."""
        count, start, total = len(rows[0]), 0, None
        whole = self.ready.get(count)
        if whole is not None:  # it is a block of its own, then
            return self.leaves_of(whole(*args, *rows))
        for size in self.plan.cut(count):
            block = rows if size == count else tuple([x[start : start + size] for x in rows])
            leaves = self.block(args, block, size)
            total = leaves if total is None else add_leaves(total, leaves)
            start += size
        assert total is not None
        return total

    def block(self, args: Sequence[Any], block: Rows, size: int) -> Leaves:
        """Return the leaves of what the function gives for a block."""
        if self.jitted is None or (size < FEW and size not in self.plan.lengths):
            self.plain_calls += 1
            with ONE_THREAD:
                return self.leaves_of(self.summand.fun(*args, *block))
        with contextlib.nullcontext() if size in self.ready else self.lock:  # one thread compiles what others want, too
            found = self.jitted(*args, *block)
            self.ready[size] = self.jitted
        return self.leaves_of(found)

    @property
    def calls(self) -> int:
        """How often the function itself was called, or traced."""
        return self.plain_calls + (0 if self.jitted is None else self.jitted.trace_count)

    def leaves_of(self, found: Any) -> Leaves:
        """Return the leaves of a result, and note what contains them."""
        if type(found) is tuple and len(found) == self.flat:  # 5 us less
            for x in found:
                if type(x) not in SUMMANDS and (type(x) is not np.ndarray or x.dtype.kind not in "fc"):
                    break
            else:
                return list(found)
        leaves, self.structure = flatten(found, in_order=True)
        leaves = [x if is_summand(x) else as_summand(x, found, i) for i, x in enumerate(leaves)]
        self.flat = len(leaves) if type(found) is tuple and all(map(is_summand, found)) else -1
        return leaves


SUMMANDS = frozenset({float, complex, np.float64, np.float32})
"""Types of numbers that can be added up as they are."""


def is_summand(value: Any) -> bool:
    """Tell whether a value is a float, or an array of them."""
    return type(value) in SUMMANDS or (type(value) is np.ndarray and value.dtype.kind in "fc")


def as_summand(leaf: Any, tree: Any, index: int) -> Any:
    """Return a leaf of a result as what can be added up; truths are counted.

    Raises:
        DtypeError: it is no number or array of numbers.
    """
    value = leaf.numpy() if type(leaf) is Tensor and leaf._trace is None else leaf
    if is_number(value) and not isinstance(value, bool):
        return value
    array = value if isinstance(value, np.ndarray | np.generic) else np.asarray(None)
    if array.dtype.kind not in "biufc":
        given = f"a function that returned {shown(leaf)} {place_of(tree, index, 'as part of its result')}"
        raise DtypeError("distributed", given, "numbers and arrays of them are needed", "Return what can be added up")
    return np.asarray(array).astype(np.int64)[()] if array.dtype.kind == "b" else value


ARRAYS = frozenset({np.ndarray, np.float64, float, int})
"""Types of arguments that are no containers."""


def as_plain_arguments(name: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """Return arguments with arrays for Tensors, and a Tensor if there is one.

    Raises:
        GraphError: an argument is being differentiated, batched or traced.
    """
    if ARRAYS.issuperset(map(type, args)):
        for x in args:
            if type(x) is np.ndarray and not x.flags.forc:
                return tuple(map(in_transferable_order, args)), None
        return args, None
    example = None
    for leaf in flatten(args)[0]:
        if type(leaf) is not Tensor:
            continue
        if leaf._trace is not None:
            raise traced_error(name, "an argument")
        example = leaf
    return map_leaves(lambda x: in_transferable_order(unwrap_plain(x) if type(x) is Tensor else x), args), example


def traced_error(name: str, what: str) -> GraphError:
    """Return the error about values of which other transformations want derivatives, or graphs."""
    given = f"{what} that is being differentiated, batched or traced"
    needed = "plain arrays are needed, since partitions are read elsewhere"
    action = "Pass it as an argument to wengert.distributed.value_and_grad, or hvp, outside of other transformations, "
    action += "as scipy.optimize.minimize(fun, x0, jac=True) does"
    return GraphError(name, given, needed, action)


def in_transferable_order(leaf: Any) -> Any:
    """Return an argument in an order that it keeps when it is sent: C's or Fortran's."""
    if type(leaf) is not np.ndarray or leaf.flags.forc:
        return leaf
    return np.ascontiguousarray(leaf)


def require_sum(name: str, fun: Callable[..., Any], args: Sequence[Any], rows: Rows) -> None:
    """Raise a UsageError unless a function of a block of rows is a sum over them, as some rows tell.

    Partitions are cut differently on other days, and what is no sum would then be another number. Regularisers and
    their gradients are 0 where parameters are, as they often are first: such are moved.
    """
    require_sum_at(name, fun, args, rows)
    moved = map_leaves(away_from_zero, args)
    if any(x is not y for x, y in zip(flatten(args)[0], flatten(moved)[0], strict=True)):
        with np.errstate(all="ignore"):
            require_sum_at(name, fun, moved, rows)


def away_from_zero(leaf: Any) -> Any:
    """Return an array of zeros, or a zero, as one of other numbers; anything else as it is."""
    if type(leaf) not in (np.ndarray, np.float64, float) or np.asarray(leaf).dtype.kind != "f" or np.any(leaf):
        return leaf
    return leaf + np.asarray(leaf).dtype.type(MOVED)


def require_sum_at(name: str, fun: Callable[..., Any], args: Sequence[Any], rows: Rows) -> None:
    """Raise a UsageError unless a function is a sum over rows for some arguments."""
    count = min(row_count(rows), LOOKED_AT)
    if count < 2:
        return
    cuts = [tuple([x[a:b] for x in rows]) for a, b in ((0, count), (0, count // 2), (count // 2, count))]
    whole, first, second = ([np.asarray(x) for x in flatten(fun(*args, *block))[0]] for block in cuts)
    for x, y, z in zip(whole, first, second, strict=True):
        if x.dtype.kind not in "fc" or not x.shape == y.shape == z.shape:
            continue
        scale = max(np.max(np.abs(part), initial=0.0) for part in (x, y, z))
        tolerance = 1e-6 if x.dtype.itemsize >= 8 else 1e-2
        if np.isfinite(scale) and np.max(np.abs(x - y - z), initial=0.0) > tolerance * scale:
            given = f"a function that gives for {count} rows something else than for {count // 2} and the rest together"
            action = (
                "Write np.sum for np.mean (reduce='mean' divides by the rows), add regularisers outside, and look for"
                " shapes (n,) beside (n, 1), which broadcast to all pairs of rows"
            )
            raise UsageError(name, given, "a sum over rows is needed", action)
