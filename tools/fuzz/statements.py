"""Statements: what a program does besides computing, as lines of source text; `flow` has those with blocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from tools.fuzz.grammar import MAYBE_VIEWS, SHAPES, VIEWS, Expressions, Name, Scope, templates

__all__ = ["FEATURES", "Lines", "Maker", "Statements"]

FEATURES = frozenset(
    {
        *("views", "order", "writes", "out", "zero", "complex", "single", "counters", "containers", "objects"),
        *("functions", "nonlocal", "branches", "loops", "while", "exits", "calls", "control", "integers", "python"),
        *("choices", "exceptions", "contexts", "generators", "dictionaries", "arguments", "spaces", "masked", "large"),
        *("guards", "matrices", "rounds", "lists", "match"),
    }
)

Lines = list[str]
Maker = Callable[[Scope, int], Lines]

# Where in an array of each shape a statement writes, and the kind of what is written there.
PLACES = {
    "S": templates(
        """
        S: ... ; S: ()
        """
    ),
    "P": templates(
        """
        S: 0 ; S: -1 ; P: ::-1 ; P: [1, 0] ; P: : ; S: ... ; S: {bP} ; P: None, :
        """
    ),
    "V": templates(
        """
        S: 0 ; S: 2 ; P: 1: ; P: ::2 ; V: ::-1 ; P: [2, 0] ; P: MASK ; S: {bV} ; V: ... ; S: : ; V: ORDER
        S: np.argmax({V}) ; S: -1 ; S: 1, ... ; P: [True, False, True]
        """
    ),
    "F": templates(
        """
        V: ::2 ; V: 1:4 ; P: [0, 5] ; V: 4:1:-1 ; S: {bF} ; S: 3 ; F: : ; S: np.flatnonzero({bF})
        """
    ),
    "M": templates(
        """
        V: 0 ; P: :, 1 ; S: 1, 2 ; V: ... ; M: :, ::-1 ; S: {bM} ; M: [1, 0] ; P: 0, 1: ; P: [0, 1], [2, 0]
        P: ..., 0 ; S: :, MASK ; S: :, {bV} ; S: {bP} ; S: 1, {bV} ; V: 0, ... ; M: ::-1 ; S: (0, -1)
        M: [[1], [0]], ORDER
        """
    ),
    "W": templates(
        """
        P: 0 ; V: :, 1 ; S: 1: ; P: ... ; P: [2, 0] ; S: {bW} ; W: ORDER ; P: ::2, 0
        """
    ),
    "Q": templates(
        """
        V: 0 ; V: :, 1 ; M: :2 ; W: ..., 1: ; V: ORDER, ORDER ; S: {bQ} ; S: [0, 1], 1: ; S: 1, 1
        S: :, {bV} ; S: {bV} ; V: {bV} ; S: np.nonzero({bQ}) ; S: ..., {bV} ; S: {bV}, 1:
        """
    ),
}

# What writes into an array a without saying so in an assignment. Joins are given copies: NumPy goes on reading parts of
# the array while it writes to it.
WRITERS = {
    "any": templates(
        """
        np.add({X}, {X}, out={a}) ; np.multiply({a}, {X}, out={a}) ; np.sin({a}, out={a}) ; np.copyto({a}, {X})
        np.copyto({a}, {S}, where={bX}) ; np.subtract({X}, {S}, out={a}, where={bX}) ; {a}.fill({S})
        np.tanh({X}, {a}) ; np.where({bX}, {X}, {a}).copy() ; np.putmask({a}, {bX}, {X})
        np.maximum({a}, {X}, out={a}) ; np.clip({X}, -0.5, 0.8, out={a}) ; np.negative({X}, out={a}[...])
        {a}[{a} > LOW] = np.sin({a}[{a} > LOW]) ; {a}[np.where({a} < HIGH)] -= {a}[{a} < HIGH] * {S}
        np.divmod({X}, 8.0, out=({a}, np.zeros_like({a}))) ; np.modf({X}, None, {a})
        """
    ),
    "S": templates(
        """
        {a}.put([0], {S}) ; np.put({a}, [0, 0], 0.5) ; np.add.at({a}, (), {S})
        """
    ),
    "V": templates(
        """
        np.add.at({a}, [0, 0, 2], {V}) ; np.sum({M}, axis=0, out={a}) ; np.matmul({Q}, {V}, out={a}) ; {a}.sort()
        np.put({a}, [0, 2], {P}) ; np.put_along_axis({a}, np.array([1, 2]), {P}, 0) ; np.place({a}, MASK, {P})
        np.dot({Q}, {V}, out={a}) ; np.cumsum({V}, out={a}) ; np.einsum('ij,j->i', {Q}, {V}, out={a})
        np.multiply.at({a}, [1, 1], {S}) ; np.take({V}, ORDER, out={a})
        np.concatenate([{P} * 1, {P}[:1] * 1], out={a})
        {a}.put([1], {S})
        """
    ),
    "M": templates(
        """
        np.add({V}, {V}, out={a}[0]) ; np.exp(np.sin({P}), out={a}[:, 1]) ; np.stack([{V} * 1, {V} * 1], out={a})
        {a}.sort(axis=0) ; np.add.at({a}, (slice(None), [0, 0]), {P}[:, None]) ; np.cumsum({M}, axis=1, out={a})
        np.matmul({M}, {Q}, out={a}) ; [{t}.fill({S}) for {t} in {a}] ; [np.multiply({t}, {S}, out={t}) for {t} in {a}]
        """
    ),
    "Q": templates(
        """
        np.fill_diagonal({a}, {S}) ; np.fill_diagonal({a}, {V}) ; np.outer({V}, {V}, out={a})
        np.add.at({a}, ([0, 0], [1, 1]), {P})
        """
    ),
}

# Views that are written to in one statement, without a name for the view.
THROUGH = {
    "S": templates(
        """
        np.atleast_1d({a})[0] += {S} ; {a}.reshape(1)[:] = {S} ; {a}[None] *= {S} ; {a}.ravel()[0] -= {S}
        """
    ),
    "P": templates(
        """
        {a}[::-1][0] += {S} ; {a}.T[1:] *= {S}
        """
    ),
    "V": templates(
        """
        {a}[1:][0] += {S} ; {a}[::-1][:2] = {P} ; {a}.reshape(3, 1)[1] *= {S} ; {a}[...][::2] -= {P}
        """
    ),
    "F": templates(
        """
        {a}.reshape(2, 3)[0] += {V} ; {a}[1:][::2] = {V} * 1
        """
    ),
    "M": templates(
        """
        {a}.T[0] += {P} ; {a}[0][1:] = {P} ; {a}.ravel()[::2] *= {V} ; {a}.T[1:][:, 0] -= {P}
        {a}.reshape(-1)[1:4] += {V}
        """
    ),
    "W": templates(
        """
        {a}.T[0] *= {V} ; {a}[1:][0, 1] = {S} ; {a}.swapaxes(0, 1)[1, :2] += {P}
        """
    ),
    "Q": templates(
        """
        {a}.T[0] += {V} ; {a}[1:].T[2] = {P} ; {a}[...][0, 1:] *= {P}
        """
    ),
}


BOXED = (
    *("{box}.grow({by})", "{box}.write({by})", "{box}.count_on({by})"),
    *("{box} = {box} + {by}", "{box} = {by} + {box}", "{box} = -{box}", "{box} -= {by}", "{box} = {box} + {box}[{by}]"),
    *("{box}[{by}] = {other}", "{box}.first = {by}", "{box}[{by}] *= {other}"),
    *("{box}.grow({by} if {box} else {other})", "{box}.write({by} if {box} < {other} else {other})"),
    *("{box}.grow({by} if not {box} else {box}[{other}])", "{box} = {box} if {box} > {by} else {box} + {other}"),
)
"""What is done with an object of a class whose methods choose by traced values."""


class Statements:
    """Make random statements."""

    def __init__(self, choice: random.Random, features: frozenset[str]) -> None:
        self.choice = choice
        self.features = features
        self.make = Expressions(choice, features)

    # One statement

    def block(self, scope: Scope, count: int, depth: int) -> Lines:
        """Return some statements; what they define is entered into the scope."""
        lines: Lines = []
        for _ in range(count):
            lines += self.statement(scope, depth)
        return lines

    def statement(self, scope: Scope, depth: int) -> Lines:
        """Return the lines of one statement."""
        makers: list[tuple[float, Maker]] = [(3.0, self.assignment), (1.0, self.rebinding), (0.8, self.alias)]
        makers += [(weight, maker) for feature, weight, maker in self.wanted(depth) if feature in self.features]
        chosen = self.choice.choices([m for _, m in makers], [w for w, _ in makers])[0]
        return chosen(scope, depth)

    def wanted(self, _depth: int) -> list[tuple[str, float, Maker]]:
        """Return the statements of each feature, with how often they are wanted."""
        return [
            ("views", 1.5, self.view),
            ("order", 0.5, self.maybe_view),
            ("writes", 2.0, self.write),
            ("writes", 1.5, self.augmented),
            ("writes", 0.7, self.through),
            ("out", 1.0, self.writer),
            ("zero", 0.4, self.zero_dimensional),
            ("complex", 0.6, self.complex_statement),
            ("counters", 0.3, self.counter),
            ("containers", 0.7, self.container),
            ("objects", 0.3, self.box),
            ("integers", 0.5, self.whole),
            ("dictionaries", 0.3, self.dictionary),
            ("spaces", 0.3, self.space),
            ("spaces", 0.15, self.octets),
            ("large", 0.25, self.large),
        ]

    def kind(self, kinds: str = "SPVVVFMMWQ") -> str:
        """Return the letter of a shape."""
        return self.choice.choice(kinds)

    def value(self, kind: str, scope: Scope, depth: int = 2) -> str:
        """Return the text of a real or (kind c) complex expression."""
        return self.make.expression(kind, scope, self.choice.randint(1, depth))

    def assignment(self, scope: Scope, _depth: int) -> Lines:
        """Define a variable as something new, in memory of its own."""
        name, kind = self.make.fresh("v"), self.kind()
        fresh = self.choice.choice(
            (
                "{X} * {S}",
                "{X} + {X}",
                "np.sin({X})",
                "np.copy({X})",
                "np.array({X}, like=x)",
                "({X}).copy()",
                "{X} * 1.0",
            )
        )
        if kind == "S":
            text, own = self.value(kind, scope, 3), False
        elif self.choice.random() < 0.25:
            shape = SHAPES[kind]
            text = self.choice.choice(
                (f"np.zeros({shape}, like=x)", f"np.ones({shape}, like=x)", f"np.full({shape}, 0.5, like=x)")
            )
            own = True
        else:
            text, own = self.make.filled(fresh, kind, scope, 2), True
            if kind not in "SPVFMWQ":
                own = False
        scope.names.append(Name(name, kind, own=own))
        return [f"{name} = {text}"]

    def rebinding(self, scope: Scope, _depth: int) -> Lines:
        """Bind an old name anew."""
        names = [n for n in scope.names if n.bound and n.number == "f" and "(" not in n.text]
        if not names:
            return []
        name = self.choice.choice(names)
        templates = (
            "np.sin({X}) + {a}",
            "{a} * {S}",
            "{a} + {X}",
            "np.where({bX}, {a}, {X})",
            "np.copy({X})",
            "np.tanh({a})",
        )
        template = self.choice.choice(templates).replace("{a}", name.text)
        return [f"{name.text} = {self.make.filled(template, name.kind, scope, 1)}"]

    def alias(self, scope: Scope, _depth: int) -> Lines:
        """Give an object another name, or two names at once."""
        name = self.make.fresh("v")
        source = self.choice.choice([n for n in scope.names if n.number in "fc"])
        scope.names.append(Name(name, source.kind, source.number, source.own))
        return [f"{name} = {source.text}"]

    # Views and writes

    def view(self, scope: Scope, _depth: int, table: dict[str, tuple[str, ...]] = VIEWS) -> Lines:
        """Define a view of something that may be written into."""
        kind = self.choice.choice([k for k in table if k != "S" or "zero" in self.features])
        source, template = self.choice.choice(table[kind]).split(": ", 1)
        arrays = [n for n in scope.writable(source) if n.number == "f" or "real" not in template]
        if not arrays:
            return []
        name, array = self.make.fresh("v"), self.choice.choice(arrays)
        scope.names.append(Name(name, kind, array.number, True))
        return [f"{name} = {template.format(array.text)}"]

    def maybe_view(self, scope: Scope, depth: int) -> Lines:
        """Define what is a view or a copy, as the memory order decides."""
        return self.view(scope, depth, MAYBE_VIEWS)

    def target(self, scope: Scope, table: Iterable[str], numbers: str = "f") -> Name | None:
        """Return something that may be written into."""
        found = scope.writable("".join(table), numbers)
        return self.choice.choice(found[-8:]) if found else None

    def write(self, scope: Scope, _depth: int) -> Lines:
        """Write to a part of an array."""
        array = self.target(scope, PLACES, "fc")
        if array is None:
            return []
        kind, place = self.choice.choice(PLACES[array.kind]).split(": ", 1)
        operator = self.choice.choice(("=", "=", "=", "+=", "*=", "-="))
        prefix = "c" if array.number == "c" and self.choice.random() < 0.5 and kind in "SPVMFWQ" else ""
        index = self.make.filled(place, array.kind, scope, 0)
        counters = [n.text for n in scope.names if n.number == "k"]
        if kind == "S" and array.kind == "V" and counters and self.choice.random() < 0.7:
            index = f"{self.choice.choice(counters)} % 3"
        value = self.value(prefix + kind, scope)
        if "MASK" in place or "True" in place:  # NumPy goes on reading a view of the array while it writes by a mask
            value = f"np.copy({value})"
        return [f"{array.text}[{index}] {operator} {value}"]

    def large(self, scope: Scope, _depth: int) -> Lines:
        """Define an array that is too large to be compared by elements, and a view of a part, or write to one."""
        known = [n.text for n in scope.names if n.number == "l"]
        if known and self.choice.random() < 0.5:
            name = self.choice.choice(known)
            writes = (
                "{a}[1:4] = {V}",
                "{a}[2] *= {S}",
                "{a}[[0, 5]] += {P}",
                "{a} *= {S}",
                "{a}[:6].reshape(2, 3)[1] -= {V}",
            )
            return [self.make.filled(self.choice.choice(writes).replace("{a}", name), "V", scope, 1)]
        name, view = self.make.fresh("long"), self.make.fresh("v")
        made = ("np.zeros(70_000, like=x)", "np.array(TALL, like=x)", "TALL * {S}", "np.copy(TALL)", "np.ones(70_000)")
        scope.names += [Name(name, "", "l", own=True), Name(view, "V", own=True)]
        scope.rules += [("S", f"np.sum({name}[:9])"), ("V", f"{name}[3:6] * {{S}}"), ("S", f"np.mean({name}) * {{S}}")]
        return [f"{name} = {self.make.filled(self.choice.choice(made), 'V', scope, 1)}", f"{view} = {name}[2:5]"]

    def augmented(self, scope: Scope, _depth: int) -> Lines:
        """Change a whole array in place, or bind a scalar anew in the same words."""
        names = [n for n in scope.names if n.bound and n.number in "fc" and (n.own or n.kind == "S")]
        if not names:
            return []
        name = self.choice.choice(names[-8:])
        smaller = {"M": "V", "W": "P", "Q": "V"}.get(name.kind, "S")
        kind = self.choice.choice((name.kind, name.kind, smaller, "S"))
        operator = self.choice.choice(("+=", "*=", "-=", "+=", "*=", "/="))
        value = self.value(kind, scope)
        return [f"{name.text} {operator} " + (f"2.0 + np.cos({value})" if operator == "/=" else value)]

    def through(self, scope: Scope, _depth: int) -> Lines:
        """Write through views that have no name."""
        array = self.target(scope, THROUGH)
        if array is None:
            return []
        template = self.choice.choice(THROUGH[array.kind]).replace("{a}", array.text)
        return [self.make.filled(template, array.kind, scope, 1)]

    def writer(self, scope: Scope, _depth: int) -> Lines:
        """Call a function that writes into an array."""
        array = self.target(scope, SHAPES)
        if array is None:
            return []
        template = self.choice.choice(WRITERS["any"] + WRITERS.get(array.kind, ()) * 2).replace("{a}", array.text)
        return [self.make.filled(template, array.kind, scope, 1)]

    def zero_dimensional(self, scope: Scope, _depth: int) -> Lines:
        """Define an array of no dimensions, or an element taken out of an array."""
        name = self.make.fresh("v")
        value = self.value("S", scope)
        arrays = (f"np.array({value}, like=x)", "np.zeros((), like=x)", "np.array(0.5, like=x)")
        if self.choice.random() < 0.2 and "choices" in self.features:
            array = self.choice.choice(arrays)
            scope.names.append(Name(name, "S"))
            return [f"{name} = {array} if {self.make.condition(scope, 1)} else {self.value('S', scope)}"]
        others = (f"np.asarray({value} * 1.0, like=x)", "np.zeros_like(y[0, ..., 1])", "y[1, 2]", "x[0]")
        forms = [*((text, True) for text in arrays), *((text, False) for text in others)]
        text, own = self.choice.choice(forms)
        scope.names.append(Name(name, "S", own=own))
        return [f"{name} = {text}"]

    def complex_statement(self, scope: Scope, _depth: int) -> Lines:
        """Define a complex array, take a part of one, or write to a part."""
        arrays = [n for n in scope.names if n.number == "c"]
        if not arrays or self.choice.random() < 0.4:
            name, kind = self.make.fresh("z"), self.kind("VVMPSQ")
            value = self.value("c" + kind, scope)
            scope.names.append(Name(name, kind, "c", kind != "S"))
            return [f"{name} = ({value}) * (1 - 0.5j)"]
        array = self.choice.choice(arrays)
        part = self.choice.choice(("real", "imag"))
        if array.own and self.choice.random() < 0.5:
            operator = self.choice.choice(("=", "+=", "*="))
            return [f"{array.text}.{part} {operator} {self.value(array.kind, scope)}"]
        name = self.make.fresh("v")
        scope.names.append(Name(name, array.kind, "f", array.own))
        return [f"{name} = {array.text}.{part}"]

    # Python's own objects

    def counter(self, scope: Scope, _depth: int) -> Lines:
        """Define a Python number, or count on."""
        counters = [n for n in scope.names if n.number == "k"]
        bound = [n.text for n in counters if n.bound]
        if bound and self.choice.random() < 0.7:
            return [f"{self.choice.choice(bound)} += 1"]
        if self.choice.random() < 0.4:
            name = self.make.fresh("v")
            scope.names.append(Name(name, "S"))
            return [f"{name} = {self.choice.choice(('0.0', '1', '2.5', '0'))}"]
        name = self.make.fresh("k")
        scope.names.append(Name(name, "S", "k"))
        scope.rules.append(("S", f"{{S}} * {name}"))
        return [f"{name} = {self.choice.choice((0, 1, 2))}"]

    def container(self, scope: Scope, _depth: int) -> Lines:
        """Define a list, tuple or dictionary, unpack one, or append."""
        arrays = [n for n in scope.names if n.number in "fc"]
        one, other = self.choice.choice(arrays), self.choice.choice(arrays)
        form = self.choice.choice(("list", "list", "dict", "tuple", "unpack", "rows", "append", "nested"))
        name = self.make.fresh("l")
        if form == "list":
            scope.names += [self.element(f"{name}[0]", one), self.element(f"{name}[1]", other)]
            return [f"{name} = [{one.text}, {other.text}]"]
        if form == "dict":
            scope.names += [self.element(f"{name}['a']", one), self.element(f"{name}['b']", other)]
            return [f"{name} = {{'a': {one.text}, 'b': {other.text}}}"]
        if form == "tuple":
            scope.names += [Name(f"({name}[0])", one.kind, one.number, one.own)]
            return [f"{name} = ({one.text}, {other.text})"]
        if form == "nested":
            scope.names += [self.element(f"{name}[0]['a']", one), self.element(f"{name}[1][0]", other)]
            return [f"{name} = [{{'a': {one.text}}}, [{other.text}, {one.text}]]"]
        if form == "append":
            values = self.value("S", scope), self.value("V", scope)
            scope.names.append(self.element(f"{name}[-1]", Name("", "V")))
            return [f"{name} = []", *(f"{name}.append({value})" for value in values)]
        if form == "rows":
            matrices = scope.writable("M")
            if not matrices:
                return []
            matrix = self.choice.choice(matrices)
            rows = self.make.fresh("v"), self.make.fresh("v")
            scope.names += [Name(row, "V", matrix.number, True) for row in rows]
            return [f"{rows[0]}, {rows[1]} = {matrix.text}"]
        first, second = self.make.fresh("v"), self.make.fresh("v")
        scope.names += [Name(first, other.kind, other.number, other.own), Name(second, one.kind, one.number, one.own)]
        return [f"{first}, {second} = {other.text}, {one.text}"]

    def element(self, text: str, source: Name) -> Name:
        """Return what is stored in a container, as something to be named."""
        return Name(text, source.kind, source.number, source.own)

    def box(self, scope: Scope, _depth: int) -> Lines:
        """Define an object, call a method that changes one, or let Python call it."""
        boxes = [n for n in scope.names if n.text.endswith(".value")]
        if boxes and self.choice.random() < 0.75:
            box = self.choice.choice(boxes).text.removesuffix(".value")
            return [self.choice.choice(BOXED).format(box=box, by=self.value("S", scope), other=self.value("S", scope))]
        name, kind = self.make.fresh("o"), self.kind("VMP")
        value = self.value(kind, scope)
        scope.names.append(Name(f"{name}.value", kind, own=True))
        return [f"{name} = Box(np.copy({value}))"]

    def space(self, scope: Scope, _depth: int) -> Lines:
        """Define or set something under a name that is computed: an attribute, or a global variable."""
        known = [n for n in scope.names if n.text.endswith(".level") or n.text.startswith("u")]
        if known and self.choice.random() < 0.6:
            place = self.choice.choice(known)
            owner, _, attribute = place.text.rpartition(".")
            kind = place.kind
        else:
            kind, owner, attribute = self.kind("SVMP"), self.make.fresh("o"), "level"
            if self.choice.random() < 0.4:
                owner, attribute = "", self.make.fresh("u")
        value = self.make.filled("np.copy({X}) * 1.0", kind, scope, 1)
        text = f"{owner}.{attribute}" if owner else attribute
        new = all(n.text != text for n in scope.names)
        if new:
            scope.names.append(Name(text, kind, own=kind != "S", bound=False))
        if not owner:
            return [f"globals()['{attribute}'] = {value}"]
        made = self.choice.choice(("types.SimpleNamespace()", f"types.ModuleType('{owner}')"))
        set_it = self.choice.choice(("setattr({}, '{}', {})", "vars({})['{}'] = {}", "{}.{} = {}"))
        return [*([f"{owner} = {made}"] if new else []), set_it.format(owner, attribute, value)]

    def octets(self, scope: Scope, _depth: int) -> Lines:
        """Define an array of bytes, or count on in one."""
        known = [n for n in scope.names if n.number == "o"]
        if known and self.choice.random() < 0.5:
            return [f"{self.choice.choice(known).text}[0] += 1"]
        name = self.make.fresh("b")
        scope.names.append(Name(name, "S", "o"))
        scope.rules.append(("S", f"{{S}} * {name}[0]"))
        return [f"{name} = bytearray([1, 2])"]

    def dictionary(self, scope: Scope, _depth: int) -> Lines:
        """Define a dictionary of arrays and change all of them in a loop over it, or enter one under a key."""
        name, key, item = self.make.fresh("d"), self.make.fresh("i"), self.make.fresh("e")
        arrays = scope.writable("VMPFQ", "f")
        if not arrays:
            return []
        one, other = self.choice.choice(arrays), self.choice.choice(arrays)
        scope.names += [self.element(f"{name}['a']", one), self.element(f"{name}['b']", other)]
        lines = [f"{name} = {{'a': {one.text}, 'b': {other.text}}}"]
        value = self.value("S", scope)
        form = self.choice.choice(("change", "replace", "values", "comprehend", "key"))
        if form == "change":
            return [*lines, f"for {key}, {item} in {name}.items():", f"    {item} *= {value}"]
        if form == "replace":
            return [*lines, f"for {key} in {name}:", f"    {name}[{key}] = {name}[{key}] * {value}"]
        if form == "values":
            return [*lines, f"for {item} in {name}.values():", f"    {item}[...] = {item} + {value}"]
        if form == "comprehend":
            return [*lines, f"{name} = {{{key}: {item} * {value} for {key}, {item} in {name}.items()}}"]
        scope.names.append(self.element(f"{name}['a2']", one))
        return [*lines, f"{name}[f'a{{len({name})}}'] = {one.text}"]

    def whole(self, scope: Scope, _depth: int) -> Lines:
        """Define an array of integers, or write to one."""
        arrays = [n for n in scope.names if n.number == "i" and n.own]
        if arrays and self.choice.random() < 0.4:
            array = self.choice.choice(arrays).text
            index = self.choice.choice(("0", "1:", "[2, 0]", "...", self.make.filled("{iS} % 3", "S", scope, 0)))
            operator = self.choice.choice(("=", "+=", "-=", "*="))
            return [f"{array}[{index}] {operator} {self.make.filled('{iS}', 'S', scope, 1)}"]
        name = self.make.fresh("w")
        text = self.make.filled(
            self.choice.choice(("{iV} * 1", "np.copy({iV})", "np.array({iV}, like=x)")), "V", scope, 1
        )
        scope.names.append(Name(name, "V", "i", own=True))
        return [f"{name} = {text}"]
