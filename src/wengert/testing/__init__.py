"""Tools for testing derivatives.

`check_grads` compares derivatives with differences of the function itself, `check_rule` the rules that a user gave
with each other too.
"""

from wengert.testing.grads import check_grads
from wengert.testing.rules import check_rule

__all__ = ["check_grads", "check_rule"]
