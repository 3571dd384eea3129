"""Write docs/public-names.md: the names that each public module exports, with the first line about each.

`public_names.toml` in the package has them, too, for errors that say where a name is without importing all modules.
Run `python -m tools.public_names` after a public name was added or removed, and read the difference before you
commit it: the page is a promise.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import textwrap
from pathlib import Path

import wengert
from wengert.support.hints import hints, names_left_out

PAGE = Path(__file__).resolve().parent.parent / "docs" / "public-names.md"
LEFT_OUT_PAGE = PAGE.with_name("left-out.md")
MODULES = (
    *("wengert", "wengert.autograd", "wengert.extend", "wengert.graph", "wengert.testing", "wengert.errors"),
    *("wengert.tree", "wengert.functional", "wengert.implicit", "wengert.optim", "wengert.sparse"),
    *("wengert.random", "wengert.numpy", "wengert.numpy.linalg", "wengert.numpy.fft"),
    *("wengert.scipy", "wengert.scipy.integrate", "wengert.scipy.interpolate"),
    *("wengert.scipy.fft", "wengert.scipy.linalg"),
    *("wengert.scipy.ndimage", "wengert.scipy.optimize", "wengert.scipy.signal", "wengert.scipy.spatial.distance"),
    *("wengert.scipy.sparse", "wengert.scipy.sparse.linalg", "wengert.scipy.special", "wengert.scipy.stats"),
    "wengert.sparse",
    *("wengert.nn", "wengert.nn.functional"),
    "wengert.distributed",
)
NAMES = Path(wengert.__file__).with_name("support") / "public_names.toml"
LIKELY = (
    *("numpy", "numpy.linalg", "autograd", "nn.functional", "scipy.special", "scipy.linalg", "optim", "random"),
    *("tree", "functional", "testing", "extend", "graph", "errors", "numpy.fft", "scipy.stats", "scipy.signal"),
)
"""Modules of which the first that has a name is most likely meant; the others follow."""
NAMES_HEAD = "# Names that public modules export, for errors; `python -m tools.public_names` writes this.\n"
HEAD = """# Public names

What may be imported from where. Names that are not listed here, and all that start with an underscore, may change
without notice. `python -m tools.public_names` writes this page; a test holds it to be true.
"""


LEFT_OUT_HEAD = """# What is left out

The names of NumPy and SciPy that have no meaning here; asked for, each says so. `python -m tools.public_names` writes
this page.
`numpy.random` is there as it is in NumPy: it draws when Python runs, so once under `jit`;
[`wengert.random`](public-names.md) traces and batches. `numpy.testing`, `numpy.exceptions` and `numpy.dtypes`
are NumPy's own, too.
"""


def first_line(thing: object) -> str:
    """Return the summary of a function or class; nothing for other values, whose docstring is their type's."""
    if not (inspect.isroutine(thing) or inspect.isclass(thing)):
        return ""
    return (inspect.getdoc(thing) or "").partition("\n")[0].strip()


def section(module: str) -> str:
    """Return the list of a module's public names; NumPy's and SciPy's own need no description."""
    namespace = importlib.import_module(module)
    lines = [f"## `{module}`", ""]
    for name in sorted(namespace.__all__):
        summary = "" if module.startswith(("wengert.numpy", "wengert.scipy")) else first_line(getattr(namespace, name))
        lines.append(f"- `{name}`" + (f": {summary}" if summary else ""))
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the text of the page."""
    present = [module for module in MODULES if importlib.util.find_spec(module) is not None]
    return "\n".join([HEAD, *map(section, present)])


def left_out() -> str:
    """Return the text of the page about names that are left out, with those of one reason together."""
    lines = [LEFT_OUT_HEAD]
    for module, reasons in ((module, names_left_out(module)) for module in hints("left_out")):
        lines += [f"## `{module}`", "", "| names | reason |", "|---|---|"]
        for reason in dict.fromkeys(reasons.values()):
            names = ", ".join(f"`{name}`" for name, own in reasons.items() if own == reason)
            lines.append(f"| {names} | {reason} |")
        lines.append("")
    return "\n".join(lines)


def names() -> str:
    """Return the text of the data that say which names public modules export."""
    lines = [NAMES_HEAD]
    for module in dict.fromkeys(("wengert", *(f"wengert.{name}" for name in LIKELY), *MODULES)):
        exported = " ".join(sorted(importlib.import_module(module).__all__))
        lines.append(f'"{module}" = """\n{textwrap.fill(exported, 120)}"""\n')
    return "".join(lines)


def main() -> None:
    """Write the pages and the data."""
    NAMES.write_text(names())
    PAGE.write_text(page())
    LEFT_OUT_PAGE.write_text(left_out())


if __name__ == "__main__":
    main()
