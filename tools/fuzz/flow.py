"""Statements with blocks: branches, loops, functions, and what handles exceptions; and whole programs."""

from __future__ import annotations

import dataclasses
import random

from tools.fuzz.grammar import Name, Scope, templates
from tools.fuzz.rounds import Rounds
from tools.fuzz.statements import FEATURES, Lines, Maker

__all__ = ["Flow", "program"]

# What NumPy raises a ValueError for.
FAILING = templates(
    """
    {V}[:1] @ {V} ; {M} @ {M} ; {V} + {P} ; np.reshape({M}, 5) ; np.concatenate([{V}, {M}]) ; np.vecdot({M}, {M}[:, :1])
    np.linalg.inv({M}) ; np.sum({V}, axis=1) ; np.matvec({M}[:, :1], {V})
    """
)
KNOWN = ("np.zeros(0)", "np.arange(2.0)", "np.ones((0, 3))")
"""Results that depend on nothing."""


class Flow(Rounds):
    """Make random statements, those with blocks among them."""

    def wanted(self, depth: int) -> list[tuple[str, float, Maker]]:
        """Return the statements of each feature, with how often they are wanted."""
        found = [*super().wanted(depth), ("choices", 0.4, self.chosen), ("choices", 0.3, self.entangled)]
        found += [
            ("guards", 0.2, self.guard),
            ("dictionaries", 0.2, self.order_keys),
            ("arguments", 0.2, self.give_twice),
        ]
        if depth <= 0:
            return found
        return [
            *found,
            ("functions", 0.7, self.function),
            ("branches", 0.9, self.branch),
            ("loops", 0.9, self.loop),
            ("while", 0.4, self.while_loop),
            ("exceptions", 0.25, self.attempt),
            ("contexts", 0.25, self.context),
            ("generators", 0.2, self.generator),
        ]

    def body(self, scope: Scope, depth: int, *names: Name) -> Lines:
        """Return an indented block with a scope of its own."""
        lines = self.block(scope.inner(*names), self.choice.randint(1, 3), depth - 1)
        return ["    " + line for line in lines] or ["    pass"]

    def branch(self, scope: Scope, depth: int) -> Lines:
        """Make an if statement, which may define a variable in each branch."""
        defined: Lines = []
        other: Lines = []
        name, kind = self.make.fresh("v"), self.kind()
        both = self.choice.random() < 0.4
        lines = [f"if {self.make.condition(scope, 1)}:", *self.body(scope, depth)]
        if both:
            defined = [f"    {name} = {self.value(kind, scope)} * 1.0"]
            other = [f"    {name} = np.sin({self.value(kind, scope)})"]
        lines += defined
        if self.choice.random() < 0.2:
            lines += [f"elif {self.make.condition(scope, 1)}:", *self.body(scope, depth), *defined]
        if both or self.choice.random() < 0.5:
            lines += ["else:", *self.body(scope, depth), *other]
        if both:
            scope.names.append(Name(name, kind, own=kind != "S"))
        return lines

    def guard(self, scope: Scope, _depth: int) -> Lines:
        """Raise where a number is too large, which it hardly ever is."""
        size = f"np.abs({self.value('S', scope)})"
        if self.choice.random() < 0.5:
            return [f"assert {size} < 1e6, 'too large'"]
        either = [f"    if {self.make.condition(scope, 1)}:", "        raise KeyError('too large')"]
        before = either if self.choice.random() < 0.4 else []
        return [f"if {size} > 1e6:", *before, "    raise ValueError('too large')"]

    def exit(self, scope: Scope) -> Lines:
        """Return a way out of a loop, or nothing."""
        if not self.make.having("exits", 0.3):
            return []
        return [f"    if {self.make.condition(scope, 1)}:", f"        {self.choice.choice(('break', 'continue'))}"]

    def loop(self, scope: Scope, depth: int) -> Lines:
        """Make a for statement over a range, rows, pairs or enumerated elements."""
        item, index = self.make.fresh("e"), self.make.fresh("i")
        rows = scope.writable("MWQ", "f")
        form = self.choice.choice(("range", "range", "rows", "elements", "enumerate", "zip"))
        names = [Name(index, "S")]
        if form == "range":
            head = f"for {index} in range({self.choice.choice((1, 2, 3))}):"
        elif form == "rows" and rows:
            matrix = self.choice.choice(rows)
            names = [Name(item, {"M": "V", "W": "P", "Q": "V"}[matrix.kind], own=True)]
            head = f"for {item} in {matrix.text}:"
        elif form == "enumerate":
            names.append(Name(item, "S"))
            head = f"for {index}, {item} in enumerate({self.value('V', scope)}):"
        elif form == "zip":
            names = [Name(index, "S"), Name(item, "V")]
            head = f"for {index}, {item} in zip({self.value('P', scope)}, {self.value('M', scope)}):"
        else:
            names = [Name(item, "S")]
            head = f"for {item} in {self.value(self.kind('PV'), scope)}:"
        inner = scope.inner(*names)
        first = self.exit(inner) if self.choice.random() < 0.5 else []
        otherwise = ["else:", *self.body(scope, depth)] if self.choice.random() < 0.1 else []
        return [head, *first, *self.body(inner, depth), *self.exit(inner), *otherwise]

    def while_loop(self, scope: Scope, depth: int) -> Lines:
        """Make a while statement that a counter ends."""
        count = self.make.fresh("n")
        body = self.body(scope, depth)
        exits = [line for line in self.exit(scope) if "continue" not in line]
        exits = exits if len(exits) == 2 else []
        return [
            f"{count} = 0",
            f"while ({self.make.condition(scope, 1)}) and {count} < 3:",
            f"    {count} += 1",
            *body,
            *exits,
        ]

    def function(self, scope: Scope, depth: int) -> Lines:
        """Define a function that may write to what surrounds it, and call it."""
        name, parameter = self.make.fresh("g"), self.make.fresh("p")
        kind, result = self.kind("SVVMP"), self.kind("SVVMPQ")
        arrays = scope.writable(kind, "f")
        writes = bool(arrays) and self.choice.random() < 0.5
        outer = [n for n in scope.names if "(" not in n.text]
        variables = [n for n in outer if n.text.isidentifier() and n.text[0] == "v" and n.number == "f" and n.bound]
        changed = self.choice.choice(variables) if variables and self.make.having("nonlocal", 0.4) else None
        names = [n if n is changed or not n.text.isidentifier() else dataclasses.replace(n, bound=False) for n in outer]
        inner = Scope([*names, Name(parameter, kind, own=writes)], list(scope.rules))
        second, default = "", ""
        if writes and self.make.having("arguments", 0.5):
            second, default = self.make.fresh("p"), self.choice.choice(("", f"={self.choice.choice(arrays).text}"))
            inner.names.append(Name(second, kind, own=True))
        head: Lines = []
        if changed is not None:
            value = self.value("S", scope)
            head = [f"    nonlocal {changed.text}", f"    {changed.text} = {changed.text} * 0.5 + {value}"]
        body = ["    " + line for line in self.block(inner, self.choice.randint(0, 2), depth - 1)]
        parameters = f"{parameter}, {second}{default}" if second else parameter
        lines = [f"def {name}({parameters}):", *head, *body]
        if self.make.having("exits", 0.25):
            lines += [f"    if {self.make.condition(inner, 1)}:", f"        return {self.value(result, inner)} * 1.0"]
        if self.make.having("exits", 0.15):
            item = self.make.fresh("e")
            inside = inner.inner(Name(item, "S"))
            lines += [f"    for {item} in {self.value('V', inner)}:", f"        if {self.make.condition(inside, 1)}:"]
            lines.append(f"            return {self.value(result, inside)} * 1.0")
        lines.append(f"    return {self.value(result, inner)} * 1.0")
        if not writes:
            scope.rules.append((result, f"{name}({{{kind}}})"))
        called = self.make.fresh("v")
        argument = self.choice.choice(arrays).text if writes else self.value(kind, scope)
        if second:
            argument = self.choice.choice((f"{argument}, {argument}", argument if default else f"*[{argument}] * 2"))
        lines += self.block(scope, self.choice.choice((0, 0, 1)), 0)
        lines.append(f"{called} = {name}({argument})")
        if self.choice.random() < 0.3:
            before = f"{called} = {self.value(result, scope)} * 1.0"
            lines[-1:] = [before, f"if {self.make.condition(scope, 1)}:", f"    {lines[-1]}"]
        scope.names.append(Name(called, result))
        return lines

    def chosen(self, scope: Scope, _depth: int) -> Lines:
        """Give one of several arrays a name, as conditions decide."""
        arrays = scope.writable()
        name = self.make.fresh("v")
        one = self.choice.choice(arrays) if arrays else None
        others = [
            n for n in arrays if one is not None and n.kind == one.kind and n.number == one.number and n is not one
        ]
        if one is None or not others:
            return []
        two, three = self.choice.choice(others), self.choice.choice(others)
        condition, second = self.make.condition(scope, 1), self.make.condition(scope, 1)
        scope.names.append(Name(name, one.kind, one.number, own=True))
        form = self.choice.choice(("expression", "branches", "nested", "rebound"))
        if form == "expression":
            return [f"{name} = {one.text} if {condition} else {two.text}"]
        if form == "branches":
            return [f"if {condition}:", f"    {name} = {one.text}", "else:", f"    {name} = {two.text}"]
        inner = [f"    {name} = {two.text}", f"    if {second}:", f"        {name} = {three.text}"]
        if form == "nested":
            return [f"if {condition}:", *inner, "else:", f"    {name} = {one.text}"]
        return [f"{name} = {one.text}", f"if {condition}:", *inner[1:], f"    {name} *= {self.value('S', scope)}"]

    def entangled(self, scope: Scope, _depth: int) -> Lines:
        """Give an array several names or views, let a condition choose among them, and write through one."""
        condition, value = f"if {self.make.condition(scope, 1)}:", self.value("S", scope)
        one, two, three, base = (self.make.fresh(letter) for letter in "vvlv")
        form = self.choice.choice(("rows", "places", "scalar", "turned", "turned"))
        if form == "scalar":
            array = self.choice.choice(("np.zeros((), like=x)", f"np.array({value}, like=x)", "np.zeros_like(s)"))
            sides = self.choice.sample((array, f"{self.value('S', scope)} * 1.0"), 2)
            scope.names += [Name(one, "S"), Name(two, "S")]
            return [f"{one} = {sides[0]}", condition, f"    {one} = {sides[1]}", f"{two} = {one}", f"{one} *= {value}"]
        lines = [f"{base} = {self.value('M', scope)} * 1.0"]
        names, kind, written = [base, two, one], "M", one
        if form == "rows":
            names, kind = [f"{three}[0]", f"{three}[1]", one], "V"
            lines += [f"{three} = list({base})", f"{one} = {three}[0]", condition, f"    {one} = {three}[1]"]
        elif form == "places":
            names, kind = [one, two, three], "V"
            lines += [f"{one}, {two} = {base}", f"{three} = {one}", condition, f"    {one}, {two} = {two}, {one}"]
        else:
            turn = self.choice.choice(("[::-1]", "[:, ::-1]", ".real", "[::-1].real", " * 1.0"))
            lines += [f"{one} = {two} = {base}{self.choice.choice(('', '[...]', '[:, ::-1]'))}"]
            turned = [condition, f"    {one} = {one}{turn}"]
            loop = f"for {self.make.fresh('i')} in range(2):"
            lines += turned if self.choice.random() < 0.7 else [loop, *("    " + line for line in turned)]
            if self.choice.random() < 0.4:
                written = three
                lines += [f"{three} = {one}" + self.choice.choice((".ravel()", ".reshape(-1)", ".ravel('K')", "[0]"))]
        scope.names += [Name(name, kind, own=True) for name in names]
        return [*lines, f"{written} {self.choice.choice(('+=', '*='))} {value}"]

    def order_keys(self, scope: Scope, _depth: int) -> Lines:
        """Let a condition decide in which order a dictionary has its keys, and read what comes first."""
        kind, name, first = self.kind("SVVPM"), self.make.fresh("d"), self.make.fresh("v")
        one, other, third, fourth = (f"{self.value(kind, scope)} * 1.0" for _ in range(4))
        condition = f"if {self.make.condition(scope, 1)}:"
        turned = [f"    {name} = {{'b': {third}, 'a': {fourth}}}"]
        moved = self.choice.choice((turned, [f"    {name}['a'] = {name}.pop('a')"], [f"    {name}['b'] = {third}"]))
        scope.names += [Name(f"{name}['a']", kind, own=kind != "S"), Name(f"{name}['b']", kind)]
        if self.choice.random() < 0.7:
            scope.names.append(Name(first, kind))
        read = self.choice.choice(("next(iter({}.values()))", "{}[list({})[0]]", "sum({}.values())", "{0}[min({0})]"))
        value = f"{read.format(name, name)} * 0.5"
        return [f"{name} = {{'a': {one}, 'b': {other}}}", condition, *moved, f"{first} = {value}"]

    def give_twice(self, scope: Scope, _depth: int) -> Lines:
        """Give a function the same container twice, of which it may write to one and read the other."""
        kind, name, held, found = self.kind("SVVP"), self.make.fresh("g"), self.make.fresh("l"), self.make.fresh("v")
        made, key = self.choice.choice((("[{}, {}]", "[0]"), ("{{'a': {}, 'b': {}}}", "['a']"), ("Box({})", ".value")))
        items = [f"{self.value(kind, scope)} * 1.0" for _ in range(2)]
        change = self.choice.choice(("{p}{k} = {p}{k} * 0.5", "{p}{k} *= 0.5", "{p}{k} = {q}{k} + 1.0", "pass"))
        places, given, head = "p, q", "{l}, {l}", ""
        if self.choice.random() < 0.4:
            places = "both"
            given, head = self.choice.choice((("[{l}, {l}]", "p, q = both"), ("({l}, [{l}])", "p, (q,) = both")))
        jitted = change == "pass" and "Box" not in made  # which refuses changes of what it is given twice
        call = self.choice.choice(("{g}({})", "wg.jit({g})({})") if jitted else ("{g}({})",))
        arguments = given.replace("{l}", held)
        body = [head or "pass", change.format(p="p", q="q", k=key), f"return p{key} + q{key} * 0.5"]
        scope.names += [Name(f"{held}{key}", kind, own=kind != "S"), Name(found, kind)]
        return [
            f"{held} = {made.format(*items)}",
            f"def {name}({places}):",
            *("    " + line for line in body),
            f"{found} = {call.format(arguments, g=name)}",
        ]

    def attempt(self, scope: Scope, depth: int) -> Lines:
        """Make a try statement whose body may raise, as a condition decides."""
        error = self.choice.choice(("ValueError", "ZeroDivisionError", "Exception"))
        if self.choice.random() < 0.15:
            failing = self.make.filled(self.choice.choice(FAILING), "V", scope, 1)
            return ["try:", *self.body(scope, depth), f"    {failing}", "except ValueError:", *self.body(scope, depth)]
        raising = [f"    if {self.make.condition(scope, 1)}:", f"        raise {error}"]
        form = self.choice.choice(("condition", "condition", "always", "never", "assert"))
        if form == "assert":
            error, raising = "AssertionError", [f"    assert {self.make.condition(scope, 1)}"]
        raising = {"always": raising[1:], "never": []}.get(form, raising)
        raising = [line.removeprefix("    ") if form == "always" else line for line in raising]
        before = self.body(scope, depth)
        after = self.body(scope, depth) if form != "always" and self.choice.random() < 0.5 else []
        lines = ["try:", *before, *raising, *after]
        if self.choice.random() < 0.85:
            lines += [f"except {error}:", *self.body(scope, depth)]
            if self.choice.random() < 0.3:
                lines += ["else:", *self.body(scope, depth)]
            if self.choice.random() < 0.2:
                lines += ["finally:", *self.body(scope, depth)]
            return lines
        return [*lines, "finally:", *self.body(scope, depth)]

    def context(self, scope: Scope, depth: int) -> Lines:
        """Make a with statement."""
        arrays = scope.writable("VMPFQ", "f")
        item = self.make.fresh("e")
        form = self.choice.choice(("errstate", "halved", "opened", "suppressed", "suppressed"))
        if form == "opened" and arrays:
            array = self.choice.choice(arrays)
            inner = scope.inner(Name(item, array.kind, own=True))
            return [f"with Opened({array.text}) as {item}:", *self.body(inner, depth)]
        if form == "halved":
            kind = self.kind("SVMP")
            inner = scope.inner(Name(item, kind, own=kind != "S"))
            return [f"with halved({self.value(kind, scope)}) as {item}:", *self.body(inner, depth)]
        if form == "suppressed":
            raising = [f"    if {self.make.condition(scope, 1)}:", "        raise ValueError"]
            return ["with Suppressed():", *self.body(scope, depth), *raising, *self.body(scope, depth)]
        return ["with np.errstate(all='ignore'):", *self.body(scope, depth)]

    def generator(self, scope: Scope, depth: int) -> Lines:
        """Define a generator, and go through what it yields."""
        name, item, index = self.make.fresh("g"), self.make.fresh("e"), self.make.fresh("i")
        kind = self.kind("SVVMP")
        arrays = scope.writable(kind, "f")
        aliases = bool(arrays) and self.choice.random() < 0.4
        inner = Scope([n for n in scope.names if not n.text.isidentifier()], list(scope.rules))
        inner.names += [dataclasses.replace(n, bound=False) for n in scope.names if n.text.isidentifier()]
        value = self.choice.choice(arrays).text if aliases else f"{self.value(kind, inner)} * 1.0"
        lines = [f"def {name}():", *self.body(inner, depth), f"    yield {value}"]
        if self.choice.random() < 0.5:
            lines += [f"    for {index} in range(2):", f"        yield {self.value(kind, inner)} * 1.0"]
        if not aliases and self.choice.random() < 0.5:
            called = self.make.fresh("v")
            scope.names.append(Name(called, kind))
            return [*lines, f"{called} = sum({name}())"]
        return [*lines, f"for {item} in {name}():", *self.body(scope.inner(Name(item, kind, own=aliases)), depth)]


def program(choice: random.Random, features: frozenset[str] = FEATURES) -> str:
    """Return the source text of a function that returns a tuple of arrays.

    Its arguments are a vector, a matrix, a number, and a vector each of integers and of truth values.
    """
    scope = Scope([Name("x", "V", bound=False), Name("y", "M", bound=False), Name("s", "S")])
    maker = Flow(choice, features)
    lines = maker.block(scope, choice.randint(1, 4), 2)
    early, place = Scope(list(scope.names), list(scope.rules)), len(lines)
    lines += maker.block(scope, choice.randint(1, 4), 2)
    results = [n for n in scope.names if n.text not in ("x", "y", "s") and n.number in "fci"][-6:]
    known = [choice.choice(KNOWN)] * maker.make.having("containers", 0.06)
    lines.append(f"return ({', '.join([*known, *(n.text for n in results), maker.value('S', scope)])},)")
    if maker.make.having("exits", 0.1):
        values = known + [maker.value(n.number.replace("f", "") + n.kind, early) + " * 1" for n in results]
        values.append(maker.value("S", early))
        lines[place:place] = [f"if {maker.make.condition(early, 1)}:", f"    return ({', '.join(values)},)"]
    if maker.make.having("single", 0.05):
        lines.insert(0, "x = x.astype(single)")
    lines.insert(0, "s = r * 1.0")  # NumPy's arguments of no dimensions are scalars, Tensors are arrays: ADR 0008
    return "\n".join(["def program(x, y, r, n, m):", *("    " + line for line in lines)]) + "\n"
