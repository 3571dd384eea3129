"""Batch traces: one call for many inputs. Each value has its batch axis in front, one level below."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray, ufunc

from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.forms.abstract_evaluation import avals_and_strides
from wengert.core.forms.batching import aligned, each_lane, lead
from wengert.core.forms.form import Reduction, form_of
from wengert.core.forms.view_forms import Place, Selection, stepwise
from wengert.core.graph.equation import Variable
from wengert.core.memory.buffers import may_overwrite
from wengert.core.memory.memory_layout import (
    Joined,
    Strides,
    axes_by_stride,
    lie_alike,
    row_strides,
    strides_of,
    with_axes_in_memory,
)
from wengert.core.memory.possible_aliases import SHARES
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import UNKNOWN, Aval, check_broadcast, shape_of, strong
from wengert.core.values.dispatch import apply, is_weak, truth_as_integer
from wengert.core.values.execution_state import ACTIVE, in_lanes
from wengert.core.values.tensor import TRUTH, WATCHES, Tensor, make_tensor, unwrap_plain, wrapped_constant
from wengert.errors import GraphError, ShapeError
from wengert.primitives.indexing.index_forms import PartUpdate
from wengert.primitives.indexing.index_layout import WHOLE, are_together, static_index
from wengert.support.caches import WeakIdentityMap
from wengert.support.deferred_warnings import require_warning
from wengert.traces.transient import Transient, pickling_error

_warned: WeakIdentityMap[Any, None] = WeakIdentityMap()
"""The primitives, and functions of users, of which it has been said that they run lane by lane."""


ONE = (True,)
ARRAY = ("array",)
LANE_ERRORS = (np.linalg.LinAlgError, FloatingPointError)
"""Errors that elements decide about, not shapes and dtypes."""
FAILURES = (*LANE_ERRORS, IndexError)


def make_batched(value: Any, trace: Batch) -> Tensor:
    """Return a Tensor of a batch trace from a value one level below whose first axis is the batch axis.

    Its node is the place in the user's program that made it, for the error about values that escape; `ARRAY` behind
    it tells lanes that are arrays without axes from scalars, and `TRUTH` truths of Python's, which count as 0 and 1.
    """
    return make_tensor(value, trace, caller(3, False))


def make_arrays(value: Any, trace: Batch) -> Tensor:
    """Return a Tensor whose lanes are arrays without axes, not scalars."""
    return make_tensor(value, trace, caller(1, False) + ARRAY)


class Batch(Transient):
    """Carry out operations for all lanes of a batch at once.

    Attributes:
        size: the number of lanes.
        place: code and instruction offset in the user's program where it was asked for.
    """

    __slots__ = ("place", "size")
    concrete: ClassVar[bool] = False

    def __init__(self, level: int, size: int, label: str | Callable[[], str]) -> None:
        super().__init__(level, label)
        self.place = caller()
        self.size = size

    def made_at(self, tensor: Tensor) -> tuple[CodeType, int]:
        """Return the place that is the node; for what a sweep made, that of the transformation."""
        code, offset, *_ = tensor._node
        return self.place if code is None else (code, offset)

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape of one lane."""
        shape: tuple[int, ...] = tensor._value.shape
        if shape[0] != UNKNOWN:
            return shape[1:]
        axis = shape.count(UNKNOWN)  # the arrays of a sequence have theirs in front, each
        return shape[:axis] + shape[axis + 1 :]

    def strides(self, tensor: Tensor) -> Strides:
        """Return the strides of one lane."""
        mark, value = tensor._node[2:], tensor._value
        if not mark and type(value) is ndarray and value.flags.c_contiguous:
            return None
        if mark and type(mark[0]) is Joined:
            return mark[0]
        if not tensor.shape:
            return () if mark == ARRAY else None
        return lane_strides(value)

    def lying(self, value: Any, strides: Strides) -> Tensor:
        """Return a Tensor of values whose lanes lie in memory as these strides say, which may be one of several ways.

        Such values are not in C order, so that no short way takes them for others.
        """
        if type(strides) is not Joined:
            return make_batched(rearrange_lanes(value, strides), self)
        value = np.asfortranarray(value) if type(value) is ndarray else value
        return make_tensor(value, self, caller(2, False) + mark_of(strides))

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says."""
        return f"batch of {self.size}"

    def state(self, tensor: Tensor) -> Any:
        """Refuse: a lane cannot be pickled on its own."""
        raise pickling_error(f"a Tensor of {self.owner_name}", "Return it first")

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return the same value in a buffer of its own."""
        return make_tensor(tensor._value.copy(order="K"), self, tensor._node)

    def is_batched(self, operand: Any) -> bool:
        """Tell whether an operand has a batch axis of this trace."""
        return type(operand) is Tensor and operand._trace is self

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Compute all lanes one level below."""
        if self.ended:
            self.require_alive(operands)
        if not primitive.registered and ACTIVE.mask is not None:  # whose rules see lanes of another batch, all active
            given = operands if ACTIVE.fill is None else list(map(ACTIVE.fill, operands))
            return in_lanes(None, None, self.process, primitive, given, params)
        try:
            if primitive.at_points:
                return self.elementwise(primitive, operands, params)
            return self.compute_lanes(primitive, operands, params)
        except FAILURES as error:
            mask, fill = ACTIVE.mask, ACTIVE.fill
            if mask is None:
                self.note_of_lanes(error, operands)
            if fill is None:  # all lanes are active, or this is a second try
                raise
        try:  # what failed may be in lanes whose results nobody uses
            return in_lanes(mask, None, self.process, primitive, list(map(fill, operands)), params)
        except FAILURES as error:
            if self.level >= mask._trace.level:  # others have filled the lanes of older batches only
                self.note_of_lanes(error, operands)
            raise

    def note_of_lanes(self, error: Exception, operands: Sequence[Any]) -> None:
        """Note an error that elements decided about, in the array of all lanes."""
        if not isinstance(error, IndexError) or any(map(self.is_batched, operands[1:])):
            self.note(error)

    def note(self, error: Exception) -> None:
        """Note that some lane raised an error, for which plain NumPy would not have stopped the others."""
        noted = GraphError(
            self.owner_name,
            f"{type(error).__name__} ({error}) in one of the lanes at {position_of(*caller())}",
            "an error in one lane cannot decide what the others do, so the function must not catch it",
            "Choose with wengert.numpy.where, or call the function for each lane",
        )
        noted.__cause__ = error

    def compute_lanes(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Compute all lanes one level below, of an operation that is not elementwise."""
        batched = [self.is_batched(x) for x in operands]
        values = [self.value_below(x) for x in operands]
        if isinstance(primitive, Structured):
            found, lanes = primitive.lanes(self.size, values, batched, params)
            avals, order = avals_and_strides(primitive, list(map(self.lane, operands)), params)
            return tuple(
                self.outcome(item, aval, strides) if flag else wrapped_constant(item)
                for item, flag, aval, strides in zip(found, lanes, avals, order or (None,) * len(found), strict=True)
            )
        if primitive.firm:
            values = list(map(strong, values))
        if primitive.gives_number and values[0].dtype == np.bool_:
            return make_tensor(values[0], self, caller(2, False) + TRUTH)
        out = self.compute(primitive, values, batched, params)
        outs = tuple([array_below(item) for item in (out if isinstance(out, tuple) else (out,))])
        found = self.laid_out(primitive, outs, operands, params)
        return found if isinstance(out, tuple) else found[0]

    def outcome(self, value: Any, aval: Aval, strides: Strides) -> Tensor:
        """Return the lanes of what graphs gave, as they have it."""
        if aval.weak and aval.dtype == np.bool_:
            return make_tensor(value, self, caller(2, False) + TRUTH)
        return self.lying(value, strides) if type(strides) is Joined else make_batched(value, self)

    def offer(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor | None:
        """Return what a primitive gives for lanes that are ndarrays, if they lie as NumPy has each result."""
        if self.ended:
            return None
        if primitive.view:
            return self.offer_view(primitive, operands[0], params)
        if primitive.outputs != 1:
            return None
        if len(operands) == 1:
            lanes = self.of_arrays(primitive, (operands[0]._value,), ONE, params)
        else:
            batched = [type(x) is Tensor and x._trace is self for x in operands]
            values = [x._value if type(x) is Tensor and x._trace in (self, None) else x for x in operands]
            lanes = self.of_arrays(primitive, values, batched, params)
        return None if lanes is None else make_tensor(lanes, self, caller(4, False))

    def lanes_in_front(self, tensor: Tensor) -> Any:
        """Return the lanes as an ndarray, if no lane lies in memory in another order, or is an array without axes."""
        value = tensor._value
        alone = type(value) is not ndarray or self.ended or len(tensor._node) > 2 or ACTIVE.mask is not None
        return None if alone or not value.flags.c_contiguous else value

    def offer_view(self, primitive: Primitive, operand: Tensor, params: Mapping[str, Any]) -> Tensor | None:
        """Return a view of every lane, which lies in it as that of all lanes does; None if something decides how."""
        value = operand._value
        if type(value) is not ndarray or len(operand._node) > 2:
            return None
        index = params.get("index")
        if index is not None:
            if value.ndim == 1:
                return None
            if ndarray in map(type, index):
                return self.offer_elements(value, index)
            lanes = value[(WHOLE, *index)]
        else:
            found = form_of(primitive).batch(primitive, self.size, (value,), ONE, params)
            if found is None:
                return None
            (lanes,), steps = found
            for step, changed in steps:
                lanes = step.evaluate(lanes, **changed)
        if lanes.ndim == 1 or value.ndim == 1:  # scalars have no memory that a view could share
            if lanes.ndim == 1 and (index is None or Ellipsis in index):  # arrays without axes
                return None
            lanes = lanes.copy()
        return make_tensor(lanes, self, caller(5, False))

    def offer_elements(self, value: ndarray[Any, Any], index: tuple[Any, ...]) -> Tensor | None:
        """Return the elements of every lane at an index with arrays side by side, which are the same in every lane."""
        if not len(value) or not are_together(index):
            return None
        lanes = value[(WHOLE, *index)]
        if lanes.ndim > 2:
            lanes = rearrange_lanes(lanes, strides_of(value[0][index]))
        elif not lanes.flags.c_contiguous:
            lanes = lanes.copy()
        return make_tensor(lanes, self, caller(6, False))

    def of_arrays(
        self, primitive: Primitive, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
    ) -> ndarray[Any, Any] | None:
        """Return what a primitive gives for ndarrays, some with lanes, if they lie as NumPy has each result.

        What is in C order comes out in C order, and from lanes that have axes as scalars, not as arrays without axes;
        so do reductions from lanes without axes, and from these arrays with axes where they are joined.
        """
        form = form_of(primitive)
        kind = type(form)
        least = 0 if kind is Place or (len(values) == 1 and kind is Reduction) else 1
        for x, flag in zip(values, batched, strict=True):
            if type(x) is not ndarray or x.ndim < least + flag:
                return None
        try:
            if primitive.batch is not None:
                out = primitive.batch(primitive, self.size, values, batched, params)
            else:
                lanes = form.batch(primitive, self.size, values, batched, params)
                if lanes is None:
                    return None
                operands, steps = lanes
                out = operands[0]
                for step, changed in steps:
                    out = step.strict(*operands, **changed)
                    operands = (out,)
        except LANE_ERRORS:  # which `process` notes
            return None
        except TypeError as error:
            require_warning(error)
            return None
        if type(out) is not ndarray or (kind is Place and out.ndim < 2):
            return None
        if out.ndim > 1 and not out.flags.c_contiguous:
            return None
        if out.ndim > 2:
            for x in values:
                if not x.flags.c_contiguous:
                    return None
        return out

    def laid_out(
        self, primitive: Primitive, outs: Sequence[Any], operands: Sequence[Any], params: Mapping[str, Any]
    ) -> tuple[Tensor, ...]:
        """Return computed values as Tensors whose lanes lie in memory as NumPy has the results of one lane."""
        if not any(map(is_ordered, outs)) or self.is_selecting(primitive, operands, params):
            return tuple([make_batched(out, self) for out in outs])
        order = avals_and_strides(primitive, list(map(self.lane, operands)), params)[1] or (None,) * len(outs)
        return tuple(
            [
                make_arrays(out, self) if strides == () else self.lying(out, strides)
                for out, strides in zip(outs, order, strict=True)
            ]
        )

    def is_selecting(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> bool:
        """Tell whether elements that differ from lane to lane decide about the shapes of results."""
        form = form_of(primitive)
        return isinstance(form, Selection) and not form.is_free(params) and self.is_batched(operands[form.decides])

    def lane(self, operand: Any) -> Any:
        """Return what stands for one lane of an operand: a variable, or the operand itself if it has no lanes."""
        if not self.is_batched(operand):
            return self.value_below(operand)
        value = operand._value
        shape = value.shape
        if type(value) is ndarray:
            if len(shape) == 1:
                return Variable((), value.dtype, "", self.strides(operand))
            if value.flags.c_contiguous:
                return Variable(shape[1:], value.dtype, "", None)
        return Variable(operand.shape, operand.dtype, "", strides_of(operand))

    def elementwise(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
        """Compute an elementwise operation.

        Most are of arrays of this batch, and of numbers and arrays without lanes. For them this path takes a third of
        the general one's time.
        """
        values: Any = []
        rank = widest = 0
        even = True
        for x in operands:
            kind = type(x)
            if kind is Tensor:
                trace, x = x._trace, x._value
                if type(x) is not ndarray or (trace is not self and trace is not None):
                    return self.aligned_elementwise(primitive, operands, params)
                ndim = x.ndim
                if trace is None:
                    widest = ndim if ndim > widest else widest
                elif ndim != rank:
                    even = not rank
                    rank = ndim if ndim > rank else rank
            elif kind is ndarray:
                widest = x.ndim if x.ndim > widest else widest
            elif kind is not float and kind is not int:
                return self.aligned_elementwise(primitive, operands, params)
            values.append(x)
        if not even or widest >= rank:
            values = aligned(values, [self.is_batched(x) for x in operands])
            rank = max(rank, 1 + widest)
        evaluate = primitive.evaluate
        try:
            out = evaluate(*values, **params) if params else evaluate(*values)
        except ValueError:
            check_broadcast(primitive.name, operands)
            raise
        if type(out) is ndarray and (
            out.flags.c_contiguous
            if rank > 1
            else type(evaluate) is ufunc or primitive.operator is not None  # which give scalars of what has no axes
        ):
            return make_tensor(out, self, caller(4, False))
        return self.laid_out(primitive, (np.asarray(out),), operands, params)[0]

    def aligned_elementwise(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
        """Compute an elementwise operation on operands of other traces too."""
        numbers = primitive.operator is not None and all(map(is_weak, operands))
        if numbers and primitive.counts:
            operands = list(map(truth_as_integer, operands))
        batched = [self.is_batched(x) for x in operands]
        values = [self.value_below(x) for x in operands]
        out = array_below(apply(primitive, *aligned(values, batched), **params))
        if numbers and out.dtype == np.bool_:
            return make_tensor(out, self, caller(3, False) + TRUTH)
        return self.laid_out(primitive, (out,), operands, params)[0]

    def compute(
        self, primitive: Primitive, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
    ) -> Any:
        """Return the result with its batch axis in front, by the primitive's form, or its rule."""
        if primitive.batch is not None:
            return primitive.batch(primitive, self.size, values, batched, params)
        found = form_of(primitive).batch(primitive, self.size, values, batched, params)
        return self.loop(primitive, values, batched, params) if found is None else stepwise(*found)

    def loop(
        self, primitive: Primitive, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
    ) -> Any:
        """Compute lane by lane, for want of a batch rule, and say so once if the user can declare one."""
        if primitive.occasion is not None or not primitive.registered:
            warn_of_loop(primitive.name, primitive)
        lanes = each_lane(primitive, self.size, values, batched, params)
        if primitive.outputs == 1:
            return stack_lanes(self.owner_name, primitive.name, lanes)
        return tuple(stack_lanes(self.owner_name, primitive.name, parts) for parts in zip(*lanes, strict=True))

    def spread(self, value: Any) -> Any:
        """Return a value that is the same in every lane as one that may differ, in new memory that lies as it does."""
        strides = strides_of(value)
        axes = [0, *(1 + axis for axis in (axes_by_stride(strides) if strides else range(len(value.shape))))]
        lanes = lead(value, False, self.size)
        found = with_axes_in_memory(lanes, axes)
        return found.copy() if found is lanes else found

    def overwrite(self, handle: Tensor, index: Any, value: Any) -> bool:
        """Write a number, or lanes of one shape, to the same part of every lane, where nobody relies on the memory."""
        buffer = handle._value
        if (
            self.ended
            or not may_overwrite(buffer, handle._kept)
            or buffer.ndim < 2
            or len(handle._node) > 2
            or WATCHES
            or SHARES
        ):
            return False
        is_number = type(value) is float or type(value) is int
        entries = static_index(index, arrays=is_number)
        if entries is None or (is_number and not are_together(entries)):
            return False
        if not is_number:
            if type(value) is not Tensor or value._trace is not self or type(value._value) is not ndarray:
                return False
            value = value._value
            if value.shape != buffer[(WHOLE, *entries)].shape:
                return False
        buffer[(WHOLE, *entries)] = value
        handle._node = caller(3, False)
        handle._mutated = True
        return True

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Replace part of a value in every lane."""
        if self.ended:
            self.require_alive((handle, *operands))
        batched = [self.is_batched(handle), *(self.is_batched(x) for x in operands)]
        base = self.handle_below(handle)
        kept = handle._kept
        if not batched[0]:
            base, kept = self.spread(base), False
        values, batched = [base, *(self.value_below(x) for x in operands)], [True, *batched[1:]]
        form = primitive.form
        assert isinstance(form, PartUpdate)
        moved, ((_, changed),) = form.batch(primitive, self.size, values, batched, params)
        strides = strides_of(handle)
        try:
            written = primitive.rewrite(moved[0], kept, *moved[1:], **changed)
        except ValueError:
            form.require_fit_of_lane(values, batched, params)
            raise
        handle._value = written
        handle._trace, handle._node = self, caller(1, False) + mark_of(strides)
        handle._kept = False
        handle._mutated = True


def mark_of(strides: Strides) -> tuple[Any, ...]:
    """Return what the node of lanes says of how they lie in memory where the array of all lanes does not tell."""
    return (strides,) if type(strides) is Joined else ARRAY if strides == () else ()


def warn_of_loop(name: str, operation: Any) -> None:
    """Say once that a primitive, or a function of the user, runs lane by lane."""
    if operation in _warned:
        return
    _warned[operation] = None
    place = position_of(*caller())
    warnings.warn_explicit(
        f"vmap: {name} has no batch rule and runs lane by lane; declare one for speed",
        UserWarning,
        place.filename,
        place.line,
    )


def stack_lanes(owner: str, name: str, lanes: Sequence[Any]) -> Any:
    """Return the lanes' results along a new axis; they must have one shape."""
    shapes = sorted({shape_of(lane) for lane in lanes})
    if len(shapes) > 1:
        given = f"results of {name} of shapes {' and '.join(map(str, shapes))} in different lanes"
        needed = "one shape for all lanes is needed"
        raise ShapeError(owner, given, needed, "Use wengert.numpy.where in place of what depends on the values")
    return np.stack(lanes)


def is_ordered(out: Any) -> bool:
    """Tell whether lanes may lie in memory in several ways: as scalars or arrays, or in several orders."""
    if len(out.shape) == 2 and type(out) is ndarray:
        return out.strides[1] != out.itemsize and not out.flags.c_contiguous  # gaps between lanes are not in them
    return len(out.shape) != 2 or strides_of(out) is not None


def lane_strides(value: Any) -> Strides:
    """Return the strides of one lane of a value with a batch axis in front; sequences of arrays have none."""
    strides = strides_of(value)
    if not strides or len(strides) != len(value.shape):
        return None
    return row_strides(value.shape, strides, value.dtype.itemsize)


def rearrange_lanes(out: Any, strides: Strides) -> Any:
    """Return an array whose lanes lie as these strides say, or the array itself if they do."""
    if len(out.shape) == 1:
        return out
    if lie_alike(out.shape[1:], lane_strides(out), strides):
        return out
    return with_axes_in_memory(
        out, [*range(out.ndim)] if strides is None else [0, *(1 + axis for axis in axes_by_stride(strides))]
    )


def array_below(out: Any) -> Any:
    """Return a computed value as an array or Tensor."""
    found = unwrap_plain(out)
    return found if type(found) is Tensor else np.asarray(found)
