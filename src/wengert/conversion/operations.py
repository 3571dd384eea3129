"""What converted code calls: `if` becomes `if_stmt`, and so on."""

from __future__ import annotations

from wengert.conversion.attributes import attribute, augmented_target, managed, target
from wengert.conversion.branches import and_, if_exp, if_stmt, not_, or_, running
from wengert.conversion.builtin_functions import FUNCTIONS
from wengert.conversion.calls import BUILTINS, callee, callee_in_for
from wengert.conversion.loops import decision, for_stmt, while_stmt
from wengert.conversion.operators import addend, asked, augmented, compare, formatted, is_plain, iterated, left, right
from wengert.conversion.raising import handling
from wengert.conversion.traced_lookups import indexed

__all__ = [
    "addend",
    "and_",
    "asked",
    "attribute",
    "augmented",
    "augmented_target",
    "callee",
    "callee_in_for",
    "compare",
    "decision",
    "for_stmt",
    "formatted",
    "handling",
    "if_exp",
    "if_stmt",
    "indexed",
    "is_plain",
    "iterated",
    "left",
    "managed",
    "not_",
    "or_",
    "right",
    "running",
    "target",
    "while_stmt",
]

BUILTINS.update(FUNCTIONS)
