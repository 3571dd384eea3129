"""Values of variables on the command line: `x=2`, `x=[1,2,3]`, `x=@file.npy`."""

from __future__ import annotations

import ast
import keyword
import tokenize
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.cli.commands import unusable
from wengert.errors import WengertError

UNREADABLE = (ValueError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError)


def read_variables(texts: Sequence[str], compute: Callable[[str], Any]) -> dict[str, Any]:
    """Return names and values of variables.

    `compute` returns the number that a formula without variables stands for.

    Returns:
        The values by name: floats, complex numbers or arrays of them.

    Raises:
        UsageError: one of the texts is malformed, repeats a name or names a file that cannot be used.

    >>> read_variables(["x=2", "y=[1, 2]"], float)
    {'x': 2.0, 'y': array([1., 2.])}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = unicodedata.normalize("NFKC", name.strip())  # as Python reads names
        if not sign or not name.isidentifier() or keyword.iskeyword(name):
            raise unusable(f"{text!r}", "a variable's name, = and a value are needed", "Write x=2, for instance")
        if name in found:
            raise unusable(f"{name} with two values", "one value for each variable is needed", f"Give {name} once")
        found[name] = read_file(name, value[1:]) if value.startswith("@") else read_value(name, value, compute)
    return found


def read_value(name: str, text: str, compute: Callable[[str], Any]) -> Any:
    """Return the number or array that a text stands for."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the spelling of literals
            array = np.array(ast.literal_eval(text.strip()))
            if array.dtype.kind in "iuO":
                array = array.astype(float)
    except UNREADABLE:
        array = np.array("")
    if array.dtype.kind not in "fc":
        try:
            return compute(text)
        except (WengertError, *UNREADABLE, LookupError):
            raise unusable(
                f"{name}={text}",
                "a number or a list of numbers, all rows of the same length, is needed",
                f"Write {name}=2, {name}=pi/4, {name}=[1,2,3] or {name}=@file.npy",
            ) from None
    return array if array.ndim else array.item()


def read_file(name: str, path: str) -> Any:
    """Return the array in a file in NumPy's format; files that hold Python objects are refused."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers of old versions
            array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        reason = error.strerror or str(error)
        raise unusable(
            f"{name}=@{path}, which cannot be read ({reason})", "a readable file is needed", "Correct its path"
        ) from None
    except (*UNREADABLE, EOFError, KeyError, tokenize.TokenError) as error:
        raise unusable(
            f"{name}=@{path}, which is no sound .npy file ({' '.join(str(error).split())})",
            "an array saved by numpy.save is needed",
            "Save it again with numpy.save",
        ) from None
    if array.dtype.kind in "iu":
        array = array.astype(float)
    if array.dtype.kind not in "fc":
        raise unusable(
            f"{name}=@{path} of dtype {array.dtype}", "an array of numbers is needed", "Convert it with .astype(float)"
        )
    return array
