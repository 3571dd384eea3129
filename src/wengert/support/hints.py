"""What errors say is written here for names and parameters that other libraries have and Wengert has not.

The texts are data: `hints.toml`, read when the first such error is about to be raised. Where public names are is in
`public_names.toml`, which `python -m tools.public_names` writes.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from types import CodeType
from typing import Any, TypeVar

from wengert.support.attributes import attribute, function_name, unwrap

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def read_data(name: str) -> dict[str, Any]:
    """Return the tables of one of the two files."""
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return tomllib.load(file)


def hints(*path: str) -> Mapping[str, Any]:
    """Return a table of `hints.toml`: what to write, by the name; nothing where there is no such table.

    >>> hints("modules", "wengert.tree")["all"], hints("modules", "nothing")
    ('all(wengert.tree.leaves(x))', {})
    """
    table: Mapping[str, Any] = read_data("hints.toml")
    for key in path:
        table = table.get(key, {})
    return table


def public_names() -> Mapping[str, str]:
    """Return the names that each public module exports, in the order in which modules are likely to be meant."""
    return read_data("public_names.toml")


def public_module(name: str) -> str | None:
    """Return the public module that exports a name; None if there is none.

    >>> public_module("grad"), public_module("relu"), public_module("nothing")
    ('wengert', 'wengert.nn.functional', None)
    """
    return next((module for module, names in public_names().items() if name in names.split()), None)


def names_left_out(module: str) -> dict[str, str]:
    """Return why the names of a module of NumPy's or SciPy's have no meaning for Tensors, by the name.

    >>> names_left_out("numpy")["matrix"]
    'use arrays with two axes'
    """
    return {name: reason for reason, names in hints("left_out", module).items() for name in names.split()}


def missing_name(module: str, name: str) -> AttributeError:
    """Return the error about a name that a module of Wengert has not: why it is left out, what to write, where it is.

    >>> missing_name("wengert.nn", "remat")
    AttributeError("module 'wengert.nn' has no attribute 'remat'; write wengert.checkpoint")
    >>> missing_name("wengert.nn", "relu")
    AttributeError("module 'wengert.nn' has no attribute 'relu'; it is wengert.nn.functional.relu")
    """
    if name.startswith("_"):  # Python asks for a module inside of a package before it imports it
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    namesake = module.removeprefix("wengert.")
    reason = names_left_out(namesake).get(name)
    if reason is not None:
        return AttributeError(f"{namesake}.{name} has no derivative in Wengert; {reason}.")
    written = {**hints("modules", "any"), **hints("modules", module)}.get(name)  # before: `save` is numpy's, too
    owner = None if written else public_module(name)
    said = "" if written or owner else told_by_original(namesake, name)
    if not (written or owner or said):
        written = written_elsewhere(name)
    hint = f"; write {written}" if written else f"; it is {owner}.{name}" if owner else said
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


def told_by_original(module: str, name: str) -> str:
    """Return what NumPy or SciPy say of a name that their module has not any more.

    >>> told_by_original("numpy", "float_"), told_by_original("numpy", "nothing")
    ('; `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.', '')
    """
    text = ""
    if module.startswith(("numpy", "scipy")):
        try:
            with warnings.catch_warnings(action="ignore"):  # of names that will mean something else
                getattr(sys.modules.get(module), name)
        except AttributeError as error:
            text = str(error)
    return f"; {text}" if text and not text.endswith(f"has no attribute {name!r}") else ""


def written_of_tensor(name: str) -> str | None:
    """Return what to write in place of a method of an array, in-place ones included; None if nobody knows.

    >>> written_of_tensor("erf_"), written_of_tensor("tril_"), written_of_tensor("nothing")
    ('x[...] = wengert.scipy.special.erf(x)', 'x[...] = np.tril(x)', None)
    """
    known = {**hints("modules", "any"), **hints("attributes", "Tensor")}
    if name in known:
        return str(known[name])
    if not name.endswith("_"):
        return None
    base = name[:-1]
    owner = public_module(base)
    written = known.get(base) or (f"{owner}.{base}(x)" if owner else None)
    return written and f"x[...] = {written}"


def written_elsewhere(name: str) -> str | None:
    """Return what to write for a name that is known elsewhere: of a layer, a method, in place, or spelled otherwise.

    >>> written_elsewhere("CrossEntropyLoss"), written_elsewhere("BatchNorm1d"), written_elsewhere("NaN")
    ('wengert.nn.functional.cross_entropy', 'wengert.nn.functional.batch_norm', 'wengert.numpy.nan')
    >>> written_elsewhere("relu_"), written_elsewhere("addcmul"), written_elsewhere("PRNGKey")
    ('x[...] = wengert.nn.functional.relu(x)', 'x + value * y * z', 'key(seed) of wengert.random')
    """
    known = written_of_tensor(name)
    if known is not None:
        return known
    for module, table in hints("modules").items():
        written = table.get(name)
        if written is not None:  # what is spelled in full is of the module that it names
            return written if written.startswith(("wengert.", "scipy.")) else f"{written} of {module}"
    plain = name.lower().replace("_", "")
    layer = plain.removesuffix("loss").rstrip("123d") if name[0].isupper() else plain
    known_names = {spelled.lower().replace("_", ""): written for spelled, written in all_names()}
    return next((known_names[x] for x in (plain, f"{layer}loss", layer) if x in known_names), None)


def all_names() -> Iterator[tuple[str, str]]:
    """Give all names with hints or of public modules, and what to write; those that are likelier to be meant last."""
    for table in reversed([*hints("modules").values()]):
        yield from table.items()
    for module, names in reversed([*public_names().items()]):
        for name in names.split():
            yield name, f"{module}.{name}"


def names_on_demand(module: str, own: Collection[str] = (), foreign: Collection[str] = ()) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module: it imports other modules, and refuses names with a hint.

    Modules inside of it (`own`) are imported when they are first asked for; `foreign` ones of NumPy or SciPy stand in
    it as they are.
    """

    def getattribute(name: str) -> Any:
        if name in own:
            return importlib.import_module(f"{module}.{name}")
        if name in foreign:
            return importlib.import_module(f"{module.removeprefix('wengert.')}.{name}")
        raise missing_name(module, name)

    return getattribute


def parameter_hints(groups: Collection[str]) -> dict[str, str]:
    """Return the texts about parameters of some groups, by the name."""
    return {name: written for group in groups for name, written in hints("parameters", group).items()}


def unexpected_parameter(label: str, name: str, *groups: str) -> TypeError:
    """Return Python's error about a parameter that a function has not, with what some groups of hints say to write.

    >>> unexpected_parameter("Tensor.sum", "dim", "numpy")
    TypeError("Tensor.sum() got an unexpected keyword argument 'dim'; write axis=")
    """
    written = parameter_hints(groups).get(name)
    hint = "" if written is None else f"; write {written}"
    return TypeError(f"{label}() got an unexpected keyword argument {name!r}{hint}")


def hint_parameters(*groups: str, known: Collection[str] = ()) -> Callable[[F], F]:
    """Let errors about parameters that a function has elsewhere, but not here, tell what to write.

    Hints are looked for when Python has refused a call: to look before would take a third of the time of this frame.
    Functions that take any parameter are asked before.

    Args:
        groups: the tables of hints about parameters.
        known: parameters of the function, beside those that its code shows.

    >>> hint_parameters("vmap")(lambda x: x)(1, in_dims=0)
    Traceback (most recent call last):
    TypeError: <lambda>() got an unexpected keyword argument 'in_dims'; write in_axes=
    >>> hint_parameters("rvs")(lambda **options: options)(random_state=0)
    Traceback (most recent call last):
    TypeError: <lambda>() got an unexpected keyword argument 'random_state'; write key=
    """

    def with_hints(function: F) -> F:
        takes_any = bool(getattr(code_of(function), "co_flags", 0) & inspect.CO_VARKEYWORDS)

        def refusal_of(kwargs: Mapping[str, Any]) -> TypeError | None:
            unknown = [name for name in kwargs if name not in known and name not in parameters_of(function)]
            name = next((name for name in unknown if name in parameter_hints(groups)), None)
            return None if name is None else unexpected_parameter(function_name(function, "__name__"), name, *groups)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if takes_any and kwargs and (refusal := refusal_of(kwargs)):
                raise refusal
            try:
                return function(*args, **kwargs) if kwargs else function(*args)  # lest a dictionary is made
            except TypeError:
                refusal = refusal_of(kwargs)
                if refusal is None:
                    raise
                raise refusal from None

        return call  # type: ignore[return-value]  # it has the type of the function

    return with_hints


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters, without what `inspect.signature` takes for the rest."""
    code = code_of(function)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """Return the code of what decorators have wrapped; None where it is in C."""
    found: CodeType | None = attribute(unwrap(function), "__code__")
    return found


class MissingAttribute:
    """Be a name that objects of a class have not, which says how the same is written; for `hasattr` it is not there."""

    def __init__(self, owner: str, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Raise an AttributeError for an object."""
        if instance is None:
            return self
        written = hints("attributes", self.owner).get(self.name) or written_of_tensor(self.name) or f"np.{self.name}(x)"
        raise AttributeError(f"{self.owner!r} object has no attribute {self.name!r}; write {written}")


def hint_attributes(*names: str) -> Callable[[C], C]:
    """Let objects of a class tell what to write for names that they have not, by the hints about the class.

    >>> hint_attributes("savefig")(type("Picture", (), {}))().savefig
    Traceback (most recent call last):
    AttributeError: 'Picture' object has no attribute 'savefig'; write picture.save("name.svg")
    """

    def with_hints(kind: C) -> C:
        for name in names:
            setattr(kind, name, MissingAttribute(kind.__name__, name))
        return kind

    return with_hints
