"""Control flow: branches, loops and calls that differentiate, batch and compile."""

from wengert.control.call import call
from wengert.control.cond import cond, switch
from wengert.control.scan import scan
from wengert.control.while_loop import fori_loop, while_loop

__all__ = ["call", "cond", "fori_loop", "scan", "switch", "while_loop"]
