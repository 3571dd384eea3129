"""Write the reference: a page for each public module, from the signatures and docstrings of its names."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["Known", "linked", "page", "rendered"]

Known = dict[str, str]
"""The address on the site of each public name in full."""

SECTIONS = {"Args": "Arguments", "Attributes": "Attributes", "Returns": "Returns", "Raises": "Raises"}
HIDDEN = inspect.Parameter.empty
NO_CODE = re.compile(r"(```.*?^```$|``.*?``)", flags=re.DOTALL | re.MULTILINE)


def page(module: str) -> str:
    """Return the page of a module: what it is for, a list of its names, then each of them."""
    namespace = importlib.import_module(module)
    names = [name for name in namespace.__all__ if documented(getattr(namespace, name))]
    others = [f"`{name}`" for name in namespace.__all__ if name not in names]
    contents = ", ".join(f"[`{name}`](#{module}.{name})" for name in names)
    parts = [f"# {module}", rendered(inspect.getdoc(namespace) or ""), contents]
    parts += ["\n\n".join(entry(f"{module}.{name}", getattr(namespace, name))) for name in names]
    if others:
        parts += ["## Other names { #others }", ", ".join(others)]
    return "\n\n".join(parts) + "\n"


def documented(thing: Any) -> bool:
    """Tell whether a public name has a docstring of its own: constants, dtypes and modules have not."""
    if inspect.ismodule(thing) or (inspect.isclass(thing) and not thing.__module__.startswith("wengert")):
        return False
    return type(thing).__module__.startswith("wengert") or inspect.isclass(thing) or callable(thing)


def entry(name: str, thing: Any) -> Iterator[str]:
    """Yield the parts of the entry of a name: its heading, how it is called, its docstring, its members."""
    yield f"## {name.rpartition('.')[2]} {{ #{name} }}"
    call = signature(thing)
    if call is not None:
        yield f"```python\n{name}{call}\n```"
    yield rendered(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        listed = dict(members(thing))
    elif inspect.isfunction(thing):
        return
    else:  # an object with SciPy's methods, as distributions are
        listed = {own: member for own, member in members(type(thing)) if hasattr(counterpart(name), own)}
    lines = [f"- `{own}{signature(member) or ''}`: {summary(member)}" for own, member in sorted(listed.items())]
    if lines:
        yield "**Members**"
        yield "\n".join(lines)


def counterpart(name: str) -> Any:
    """Return what SciPy has under the same name."""
    module, _, own = name.removeprefix("wengert.").rpartition(".")
    return getattr(importlib.import_module(module), own, None)


def members(holder: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, inherited ones included, that say what they do."""
    for name in dir(holder):
        member = inspect.getattr_static(holder, name)
        thing = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if not name.startswith("_") and (inspect.isfunction(thing) or isinstance(thing, property)) and thing.__doc__:
            yield name, thing


def summary(thing: Any) -> str:
    """Return the first paragraph of a docstring, and its sections in short."""
    return " ".join(" ".join(part.split()) for part in blocks(inspect.getdoc(thing) or "") if ">>> " not in part)


def signature(thing: Any) -> str | None:
    """Return the parameters of a function or class without their types; None if it is not called."""
    if isinstance(thing, property):
        return None
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    if found.return_annotation == "NoReturn":  # a class whose objects functions make
        return None
    bare = [p.replace(annotation=HIDDEN, default=shown(p.default)) for p in found.parameters.values()]
    return str(inspect.Signature([p for p in bare if p.name not in ("self", "ctx")]))


class Shown:
    """Print as a short text, so that signatures can be read."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def shown(default: Any) -> Any:
    """Return a default value in the form in which one types it."""
    if default is HIDDEN or isinstance(default, bool | int | float | str | tuple | list | dict) or default is None:
        return default
    return Shown(getattr(default, "__name__", None) or "...")


def rendered(text: str) -> str:
    """Return a docstring as Markdown: sections as lists, examples as code."""
    return "\n\n".join(block(part) for part in blocks(text))


def blocks(text: str) -> Iterator[str]:
    """Yield the parts of a docstring: between empty lines, an example from its first prompt to its last line."""
    for part in re.split(r"\n\s*\n", text.strip()):
        prompt = re.search(r"^\s*>>> ", part, flags=re.MULTILINE)
        if prompt and prompt.start() > 0:
            yield part[: prompt.start()].rstrip()
            yield part[prompt.start() :]
        elif part:
            yield part


def block(part: str) -> str:
    """Return one part of a docstring as Markdown."""
    heading, _, rest = part.partition("\n")
    name = heading.strip().removesuffix(":")
    if name in SECTIONS and heading.strip().endswith(":"):
        return f"**{SECTIONS[name]}**\n\n" + section(inspect.cleandoc(rest), name)
    if part.lstrip().startswith(">>> "):
        return f"```python\n{inspect.cleandoc(part)}\n```"
    return inspect.cleandoc(part)


def section(text: str, name: str) -> str:
    """Return what a docstring says of arguments, attributes or errors as a list; of results as a paragraph."""
    if name == "Returns":
        return text
    items = re.split(r"\n(?=\S)", text)
    return "\n".join(f"- {item(' '.join(lines.split()))}" for lines in items)


def item(text: str) -> str:
    """Return a line about an argument, with its name as code."""
    names, colon, rest = text.partition(": ")
    return f"`{names}`: {rest}" if colon else text


def linked(text: str, known: Known, here: str) -> str:
    """Return Markdown in which names in full, written as code, lead to their entries.

    Args:
        text: a page.
        known: the address of each name.
        here: the way from the page to the root of the site, which ends in a slash unless it is empty.
    """

    def link(found: re.Match[str]) -> str:
        name = found[1]
        return f"[`{name}`]({here}{known[name]})" if name in known else found[0]

    parts = NO_CODE.split(text)
    return "".join(
        part if i % 2 else re.sub(r"(?<!\[)`(wengert\.[\w.]+)(?:\(\))?`(?!\])", link, part)
        for i, part in enumerate(parts)
    )
