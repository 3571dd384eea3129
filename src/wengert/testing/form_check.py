"""Whether a primitive's form is true: what lanes and tracing take from it is compared with evaluations one by one.

And whether it leaves the memory of others alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NoReturn

import numpy as np

from wengert.core.forms.abstract_evaluation import abstract
from wengert.core.forms.form import Selection, form_of
from wengert.core.graph.equation import Variable
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of, is_differentiable, strong
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import raw
from wengert.errors import describe
from wengert.transforms.vmap import vmap


def check_form(
    primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], generator: np.random.Generator
) -> None:
    """Raise an AssertionError where lanes or traced shapes of a primitive are not what evaluating it gives."""
    if isinstance(form_of(primitive), Selection):  # shapes depend on elements: nothing follows from it
        return
    values = [strong(raw(x)) for x in operands]
    check_memory(primitive, values, params)
    found = results_of(primitive, values, params)
    told = abstract(primitive, [Variable(*aval_of(x)[:2]) for x in values], params)
    for x, aval in zip(found, told, strict=True):
        if (x.shape, x.dtype) != (aval.shape, aval.dtype):
            given = (
                f"an evaluation gave {x.dtype}{list(x.shape)}, and from its form follows {aval.dtype}{list(aval.shape)}"
            )
            raise AssertionError(describe(f"check_rule({primitive.name})", given, "both alike are needed", CORRECT))
    check_lanes(primitive, values, params, generator)


CORRECT = "Correct the form of the declaration, or leave it out"


def check_memory(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
    """Raise an AssertionError where an evaluation writes to its operands, or to the results of the one before."""
    given = [np.array(x) if isinstance(x, np.ndarray) else x for x in operands]
    first = results_of(primitive, given, params)
    kept = [np.array(x) for x in first]
    if not all(map(are_equal, given, operands)):
        refuse_memory(primitive, "an evaluation wrote to an operand", "operands left as they are are needed")
    smaller = [x * aval_of(x).dtype.type(0.9) if is_differentiable(aval_of(x).dtype) else x for x in given]
    results_of(primitive, smaller, params)
    if not all(map(are_equal, first, kept)):
        refuse_memory(primitive, "an evaluation wrote to the result of the one before", "new memory is needed")


def are_equal(one: Any, other: Any) -> bool:
    """Tell whether two arrays have equal elements, NaN among them."""
    return np.array_equal(one, other, equal_nan=aval_of(one).dtype.kind in "fc")


def refuse_memory(primitive: Primitive, given: str, needed: str) -> NoReturn:
    """Raise an AssertionError about what an evaluation writes to."""
    raise AssertionError(describe(f"check_rule({primitive.name})", given, needed, "Evaluate on a copy, or return one"))


def results_of(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the results of a primitive as arrays."""
    found = apply(primitive, *operands, **params)
    return [np.asarray(raw(x)) for x in (found if isinstance(found, tuple) else (found,))]


def check_lanes(
    primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], generator: np.random.Generator
) -> None:
    """Raise an AssertionError where all lanes at once are not what one after the other is.

    Each operand that has derivatives has lanes by itself, then all have: each is the operand made up to a tenth
    smaller, which leaves few domains. There are as many lanes as no axis is long.
    """
    smooth = [i for i, x in enumerate(operands) if is_differentiable(aval_of(x).dtype)]
    size = next(n for n in count(2) if all(n not in aval_of(x).shape for x in operands))
    lanes = {i: np.stack([operands[i] * scale(operands[i], generator) for _ in range(size)]) for i in smooth}
    for chosen in [*([i] for i in smooth), smooth] if len(smooth) > 1 else [smooth] if smooth else []:
        given = [lanes[i] if i in chosen else x for i, x in enumerate(operands)]
        axes = tuple([0 if i in chosen else None for i in range(len(operands))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that they run one after the other
            together = vmap(lambda *xs: apply(primitive, *xs, **params), axes)(*given)
        alone = zip(
            *[
                results_of(primitive, [x[k] if i in chosen else x for i, x in enumerate(given)], params)
                for k in range(size)
            ],
            strict=True,
        )
        for x, y in zip(together if isinstance(together, tuple) else (together,), alone, strict=True):
            compare(primitive, np.asarray(x), np.stack(y))


def scale(value: Any, generator: np.random.Generator) -> Any:
    """Return factors between 0.9 and 1 in the dtype of a value."""
    return generator.uniform(0.9, 1.0, aval_of(value).shape).astype(value.real.dtype)


def compare(primitive: Primitive, together: np.ndarray[Any, Any], alone: np.ndarray[Any, Any]) -> None:
    """Raise an AssertionError unless lanes are equal up to rounding."""
    given = ""
    if together.shape != alone.shape:
        given = f"vmap gave shape {together.shape}, and a loop over {len(alone)} lanes {alone.shape}"
    elif not np.allclose(together, alone, rtol=tolerance(alone), atol=tolerance(alone), equal_nan=True):
        wrong = ~np.isclose(together, alone, rtol=tolerance(alone), atol=tolerance(alone), equal_nan=True)
        place = tuple(map(int, np.argwhere(wrong)[0]))
        given = f"vmap gave {together[place]!s} at {place}, and a loop over the lanes {alone[place]!s}"
    if given:
        raise AssertionError(describe(f"check_rule({primitive.name})", given, "both alike are needed", CORRECT))


def tolerance(array: np.ndarray[Any, Any]) -> float:
    """Return a thousand roundings of an array's dtype; nothing for whole numbers."""
    return 1e3 * float(np.finfo(array.dtype).eps) if array.dtype.kind in "fc" else 0.0
