"""Tools for testing derivatives.

`check_grads` compares derivatives with differences of the function itself, `check_rule` the rules that a user gave
with each other too.
"""

from typing import TYPE_CHECKING

from wengert.support.hints import names_on_demand
from wengert.testing.gradient_check import check_grads
from wengert.testing.rule_check import check_rule

__all__ = ["check_grads", "check_rule"]

if not TYPE_CHECKING:  # checkers know the names
    __getattr__ = names_on_demand("wengert.testing")
