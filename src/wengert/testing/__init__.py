"""Tools for testing derivatives.

`check_grads` compares derivatives with differences of the function itself, `check_rule` the rules that a user gave
with each other too.
"""

from typing import TYPE_CHECKING

from wengert._otherwise import absent
from wengert.testing.grads import check_grads
from wengert.testing.rules import check_rule

__all__ = ["check_grads", "check_rule"]

CHECKED = "check_grads(f, *args)"
OTHERWISE = {
    **dict.fromkeys(("check_jvp", "check_vjp", "gradcheck"), CHECKED),
    "gradgradcheck": "check_grads(f, *args, order=2)",
    "assert_close": "numpy.testing.assert_allclose",
    "assert_allclose": "numpy.testing.assert_allclose",
}
"""What is written here for names of JAX, PyTorch and NumPy."""

if not TYPE_CHECKING:  # checkers know the names
    __getattr__ = absent("wengert.testing", OTHERWISE)
