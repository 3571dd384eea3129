"""Declarations: one function for each kind of primitive, which makes the primitive and enters it in the registry."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from wengert.core.diagnostics.source_positions import caller, is_own
from wengert.core.forms.form import form_of
from wengert.core.forms.view_forms import View
from wengert.core.primitives.declaration_checks import Claim, Evaluation
from wengert.core.primitives.kinds import Elementwise, Linear, Multilinear
from wengert.core.primitives.opaque_kinds import Constant, Opaque
from wengert.core.primitives.primitive import MOST_SAVINGS, PRIMITIVES, Occasion, Primitive, register
from wengert.support.caches import Cache, cached

P = TypeVar("P", Constant, Elementwise, Linear, Multilinear, Opaque)
Arguments = ParamSpec("Arguments")


def declaration(kind: Callable[Arguments, P], name: str, summary: str, example: str) -> Callable[Arguments, P]:
    """Return the function that takes what the constructor of a kind takes, and registers the primitive it makes.

    Its docstring is the summary, then the arguments and errors of the kind, then the example.
    """

    def declare(*args: Arguments.args, **kwargs: Arguments.kwargs) -> P:
        primitive = kind(*args, **kwargs)
        frame = sys._getframe(1)
        if not is_own(frame.f_code.co_filename):
            hold(primitive)
            primitive.occasion = occasion_of(frame)
            give_way_to(primitive)
        register(primitive)
        return primitive

    registered = "Enter it in the registry, where its name must be new or that of a module run again, and return it."
    _, _, details = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    arguments, raises, errors = details.partition(">>>")[0].partition("Raises:")
    parts = [summary, registered, arguments.strip(), "Returns:\n    The primitive.", (raises + errors).strip(), example]
    declare.__doc__ = "\n\n".join(filter(None, parts))
    declare.__name__ = declare.__qualname__ = name
    signature = inspect.signature(kind)
    declare.__signature__ = signature.replace(return_annotation=kind)  # type: ignore[attr-defined]  # for help()
    return declare


def occasion_of(frame: FrameType) -> Occasion:
    """Return when what is being declared in a frame is declared."""
    module = str(frame.f_globals.get("__name__"))
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_name != "<module>":
        outer = outer.f_back
    return Occasion(module, outer and outer.f_code)


def give_way_to(primitive: Primitive) -> None:
    """Take the name from a primitive that the same module, reloaded, or a cell of a notebook, run again, declares anew.

    Both stay what they are: from now on graphs know each by itself, and not by the name.
    """
    former = PRIMITIVES.get(primitive.name)
    if former is not None and is_run_again(former.occasion, primitive.occasion):
        former.registered = False
        primitive.renewed = True
        del PRIMITIVES[primitive.name]


def is_run_again(before: Occasion | None, now: Occasion | None) -> bool:
    """Tell whether a module was reloaded, or a cell run again, between two declarations by one name."""
    return before is not None and now is not None and before.module == now.module and before.body is not now.body


def hold(primitive: Constant | Elementwise | Linear | Multilinear | Opaque) -> None:
    """Compare from now on what the functions of a user's primitive give with what its declaration says."""
    claim = Claim(primitive.name, caller(2))
    form = form_of(primitive)
    form.require_sound(primitive.name)
    primitive.held = True
    primitive.hold_to(claim)
    if not isinstance(primitive.evaluate, np.ufunc):
        view = isinstance(form, View) or getattr(primitive, "view", False)
        primitive.evaluate = Evaluation(primitive.evaluate, claim, form, primitive.outputs, view)
    if primitive.batch is not None:
        primitive.batch = claim.batching(primitive.batch)


elementwise = declaration(
    Elementwise,
    "elementwise",
    "Declare a primitive with a diagonal Jacobian.",
    """>>> from wengert.extend import apply
>>> cube = elementwise("example.cube", lambda x: x**3, d=lambda t, _out, x: t * 3 * x**2)
>>> apply(cube, 2.0)
np.float64(8.0)""",
)
linear = declaration(
    Linear,
    "linear",
    "Declare a primitive that is linear in its leading operands; the remaining operands are constants of the map.",
    """>>> from wengert.extend import apply
>>> halve = linear("example.halve", lambda x: x / 2, transpose=lambda ct, _aval: ct / 2)
>>> apply(halve, 3.0)
np.float64(1.5)""",
)
multilinear = declaration(
    Multilinear,
    "multilinear",
    "Declare a primitive that is linear in each of several operands.",
    """>>> from wengert.extend import apply
>>> scale = multilinear("example.scale", lambda x, y: x * y, (lambda ct, _, y: ct * y, lambda ct, _, x: ct * x))
>>> apply(scale, 2.0, 3.0)
np.float64(6.0)""",
)
opaque = declaration(
    Opaque,
    "opaque",
    "Declare a primitive by its vjp.",
    """>>> import numpy as np
>>> from wengert.extend import apply
>>> length = opaque("example.length", np.linalg.norm, vjp=lambda ct, out, x: ct * x / out)
>>> apply(length, np.array([3.0, 4.0]))
np.float64(5.0)""",
)
constant = declaration(
    Constant,
    "constant",
    "Declare a primitive whose derivative is a structural zero.",
    """>>> from wengert.extend import apply
>>> parity = constant("example.parity", lambda x: x % 2)
>>> apply(parity, 5.0)
np.float64(1.0)""",
)


def variant(original: Opaque, name: str, evaluate: Callable[..., Any], **changes: Any) -> Opaque:
    """Declare a primitive with the statement of another one: the same operation, as another library evaluates it.

    Changes are attributes that differ, too.
    """
    twin = copy.copy(original)
    for computed in [key for key in vars(twin) if isinstance(getattr(type(twin), key, None), cached)]:
        delattr(twin, computed)
    vars(twin).update(name=name, evaluate=evaluate, savings=Cache(most=MOST_SAVINGS), **changes)
    register(twin)
    return twin
