"""What Python says where it cannot take a Tensor: its errors give way to ours, which name the user's line."""

from __future__ import annotations

import re

from wengert.core.diagnostics.source_positions import is_own, position_of
from wengert.errors import DtypeError, TracedTruthError, WengertError

ANSWERED = re.compile(r"\b__(bool|float|int|index|complex)__\b.* (?:return(?:ed)?|type) .*\bTensor\b")
"""What Python says of a method that a class of the user's has for numbers or truths, and that gives a Tensor."""
MODULO = "Tensor.__pow__() takes 2 positional arguments but 3 were given"
BY_ITSELF = "Compute with the Tensor itself, in place of the object, or return a number of Python's"


def about_tensor(error: TypeError) -> WengertError | None:
    """Return what to raise in place of an error of Python's about a Tensor; None if it is about something else.

    What a method answers may decide in a function that is traced once it is converted, and so is asked like a truth.
    """
    text = str(error)
    if text == MODULO:
        needed = "two are needed, as Python takes powers modulo a number of whole numbers alone"
        return DtypeError("pow", "three arguments, of which one is a Tensor", needed, "Write x**y % z")
    found = ANSWERED.search(text)
    if found is None:
        return None
    kind = found[1]
    at, place = error.__traceback__, ""
    while at is not None:
        code = at.tb_frame.f_code
        place = place if is_own(code.co_filename) else f" ({position_of(code, at.tb_lasti)})"
        at = at.tb_next
    needed = f"what Python takes for {'an' if kind in ('int', 'index') else 'a'} {kind} is needed"
    action = "Write bool(...) around what it returns" if kind == "bool" else BY_ITSELF
    return TracedTruthError(f"__{kind}__", f"a method that returned a Tensor{place}", needed, action)
