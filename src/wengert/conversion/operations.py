"""What converted code calls: `if` becomes `if_stmt`, and so on; and `convert`, which needs all of it."""

from __future__ import annotations

from wengert.conversion.branch_statements import and_, if_exp, if_stmt, none_set, not_, or_
from wengert.conversion.builtin_functions import FUNCTIONS
from wengert.conversion.called_functions import BUILTINS, RUNTIME, callee, callee_in_for, convert
from wengert.conversion.deferred_errors import handle_errors
from wengert.conversion.loop_statements import decide_items, for_stmt, while_stmt
from wengert.conversion.traced_lookups import index_target
from wengert.conversion.user_attributes import augment_target, change_target, manage, read_attribute
from wengert.conversion.user_operators import (
    addend,
    ask_truth,
    augment,
    compare,
    formatting_operand,
    is_plain,
    iterate,
    left_operand,
    right_operand,
)

__all__ = [
    "addend",
    "and_",
    "ask_truth",
    "augment",
    "augment_target",
    "callee",
    "callee_in_for",
    "change_target",
    "compare",
    "convert",
    "decide_items",
    "for_stmt",
    "formatting_operand",
    "handle_errors",
    "if_exp",
    "if_stmt",
    "index_target",
    "is_plain",
    "iterate",
    "left_operand",
    "manage",
    "none_set",
    "not_",
    "or_",
    "read_attribute",
    "right_operand",
    "while_stmt",
]

BUILTINS.update(FUNCTIONS)
vars(RUNTIME).update({name: globals()[name] for name in __all__})
