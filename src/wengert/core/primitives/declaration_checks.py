"""Claims: what users' declarations say of their functions, compared with what these give whenever they are called.

The library's own declarations are tested, so their functions are called as they are. Those of users are wrapped, which
takes 0.9 microseconds a call, and 3 where operands broadcast. Shapes may depend on elements, so each call is compared.
Those that may ask traced values for their truth are called in their converted form, by what layers above enter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.forms.form import Form, Pointwise, Shape, told_by
from wengert.core.forms.view_forms import Like
from wengert.core.primitives.signatures import Rule
from wengert.core.values.aval import NUMBERS, UNKNOWN, aval_of, aval_text, shape_of, strong
from wengert.core.values.tensor import Tensor, constant_tensor, current, is_staged, unwrap_plain
from wengert.errors import RegistrationError


class Claim:
    """Hold whose functions are compared, and where they were declared.

    Args:
        name: the name of the primitive.
        place: code and instruction offset of its declaration.
    """

    def __init__(self, name: str, place: tuple[CodeType, int]) -> None:
        self.name = name
        self.place = place

    def error_about(self, given: str, needed: str) -> RegistrationError:
        """Return the error about what a function gave, with the lines that asked for it and that declared it."""
        asked, declared = position_of(*caller()), position_of(*self.place)
        action = f"Correct its declaration ({declared.filename}, line {declared.line})"
        return RegistrationError(f"primitive {self.name}", f"{given} ({asked})", needed, action)

    def diagonal(self, rule: Rule) -> Rule:
        """Return the rule of an operand of an elementwise primitive, whose result must have the shape of what it needs.

        That of a cotangent is the result's; a tangent may have that of an operand, which the rule broadcasts.
        """
        call = alike(rule)

        @functools.wraps(rule)
        def checked_rule(t: Any, out: Any, *xs: Any, **params: Any) -> Any:
            found = call(t, out, *xs, **params)
            if type(found) is not ndarray or found.shape != t.shape:
                found = self.array("its rule d", found)
                shape, least = found.shape, shape_of(t)
                shapes = [least, *[shape_of(x) for x in (out, *xs) if x is not None]]
                if shape != least and not lies_between(shape, least, shapes):
                    needed = "a rule acts on each element by itself, so that shape is needed"
                    raise self.error_about(f"its rule d gave shape {shape} for t of shape {least}", needed)
            return found

        return checked_rule

    def transpose(self, rule: Rule, what: str = "its transpose") -> Rule:
        """Return the transpose or rule of an operand, which must give an array of that operand's shape."""
        call = alike(rule)

        @functools.wraps(rule)
        def checked_rule(ct: Any, aval: Any, *others: Any, **params: Any) -> Any:
            found = self.array(what, call(ct, aval, *others, **params))
            self.require_like_operand(what, found, aval, (ct, *others))
            return found

        return checked_rule

    def variadic(self, rule: Rule) -> Rule:
        """Return the transpose of all operands, which must give an array of its shape for each that is asked for."""
        call = alike(rule)

        @functools.wraps(rule)
        def checked_rule(ct: Any, avals: Sequence[Any], **params: Any) -> Any:
            found = call(ct, avals, **params)
            if not isinstance(found, tuple | list) or len(found) != len(avals):
                given = f"{len(found)} cotangents" if isinstance(found, tuple | list) else name_value(found)
                raise self.error_about(f"its transpose gave {given}", f"{len(avals)} are needed, one for each operand")
            self.require_cotangents("its transpose", found, avals, (ct,))
            return found

        return checked_rule

    def pushforward(self, rule: Rule) -> Rule:
        """Return the jvp of an opaque primitive, whose tangents must have the shapes of the results."""
        call = alike(rule)

        @functools.wraps(rule)
        def checked_rule(tangents: Any, out: Any, *operands: Any, **params: Any) -> Any:
            found = call(tangents, out, *operands, **params)
            outs = out if isinstance(out, tuple) else (out,)
            moved = found if isinstance(out, tuple) else (found,)
            if not isinstance(moved, tuple | list) or len(moved) != len(outs):
                given = f"{len(moved)} tangents" if isinstance(moved, tuple | list) else name_value(moved)
                raise self.error_about(f"its jvp gave {given}", f"{len(outs)} are needed, one for each result")
            for t, y in zip(moved, outs, strict=True):
                if t is not None and y is not None and shape_of(self.array("its jvp", t)) != shape_of(y):
                    given = f"its jvp gave shape {shape_of(t)} for a result of shape {shape_of(y)}"
                    raise self.error_about(given, "a tangent has the shape of its result")
            return found

        return checked_rule

    def batching(self, rule: Rule) -> Rule:
        """Return the rule for lanes, whose results must have the batch axis in front."""
        call = alike(rule)

        @functools.wraps(rule)
        def checked_rule(primitive: Any, size: int, operands: Any, batched: Any, params: Any) -> Any:
            found = call(primitive, size, operands, batched, params)
            for out in found if isinstance(found, tuple) else (found,):
                shape = self.array("its batch rule", out).shape
                if shape[:1] != (size,):
                    raise self.error_about(f"its batch rule gave shape {shape}", f"{size} lanes in front are needed")
            return found

        return checked_rule

    def require_cotangents(
        self, what: str, cts: Sequence[Any], avals: Sequence[Any], others: Sequence[Any]
    ) -> Sequence[Any]:
        """Return the cotangents of operands, after comparing those that are asked for; None stands for zeros."""
        found = [None if c is None or aval is None else self.array(what, c) for c, aval in zip(cts, avals, strict=True)]
        for ct, aval in zip(found, avals, strict=True):
            if ct is not None:
                self.require_like_operand(what, ct, aval, others)
        return found

    def require_like_operand(self, what: str, ct: Any, aval: Any, others: Sequence[Any]) -> None:
        """Raise a RegistrationError unless a cotangent is as its operand; complex ones may come from complex values."""
        if ct.shape != aval.shape and UNKNOWN not in (*ct.shape, *aval.shape):
            given = f"{what} gave a cotangent of shape {ct.shape}"
            raise self.error_about(given, f"the shape {aval.shape} of the operand is needed")
        if ct.dtype.kind == "c" and aval.dtype.kind != "c" and not any(map(is_complex, others)):
            given = f"{what} gave a cotangent of dtype {ct.dtype} where all values are real"
            raise self.error_about(given, f"a real one is needed for an operand of dtype {aval.dtype}")

    def array(self, what: str, value: Any) -> Any:
        """Return what a function gave, numbers as NumPy scalars; a RegistrationError if it is no array of numbers."""
        kind = type(value)
        if kind is ndarray or kind is Tensor or isinstance(value, ndarray | np.generic):
            if value.dtype.kind in "biufc":
                return value
        elif kind in NUMBERS:
            return strong(value)
        raise self.error_about(f"{what} gave {name_value(value)}", "an array of numbers is needed")


class Evaluation:
    """Be the evaluation of a user's primitive, whose results must have the shapes that its form tells.

    Only those of a view may be memory of operands; of others that would be written to unseen.
    """

    def __init__(self, function: Callable[..., Any], claim: Claim, form: Form, outputs: int, view: bool) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.claim = claim
        self.form = form
        self.outputs = outputs
        self.view = view
        self.alone = outputs == 1 and type(form) is Pointwise

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """Return what the function gives."""
        found = self.function(*operands, **params)
        if self.alone and type(found) is ndarray and found.base is None:  # as most are
            shape, dtype = found.shape, found.dtype
            for x in operands:
                if type(x) is not ndarray or x.shape != shape or x.dtype is not dtype or x is found:
                    break
            else:
                return found
        self.require(found, operands, params)
        if self.view:
            return found
        return tuple([own(x, operands) for x in found]) if isinstance(found, tuple) else own(found, operands)

    def require(self, found: Any, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Raise a RegistrationError unless results are as many and of the shapes that were declared."""
        claim, what = self.claim, "its evaluation"
        if isinstance(found, tuple) != (self.outputs != 1) or (self.outputs != 1 and len(found) != self.outputs):
            given = f"a tuple of {len(found)}" if isinstance(found, tuple) else name_value(found)
            raise claim.error_about(f"{what} gave {given}", f"outputs={self.outputs} was declared")
        outs = [claim.array(what, x) for x in (found if isinstance(found, tuple) else (found,))]
        if isinstance(self.form, Like):
            self.require_like(self.form, outs, operands, params)
        shapes = list(map(shape_of, operands))
        try:
            told = self.form.shapes(shapes, params)
        except KeyError as error:
            needed = f"its form, {type(self.form).__name__}, needs it, and the evaluation takes it"
            raise claim.error_about(f"it was applied without the parameter {error}", needed) from None
        for out, shape in zip(outs, told or (), strict=False):
            if len(shape) != len(out.shape) or any(
                wanted not in (n, UNKNOWN) for n, wanted in zip(out.shape, shape, strict=True)
            ):
                given = f"{what} gave shape {out.shape} for operands of shapes {', '.join(map(str, shapes))}"
                lengths = ", ".join("any" if n == UNKNOWN else str(n) for n in shape)
                text = f"({lengths},)" if len(shape) == 1 else f"({lengths})"
                raise claim.error_about(given, f"{text} is needed by its form, {type(self.form).__name__}")

    def require_like(self, like: Like, outs: Sequence[Any], operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Raise a RegistrationError unless results have the shapes and dtypes of what they are said to be like."""
        told, _ = told_by(like.function, operands, params)
        for out, aval in zip(outs, told, strict=False):
            if (out.shape, out.dtype) != (aval.shape, aval.dtype):
                needed = f"{aval_text(aval)} is needed by its form, Like"
                raise self.claim.error_about(f"its evaluation gave {aval_text(aval_of(out))}", needed)
        if len(told) != len(outs):
            raise self.claim.error_about(f"its form Like gave {len(told)} arrays", f"outputs={len(outs)} was declared")


def own(found: Any, operands: Sequence[Any]) -> Any:
    """Return a result in memory of its own: a copy if it may lie in that of an operand."""
    if not isinstance(found, ndarray):
        return found
    owns = found.base is None  # then it is an operand's only if it is that or what that is a view of
    for x in operands:
        if isinstance(x, ndarray) and (x is found or x.base is found if owns else np.may_share_memory(found, x)):
            return found.copy(order="K")
    return found


def alike(rule: Rule) -> Rule:
    """Return a rule that is given arrays as Tensors where it is given Tensors: these may index them, or be written.

    Among what is traced or differs from lane to lane a cotangent or tangent may be an array, known already. With traced
    ones it may choose and repeat as they say.
    """

    @functools.wraps(rule)
    def calling(*values: Any, **params: Any) -> Any:
        for x in values:
            kind = type(x)
            if kind is Tensor or ((kind is tuple or kind is list) and any(type(part) is Tensor for part in x)):
                break
        else:
            return rule(*values, **params)
        parts = [part for x in values for part in (x if type(x) in (tuple, list) else (x,))]
        found = in_form(parts, rule, lambda form: form(*map(as_read, values), **params))
        return type(found)(map(unwrap_result, found)) if type(found) in (tuple, list) else unwrap_result(found)

    return calling


def as_read(value: Any) -> Any:
    """Return an array as a Tensor whose memory is left alone by writes, also in a list or tuple; all else as it is."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map(as_read, value))
    if kind is not ndarray:
        return value
    tensor = constant_tensor(value)
    tensor._kept = True
    return tensor


def unwrap_result(value: Any) -> Any:
    """Return a result without the Tensor around it if it is a plain one."""
    return unwrap_plain(current(value)) if type(value) is Tensor else value


def lies_between(shape: Shape, least: Shape, shapes: Sequence[Shape]) -> bool:
    """Tell whether a shape is between one and what this broadcasts to with others."""
    if any(UNKNOWN in some for some in (shape, *shapes)):
        return True
    try:
        most = np.broadcast_shapes(*shapes)
        return np.broadcast_shapes(shape, least) == shape and np.broadcast_shapes(shape, most) == most
    except ValueError:
        return False


def is_complex(value: Any) -> bool:
    """Tell whether a value, or one of a list or tuple of them, is complex."""
    if isinstance(value, list | tuple):
        return any(map(is_complex, value))
    return value is not None and aval_of(value).dtype.kind == "c"


def name_value(value: Any) -> str:
    """Return what an error calls a value that is no array."""
    if value is None:
        return "None"
    kind = type(value).__name__
    article = "an" if kind.startswith(("a", "e", "i", "o", "nd")) else "a"
    return f"{article} {kind}" + (f" of dtype {value.dtype}" if hasattr(value, "dtype") else "")


CONVERTING: list[Callable[[Rule, Callable[[Rule], Any]], Any]] = []
"""What calls a user's function that may ask traced values for their truth; a layer above enters it."""
TRACING_CALLS: list[Callable[[Any, Sequence[Any], Sequence[Any]], tuple[Any, Callable[[], None] | None]]] = []
"""What traces a call of a function with rules to a graph of its values, if it can; a layer above enters it.

And returns what raises if what the function reads has been changed since.
"""


def in_form(values: Sequence[Any], function: Rule, run: Callable[[Rule], Any]) -> Any:
    """Return what `run` makes of a user's function; of its converted form where it asks traced values for their truth.

    Where none of the values that it computes with is traced it is called as it is.
    """
    convert = CONVERTING and any(map(is_staged, values))  # the layer above may not have been asked for yet
    return CONVERTING[0](function, run) if convert else run(function)
