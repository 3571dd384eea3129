"""Staging traces: operations become equations of a graph instead of being carried out."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, zip_longest
from types import CellType, CodeType, FunctionType, MappingProxyType
from typing import Any, ClassVar, NoReturn

import numpy as np

from wengert.core.diagnostics.conversion_hints import (
    CALLED_OUT,
    is_function,
    is_rule_asking,
    position_of_user,
    remedy_by_source,
)
from wengert.core.diagnostics.numpy_warnings import SETTINGS, kinds_raised
from wengert.core.diagnostics.source_positions import (
    Origin,
    Position,
    caller,
    expression_at,
    position_of,
    use_at,
    writes_at,
)
from wengert.core.forms.abstract_evaluation import avals_and_strides
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, derive, literal, subgraphs
from wengert.core.graph.identity import identity, identity_of_params
from wengert.core.memory.buffers import keep, lend, own_memory
from wengert.core.memory.memory_layout import Strides, is_uniform, strides_of
from wengert.core.memory.possible_aliases import Plain
from wengert.core.memory.views import lasting
from wengert.core.memory.write_watches import rebind_handle, snapshot
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of, aval_text, is_differentiable, is_number
from wengert.core.values.dispatch import truth_as_integer
from wengert.core.values.recording import SPECIAL, next_level
from wengert.core.values.tensor import Tensor, is_staged, make_tensor
from wengert.errors import GraphError, TracedTruthError
from wengert.primitives.conversion import barrier, overwritten
from wengert.support.attributes import attribute
from wengert.support.function_contents import UNBOUND, content_of, reach
from wengert.support.records import NamedTuple
from wengert.traces.grad_modes import is_stopped
from wengert.traces.nodes import CREATED
from wengert.traces.transient import Transient
from wengert.traces.whole_number_bounds import copy_bounds, enter_bounds, not_alike
from wengert.traces.written_out import ROLLING, count_place, places_watched

SHORT = 1 << 16
"""Elements of an array that is copied as soon as looked at; passes over graphs look at these."""
NO_PARAMS: Mapping[str, Any] = MappingProxyType({})


class Captured(NamedTuple):
    """Hold a Tensor of an older trace that a graph reads, the input that stands for it, and its value at that time."""

    tensor: Tensor
    variable: Variable
    value: Any


class Staging(Transient):
    """Write operations down as equations.

    The value slot of a Tensor of this trace holds its variable. Tensors of older traces that the function captures
    become further inputs, in `captured`, so that gradients reach them; arrays become literals, and so do Tensors that
    do not require grad, which are in `frozen`. Variables in `written`
    are those that transformations inside were given and their functions wrote to; `plain` stand for ndarrays that
    Tensors of the trace may be; `steady` raise if what must stay as it is has been changed. `definitions` has
    the equations that bind variables, of the first `known` ones. `in_vain` counts how often functions with rules were
    traced to no graph. `places` counts equations by their place in the program; None if nobody watches loops that are
    written out.
    """

    __slots__ = (
        *("captured", "constants", "definitions", "equations", "frozen", "in_vain", "inputs", "known", "place"),
        *("places", "plain", "raised", "settings", "steady", "written"),
    )
    concrete: ClassVar[bool] = False
    staged: ClassVar[bool] = True
    remedy: ClassVar[str] = "Return it from the function"

    def __init__(self, level: int, label: str | Callable[[], str]) -> None:
        super().__init__(level, label)
        self.place = caller()
        self.places = places_watched()
        self.equations: list[Equation] = []
        self.inputs: list[Variable] = []
        self.captured: dict[Any, Captured] = {}
        self.frozen: list[weakref.ref[Tensor]] = []
        self.written: set[Variable] = set()
        self.constants: dict[Hashable, tuple[np.ndarray[Any, Any], Any]] = {}
        self.plain: dict[int, Tensor] = {}
        self.in_vain: Counter[Any] = Counter()
        self.steady: list[Callable[[], None]] = []
        self.definitions: dict[Variable, Equation] = {}
        self.known = 0
        self.settings = None if SETTINGS is None else SETTINGS.get()
        self.raised = kinds_raised(self.settings)

    def made_at(self, tensor: Tensor) -> tuple[CodeType, int]:
        """Return where the equation was written that binds the variable; for inputs, where tracing was asked for."""
        origins = (e.origin for e in self.equations if any(x is tensor._value for x in e.outputs))
        origin = next(origins, None)
        return self.place if origin is None or isinstance(origin, Position) else origin

    def input(self, aval: Aval, name: str = "", strides: Strides = None) -> Tensor:
        """Return a new input of the graph."""
        variable = Variable.of(aval, name, strides)
        self.inputs.append(variable)
        return self.tensor(variable)

    def tensor(self, variable: Variable) -> Tensor:
        """Return a Tensor that stands for a variable."""
        tensor = make_tensor(variable, self, None)
        tensor._kept = True
        return tensor

    def reference(self, operand: Any) -> Any:
        """Return an operand as an equation's input: a variable or a literal."""
        if type(operand) is not Tensor:
            return self.constant(operand) if type(operand) is np.ndarray else literal(operand)
        trace = operand._trace
        if trace is self:
            return operand._value
        if trace is None:
            self.frozen.append(weakref.ref(operand))  # a handle that is held would be another name of its memory
            return read_only(lend(operand))
        if isinstance(trace, Staging) and trace.ended:
            raise trace.escape_error((operand,))
        found = self.captured.get(identity_now(operand))
        if found is None:
            if is_staged(operand):  # what it is now, whatever is written to it later
                operand = read = snapshot(operand)
            else:
                read = trace.original(operand)
            found = self.capture(operand, read)
        return found.variable

    def capture(self, operand: Tensor, read: Tensor) -> Captured:
        """Return a new input for a Tensor of an older trace, which another one stands for at each call.

        A write gives what is read anew another value, which `require_unwritten` sees.
        """
        variable = Variable.of(aval_of(operand), "", strides_of(operand))
        if not is_staged(operand):
            own_memory(operand)
            keep(operand)
        found = self.captured[identity_now(operand)] = Captured(read, variable, operand._value)
        copy_bounds(operand._value, variable)
        return found

    def constant(self, array: np.ndarray[Any, Any]) -> Any:
        """Return an array as a literal: the same one as before, for equal views too, unless it has been written to."""
        key = id(array) if array.base is None else place_in_memory(array)
        known = self.constants.get(key)
        if known is None or not same_bits(array, known[1]):
            known = self.constants[key] = (array, literal(array))
        return known[1]

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Append an equation."""
        if self.ended:
            raise self.escape_error(operands)
        if SETTINGS is not None and SETTINGS.get() is not self.settings:
            self.require_no_more_raised(primitive)
        if primitive.kind == "elementwise":
            operands = shorten(operands)
        inputs = tuple([self.reference(x) for x in operands])
        avals, order = avals_and_strides(primitive, inputs, params)
        if primitive.operator is not None and avals[0].weak and counts_truths(primitive, inputs):
            # in the lanes of a batch truths are NumPy's
            return self.process(primitive, list(map(truth_as_integer, operands)), params)
        outputs = tuple([Variable(shape, dtype, "", None, weak) for shape, dtype, weak in avals])
        if order is not None:
            for variable, strides in zip(outputs, order, strict=True):
                variable.strides = strides
        lasting = primitive if primitive.registered else primitive.lasting(inputs, outputs, self.in_vain)
        if called := primitive.user_functions():
            self.steady.append(variables_stay(primitive.name, called))
        place = caller()
        if self.places is not None:
            count_place(self.places, place)
        if ROLLING.strict:
            enter_bounds(primitive, inputs, outputs)
        origin = number_origin(place)
        self.equations.append(Equation(lasting, inputs, dict(params) if params else NO_PARAMS, outputs, origin))
        found = tuple([self.tensor(variable) for variable in outputs])
        if SPECIAL and is_stopped(self) and primitive not in (barrier, overwritten):
            found = tuple([self.process(barrier, (x,), NO_PARAMS) if is_differentiable(x.dtype) else x for x in found])
        return found[0] if primitive.outputs == 1 else found

    def require_no_more_raised(self, primitive: Primitive) -> None:
        """Raise if the function has asked for errors about numbers, which are not there yet: it may catch them."""
        assert SETTINGS is not None
        present = SETTINGS.get()
        if not kinds_raised(present) - self.raised:
            self.settings = present
        elif not primitive.view:
            raise GraphError(
                self.owner_name,
                "numpy.errstate with 'raise' around an operation that is being traced",
                "errors about elements cannot be raised before these are there",
                "Ask with numpy.isfinite, or use errstate around the call of the traced function",
                place=position_of(*caller()),
            )

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Let a handle stand for the result of the assignment."""
        base = make_tensor(handle._value, handle._trace, handle._node)
        result = self.process(primitive, (base, *operands), params)
        self.rebind(handle, result)

    def rebind(self, handle: Tensor, result: Tensor) -> None:
        """Let a handle stand for another value; what is written under `no_grad` has the derivatives of what was."""
        if SPECIAL and is_stopped(self) and is_differentiable(result.dtype):
            base = make_tensor(handle._value, handle._trace, handle._node)
            result = self.process(overwritten, (base, result), NO_PARAMS)
        super().rebind(handle, result)

    def strides(self, tensor: Tensor) -> Strides:
        """Return the strides of the variable."""
        strides: Strides = tensor._value.strides
        return strides

    def below(self, tensor: Tensor) -> NoReturn:
        """Refuse: a variable has no elements yet."""
        code, offset = caller()
        variable = tensor._value
        asked = variable.name or expression_at(code, offset)
        name = asked if asked.isidentifier() or variable.name else f"a value in `{asked}`" if asked else "a value"
        error = TracedTruthError(
            self.owner_name,
            f"the elements of {name} ({aval_text(variable)}) were asked for while the function was being traced"
            f" ({position_of_user(code, offset)})",
            "operations on the Tensor as a whole are needed",
            remedy_at(code, offset, tensor.dtype),
        )
        error.writes = writes_at(code, offset)  # a Tensor takes it for an index
        raise error

    def alike(self, one: Tensor, other: Tensor) -> bool:
        """Tell whether two Tensors are the same expression of the same variables."""
        pairs, seen = [(one._value, other._value)], set()
        while pairs:
            pair = pairs.pop()
            if pair[0] is pair[1] or pair in seen:
                continue
            if not all(type(x) is Variable for x in pair):
                if any(type(x) is Variable for x in pair) or identity(pair[0]) != identity(pair[1]):
                    return False
                continue
            first, second = (self.definition(x) for x in pair)
            if first is None or second is None or not are_same_operation(first, second):
                return False
            if first.outputs.index(pair[0]) != second.outputs.index(pair[1]):
                return False
            seen.add(pair)
            pairs += zip(first.inputs, second.inputs, strict=True)
        return True

    def definition(self, variable: Variable) -> Equation | None:
        """Return the equation that binds a variable; None for inputs."""
        while self.known < len(self.equations):
            equation = self.equations[self.known]
            self.definitions.update(dict.fromkeys(equation.outputs, equation))
            self.known += 1
        return self.definitions.get(variable)

    def owner(self, tensor: Tensor) -> Any:
        """Return nothing: there is no memory yet."""
        return None

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return another Tensor for the same variable, which is never overwritten."""
        return self.tensor(tensor._value)

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says."""
        if ROLLING.strict:
            raise not_alike("the text of a value")
        return "being traced"

    def state(self, tensor: Tensor) -> NoReturn:
        """Refuse: there are no elements yet."""
        self.below(tensor)

    def graph(self, outputs: Sequence[Any]) -> Graph:
        """Return the graph of what has been recorded, captured values as its last inputs."""
        found = tuple(map(self.reference, outputs))
        captured = self.captured.values()
        for item in captured:
            self.require_unwritten(item)
        for handle in self.plain.values():
            assert isinstance(handle._trace, Plain)
            handle._trace.require_unwritten()
        return Graph((*self.inputs, *(item.variable for item in captured)), self.equations, found)

    def require_steady(self) -> None:
        """Raise if what must stay as it is has been changed; before anything is put back."""
        for require in self.steady:
            require()
        for call in calls_among(self.equations):
            call.require_unchanged()

    def captured_tensors(self) -> list[Tensor]:
        """Return the Tensors that the last inputs of the graph stand for."""
        return [item.tensor for item in self.captured.values()]

    def require_unwritten(self, item: Captured) -> None:
        """Raise a GraphError if a captured Tensor has been written to: the graph would read what it holds now."""
        if item.tensor._value is item.value:
            return
        origins = (e.origin for e in self.equations if any(x is item.variable for x in e.inputs))
        origin = next(origins, None) or self.place
        raise GraphError(
            self.owner_name,
            "a Tensor from outside that is written to after it has been used",
            "what a traced function captures must stay as it is",
            "Pass it as an argument, or write to it outside of the function",
            place=origin if isinstance(origin, Position) else position_of(*origin),
        )


def stage_function(
    function: Callable[[list[Tensor]], Sequence[Any]],
    avals: Sequence[Aval],
    label: str,
    names: Sequence[str] = (),
    orders: Sequence[Strides] = (),
    outside: Sequence[Tensor] = (),
    frozen: list[Tensor] | None = None,
) -> tuple[Graph, list[Tensor]]:
    """Write down what a function does; return the graph and the Tensors that it captured, which are its last inputs.

    Args:
        function: from a list of Tensors to a sequence of Tensors, numbers and arrays.
        avals: those of its arguments.
        label: what is being traced, for errors.
        names: what the inputs are called; the printer numbers them by default.
        orders: how they lie in memory, C order by default.
        outside: Tensors that the function can reach. What it computes of them alone is written down, too, where it
            would otherwise be computed once, while the function is traced.
        frozen: receives the Tensors that become constants since they do not require grad.
    """
    stage = Staging(next_level(), label)
    try:
        rows = zip_longest(avals, names, orders[: len(avals)])
        inputs = [stage.input(aval, name or "", strides) for aval, name, strides in rows]
        with inputs_for(stage, outside):
            outputs = list(map(output_of, function(inputs)))
            stage.require_steady()
        graph = stage.graph(outputs)
    finally:
        stage.end()
    if frozen is not None:
        frozen += [x for x in (reference() for reference in stage.frozen) if x is not None]
    return graph, stage.captured_tensors()


@contextmanager
def inputs_for(stage: Staging, outside: Sequence[Tensor]) -> Iterator[None]:
    """Let Tensors from outside stand for inputs of a graph meanwhile; what was written to goes on to stand for that."""
    adopted: list[tuple[Tensor, Tensor, Any]] = []
    try:
        for handle in outside:
            found = stage.captured.get(identity_now(handle)) or stage.capture(handle, handle)
            start = stage.tensor(found.variable)
            adopted.append((handle, snapshot(handle), start._value))
            rebind_handle(handle, start)
        yield
    finally:
        for handle, before, start in adopted:
            if handle._value is start:
                rebind_handle(handle, before)


def identity_now(tensor: Tensor) -> tuple[int, int, int]:
    """Return what tells what a Tensor stands for from everything else that lives."""
    return id(tensor._value), id(tensor._trace), id(tensor._node)


def are_same_operation(one: Equation, other: Equation) -> bool:
    """Tell whether two equations give the same for the same inputs."""
    return (
        one.primitive is other.primitive
        and len(one.inputs) == len(other.inputs)
        and identity_of_params(one.params) == identity_of_params(other.params)
    )


def output_of(value: Any) -> Any:
    """Return a result as a graph may have it: a Tensor, a Python number or an array."""
    return lasting(value) if type(value) is Tensor else value if is_number(value) else np.asarray(value)[()]


def shorten(operands: Sequence[Any]) -> Sequence[Any]:
    """Return operands with one element in memory for each long array of one number, such as a sweep makes of ones.

    What is computed of them, element by element, has the same bits, and lies alike if all are in C order.
    """
    for x in operands:
        if type(x) is np.ndarray and x.size > SHORT:
            break
    else:
        return operands
    if any(strides_of(x) is not None for x in operands if np.ndim(x)):
        return operands
    return [
        np.broadcast_to(x.flat[0], x.shape) if type(x) is np.ndarray and x.size > SHORT and is_uniform(x) else x
        for x in operands
    ]


def number_origin(place: tuple[CodeType, int]) -> Origin:
    """Return the origin of a new equation, whose number is less than that of the node that a tape makes for it."""
    origin = Origin(place)
    origin.number = next(CREATED)
    origin.node = getattr(place, "node", 0)
    return origin


def remedy_at(code: CodeType, offset: int, dtype: np.dtype[Any]) -> str:
    """Return what to do about an instruction that asked for elements, by what it does with them."""
    use = use_at(code, offset)
    if use.called and is_rule_asking(sys._getframe(1)):
        return CALLED_OUT
    remedy = remedy_by_source(code, offset)
    if remedy is not None:
        return remedy
    if use.indexes and dtype.kind in "iub":
        return (
            "Index with wengert.asarray(array)[index], where a list is wengert.asarray([i, j]) and a dictionary an "
            "array of its values, or pass the index, or the ends of a slice, in static_argnums"
        )
    if use.called and (dtype.kind in "iu" or (dtype.kind == "b" and is_function(vars(np).get(use.called)))):
        return (
            "Pass it in static_argnums, because shapes, axes and ranges are needed while tracing, or use "
            "wengert.fori_loop"
        )
    if dtype.kind == "b" and not position_of(code, offset).text:
        return (
            "Define the function in a file or notebook, because its source, which is read to convert decisions, is not "
            "available, or use wengert.cond and wengert.while_loop"
        )
    return "Use wengert.numpy functions, or wengert.cond and wengert.while_loop for decisions"


def counts_truths(primitive: Primitive, operands: Sequence[Any]) -> bool:
    """Tell whether an operator between Python numbers takes a truth for 0 or 1."""
    return primitive.counts and any(aval_of(x).dtype == np.bool_ for x in operands)


def read_only(value: Any) -> Any:
    """Return the memory of a Tensor, which is copied before the next write, as a literal."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def place_in_memory(array: np.ndarray[Any, Any]) -> Hashable:
    """Return what equal views of one memory share, as long as it is not freed."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def same_bits(array: np.ndarray[Any, Any], literal: Any) -> bool:
    """Tell whether an array still is what a literal was made from; not of items too wide for an integer."""
    if array is literal:
        return True
    if array.shape != literal.shape or array.dtype != literal.dtype:
        return False
    if array.dtype.kind == "c":
        return same_bits(array.real, literal.real) and same_bits(array.imag, literal.imag)
    if array.itemsize not in (1, 2, 4, 8):
        return False
    bits = f"u{array.itemsize}"
    return np.array_equal(array.view(bits), literal.view(bits))


def calls_among(equations: Sequence[Equation]) -> list[Primitive]:
    """Return the primitives of single calls in equations, and in the graphs that these run."""
    found = [e.primitive for e in equations if not e.primitive.registered]
    for equation in equations:
        if equation.primitive.structured:
            for _, graph in subgraphs(equation.params):
                found += derive(graph, "calls", partial(calls_among, graph.equations))
    return found


def variables_stay(name: str, functions: Sequence[Any]) -> Callable[[], None]:
    """Return what raises a GraphError if a variable that some functions capture has been set to something else since.

    Args:
        name: of what calls the functions, for errors.
        functions: these; those that they capture count, too.
    """
    place = caller()

    def cells_of(function: Any) -> Iterable[CellType]:
        if type(function) is not FunctionType:  # one with rules, or jitted
            function = attribute(function, "__wrapped__")
        return (function.__closure__ or ()) if type(function) is FunctionType else ()

    cells = reach(chain.from_iterable(map(cells_of, functions)), lambda cell: cells_of(content_of(cell)))
    kept = [(cell, content) for cell in cells if (content := content_of(cell)) is not UNBOUND]

    def require_unset() -> None:
        if any(content_of(cell) is not content for cell, content in kept):
            given = "a variable that a function with rules of its own captures, and that is set after the call"
            needed = "one value is needed, because a graph calls the function later"
            action = "Pass it as an argument, or give it another name"
            raise GraphError(name, given, needed, action, place=position_of(*place))

    return require_unset
