"""Complex numbers as pairs of real ones: what arranges, chooses and sums does so to each part, and products mix them.

In memory the parts are neighbours, along an axis of their own that is last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Form, form_of
from wengert.core.forms.view_forms import Place, View
from wengert.core.maps.index_maps import AxisIndex, identity_map
from wengert.core.primitives.kinds import Linear
from wengert.core.values.aval import PARTS, Aval
from wengert.kernel.checking import DTYPES
from wengert.lowering.nodes import Access, Nodes, Shape
from wengert.lowering.rules.contractions import contraction
from wengert.lowering.rules.joins import Part, choice
from wengert.lowering.rules.operands import Call, Pair, Refused, Rule, Value
from wengert.lowering.rules.scalars import Scalar, convert
from wengert.passes.equations import keyword_parameters, unknown_parameters

DType = np.dtype[Any]


def is_complex(aval: Aval) -> bool:
    """Tell whether values of a type are pairs."""
    return aval.dtype in PARTS


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the parts of complex numbers, and others as they are."""
    return PARTS.get(dtype, dtype)


# Memory


def parts_in_memory(nodes: Nodes, name: str, aval: Aval) -> Pair:
    """Return a complex input."""
    whole = nodes.input(name, (*aval.shape, 2), real_dtype(aval.dtype)).node
    return parts_of(whole, aval.shape)


def parts_of(whole: Any, shape: Shape) -> Pair:
    """Return the parts of an array of pairs."""
    own = identity_map(shape)
    return Pair(Access(whole, (*own, AxisIndex(0))), Access(whole, (*own, AxisIndex(1))))


def joined_parts(nodes: Nodes, value: Pair, shape: Shape) -> tuple[Access, Shape]:
    """Return the parts of an array of some shape as one array of pairs."""
    box = tuple([(0, n) for n in shape])
    own = (*identity_map(shape),)
    parts = [Part(x.through(own), (*box, (k, k + 1)), False) for k, x in enumerate(value)]
    return choice(nodes, (*shape, 2), value.real.node.dtype, parts), (*shape, 2)


# Equations


def complex_call(call: Call, operands: Sequence[Value], rule: Rule) -> Value | Refused:
    """Lower an equation with complex numbers.

    Args:
        call: the equation, of which `args` is to be filled in.
        operands: what stands for its operands.
        rule: what lowers the equation of real numbers.
    """
    operands = [truth(call, x) if isinstance(x, Pair) and is_index(call, i) else x for i, x in enumerate(operands)]
    if not any(isinstance(x, Pair) for x in operands) and not is_complex(call.out):
        return rule(half_of(call, operands, 0))
    halves = [half_of(call, operands, k) for k in (0, 1)]
    name, form, parts = call.primitive.name, form_of(call.primitive), call.primitive.parts
    if name in ("real", "imag"):
        return halves[name == "imag"].args[0]
    if name == "astype":
        return convert_complex(call, halves)
    if isinstance(form, Contraction):
        return product(call, halves)
    if parts == "each" and not is_complex(call.out):
        return Refused("imaginary parts that are lost, of which NumPy warns")
    if parts == "each" or is_arrangement(form):
        found = [rule(half) for half in halves]
        refused = next((part for part in found if isinstance(part, Refused)), None)
        if refused is not None:
            return refused
        pair = Pair(*[part for part in found if isinstance(part, Access)])
        return divided_by_real(call, pair) if name == "mean" else pair
    if not callable(parts) or unknown_parameters(call.params, keyword_parameters(parts)):
        return Refused(f"values of dtype {(*call.avals, call.out)[0].dtype}, of which no opcode knows")
    dtype = real_dtype(np.result_type(*[aval.number(1) if aval.weak else aval.dtype for aval in call.avals]))
    if dtype not in DTYPES:
        return Refused(f"values of dtype {dtype}")
    points = [(halves[0].scalar(i, dtype), halves[1].scalar(i, dtype)) for i in range(len(operands))]
    result = parts(*points, **call.params)
    if result is None:
        return Refused("operands that no opcode takes")
    return result.access if isinstance(result, Scalar) else Pair(*[part.access for part in result])


def divided_by_real(call: Call, quotient: Pair) -> Pair:
    """Return a quotient as NumPy divides by a complex number that is real: what is not finite enters both parts."""
    real, imaginary = (Scalar(call.nodes, part, call.out.shape) for part in quotient)
    return Pair((real + imaginary * 0).access, (imaginary - real * 0).access)


def is_arrangement(form: Form) -> bool:
    """Tell whether a form only says where elements go."""
    return isinstance(form, View | Place)


def half_of(call: Call, operands: Sequence[Value], k: int) -> Call:
    """Return an equation of the real parts (0), or of the imaginary ones (1), that of a real number being zero.

    Conditions and places have no parts.
    """
    args, avals = [], []
    for i, (value, aval) in enumerate(zip(operands, call.avals, strict=True)):
        dtype = np.dtype(bool) if is_complex(aval) and not isinstance(value, Pair) else real_dtype(aval.dtype)
        if isinstance(value, Pair):
            args.append(value[k])
        elif k == 0 or is_index(call, i):
            args.append(value)
        else:
            args.append(call.nodes.constant(0, dtype))
        avals.append(aval._replace(dtype=dtype))
    out = call.out._replace(dtype=real_dtype(call.out.dtype))
    return call._replace(args=args, avals=avals, out=out)


def truth(call: Call, condition: Pair) -> Access:
    """Return whether the numbers that a condition is differ from zero."""
    shape = call.shapes[0]
    real, imaginary = (convert(Scalar(call.nodes, part, shape), np.dtype(bool)) for part in condition)
    return (real | imaginary).access


def is_index(call: Call, i: int) -> bool:
    """Tell whether an operand is a condition, or places."""
    primitive = call.primitive
    if primitive.parts != "each":
        return False
    if isinstance(primitive, Linear):  # of variadic ones all operands are linear
        return i >= len(primitive.transposes)
    return not isinstance(primitive.loop, np.ufunc) and i in primitive.loop


def convert_complex(call: Call, halves: Sequence[Call]) -> Value | Refused:
    """Lower a conversion from or to complex numbers: to real ones the imaginary part is dropped."""
    dtype = real_dtype(call.out.dtype)
    if dtype not in DTYPES:
        return Refused(f"values of dtype {dtype}")
    if call.out.dtype.kind == "b":
        real, imaginary = (half.scalar(0, dtype) for half in halves)
        return (real | imaginary).access
    parts = [half.scalar(0, dtype).access for half in halves]
    return Pair(*parts) if is_complex(call.out) else parts[0]


def product(call: Call, halves: Sequence[Call]) -> Value | Refused:
    """Lower a sum of products of complex numbers: four of real ones."""
    form = form_of(call.primitive)
    assert isinstance(form, Contraction)
    labels = form.record(call.shapes, call.params)
    count = len(call.avals)
    if count > 2:
        return Refused("products of several complex numbers")

    def sum_of(*parts: int) -> Scalar | Refused:
        args = [halves[part].args[i] for i, part in enumerate(parts)]
        found = contraction(halves[0]._replace(args=args))
        if isinstance(found, Refused):
            return found
        flips = sum([part and flag for part, flag in zip(parts, labels.conjugated, strict=True)])
        term = Scalar(call.nodes, found, call.out.shape)
        return -term if flips % 2 else term

    terms = [sum_of(*parts) for parts in np.ndindex((2,) * count)]
    if any(isinstance(term, Refused) for term in terms):
        return next(term for term in terms if isinstance(term, Refused))
    known = [term for term in terms if isinstance(term, Scalar)]
    if count == 1:
        return Pair(known[0].access, known[1].access)
    return Pair((known[0] - known[3]).access, (known[1] + known[2]).access)


def literal_parts(nodes: Nodes, value: Any) -> Pair:
    """Return a complex number or array of the graph."""
    array = np.asarray(value)
    return Pair(nodes.array(array.real), nodes.array(array.imag))
