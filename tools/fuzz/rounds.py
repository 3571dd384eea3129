"""Loops of many rounds, which become equations under `jit`: what they carry and count, and lists they append to.

Values stay moderate: what a round leaves is a share of what there was, and something bounded.
"""

from __future__ import annotations

import re

from tools.fuzz.grammar import Name, Scope, templates
from tools.fuzz.statements import Lines, Maker, Statements

__all__ = ["Rounds"]

LENGTHS = (2, 3, 17, 33, 34, 37, 40)
"""Rounds: of some statements few, in which they are written out, and of most as many as become an equation."""

# What a list of one item or more is read by, where `{l}` is the list.
READ = templates(
    """
    sum({l}) ; sum({l}, {S}) ; {l}[0] ; {l}[-1] ; {l}[len({l}) - 1] ; {l}[len({l}) // 2] ; {l}[::-1][0] ; {l}[-1:][0]
    np.sum(np.stack({l}), axis=0) ; np.stack({l})[-1] ; np.array({l}, like=x)[0] ; np.mean({l}, axis=0)
    functools.reduce(lambda {t}, {u}: {t} * 0.5 + {u}, {l}) ; sum({t} * {S} for {t} in {l}) ; list({l}).pop()
    sum([{t} * 0.5 for {t} in {l}[1:]], {l}[0]) ; (*{l}, {X})[-1] ; len({l}) * {X} ; [*{l}, {X}][-2]
    {X} / (1 + len({l})) ; sum({t} * {u} for {t}, {u} in zip({l}, {l}[1:])) + {X} ; sum(reversed({l}))
    {X} if len({l}) % 2 else {S} * {X}
    """
)
# What changes a list besides `append`, where `{l}` is the list and `{X}` an item.
CHANGES = templates(
    """
    {l}[-1] = {X} ; {l}[0] = {X} ; {l} += [{X}] ; {l} = [*{l}, {X}] ; {l} = {l} + [{X}] ; {l}.extend([{X}, {X}])
    {l}.insert(0, {X}) ; {l}.pop() ; {l}[-1] = {l}[-1] * 0.5 ; {l}.reverse() ; {l} = {l}[-2:] ; {l}[:] = [{X}, {X}]
    {l}.append({l}.pop() * 0.5) ; {l}.append({l}[0]) ; {l}.append({l}[-1])
    """
)
# How an item is put into a container of its own in a list, if it is, and how it is read there.
ITEMS = {"{}": "", "({}, 0.5)": "[0]", "[{}]": "[0]", "{{'a': {}, 'b': 0.5}}": "['a']", "Box({})": ".value"}
# What functions of numbers that are known may give, where `{k}` is such a number.
COUNTED = templates(
    """
    math.sin({k}) ; math.cos({k}) * {S} ; math.exp(-{k}) ; np.sin({k}) ; {S} * {k} * 0.01
    {S} * math.sin({k} * 0.5) ** 2 ; np.cos({k} * {S}) ; math.sqrt(1.0 + {k} * {k}) ; math.floor({k}) * 0.1
    {S} / (1.0 + abs({k}))
    """
)
# What a `match` statement looks at, and the patterns that fit; `{e}` is a name that a pattern binds to what `:` says.
PATTERNS = {
    "{iS}": ("0", "1 | 2", "-1", "3", "{e:iS}", "_", "LIMITS.low"),
    "{S}": ("0.5", "{e:S}", "_", "LIMITS.high"),
    "({iS}, {X})": ("(0, {e:X})", "(_, {e:X})", "({e:iS}, _)", "_", "[{e:iS}, {e:X}]", "(_, _, {e:X})"),
    "[{X}, {X}]": ("[{e:X}, _]", "[{e:X}, *_]", "[*_, {e:X}]", "[{e:X}]", "_"),
    "{'a': {X}, 'b': {S}}": ("{'a': {e:X}}", "{'b': {e:S}, 'a': _}", "{'c': _}", "{'a': {e:X}, **_rest}", "_"),
    "Box({X})": ("Box(value={e:X})", "Box(count=1)", "Box(count=2)", "Box(value={e:X}, count=1)", "_"),
}


class Rounds(Statements):
    """Make loops of many rounds, and the statements in which these differ from short ones."""

    def wanted(self, depth: int) -> list[tuple[str, float, Maker]]:
        """Return the statements of each feature, with how often they are wanted."""
        found = [*super().wanted(depth), ("lists", 0.2, self.change_list)]
        if depth <= 0:
            return found
        return [*found, ("lists", 0.6, self.append), ("rounds", 0.5, self.carry), ("match", 0.3, self.match)]

    def share_of(self, kind: str, scope: Scope) -> str:
        """Return the text of a small bounded float of a kind."""
        return f"0.3 * np.sin({self.value(kind, scope, 1)})"

    def head(self, scope: Scope) -> tuple[Lines, str, list[Name], Lines]:
        """Return what stands before a loop of many rounds, its head, what that names, and the end of its body."""
        length = self.choice.choice(LENGTHS)
        item, index = self.make.fresh("e"), self.make.fresh("i")
        counter, moment = (Name(index, "S", number, bound=False) for number in "kt")
        heads = {
            f"for {index} in range({length}):": [counter],
            f"for {index} in range({length + 2}, 2, -1):": [counter],
            f"for {item} in TALL[:{length}]:": [Name(item, "S")],
            f"for {item} in TALL[:{length}] * {self.value('S', scope)}:": [Name(item, "S")],
            f"for {item} in np.outer(TALL[:{length}], {self.value('V', scope)}):": [Name(item, "V")],
            f"for {index}, {item} in enumerate(TALL[:{length}], 1):": [counter, Name(item, "S")],
            f"for {item}, {index} in zip(np.outer(TALL[:{length}], x), range({length})):": [Name(item, "V"), counter],
            f"for {item} in TALL[:{length}].tolist():": [Name(item, "S", "t", bound=False)],
            f"for {index} in [0.5, 1.5, -0.5] * {max(length // 3, 1)}:": [moment],
        }
        form = self.choice.choice((*heads, "while", "time"))
        if form == "while":
            return [f"{index} = 0"], f"while {index} < {length}:", [counter], [f"{index} += 1"]
        if form == "time":
            last = self.choice.choice((0.25, 1.7, 2.0))
            return [f"{index} = 0.0"], f"while {index} < {last}:", [moment], [f"{index} += 0.05"]
        return [], form, heads[form], []

    def clock(self, scope: Scope, inner: Scope) -> tuple[Lines, Lines]:
        """Return what starts a number that a loop counts on, and what counts, and let others see it."""
        name, step = self.make.fresh("k"), self.choice.choice(("0.05", "0.1", "1", "0.5"))
        scope.names.append(Name(name, "S", "t", bound=False))
        inner.rules += counted(name)
        count = self.choice.choice(
            (f"{name} += {step}", f"{name} = {name} + {step}", f"{name} = {step} - {name} * 0.5")
        )
        return [f"{name} = {self.choice.choice(('0.0', '0', '0.25', '1'))}"], [count]

    def round(self, inner: Scope, depth: int, steps: Lines) -> Lines:
        """Return the body of a loop: some steps, perhaps beside others."""
        lines = [*steps, *(self.block(inner, 1, depth - 2) if self.choice.random() < 0.3 else [])]
        if self.choice.random() < 0.1 and "exits" in self.features:
            lines = [f"if {self.make.condition(inner, 1)}:", f"    {self.choice.choice(('break', 'continue'))}", *lines]
        return ["    " + line for line in lines]

    def carry(self, scope: Scope, depth: int) -> Lines:
        """Carry a value over many rounds, and perhaps numbers that are known."""
        kind, name = self.kind("SSVVPM"), self.make.fresh("v")
        lines, head, names, end = self.head(scope)
        start = f"{self.value(kind, scope)} * 1.0"
        new = Name(name, kind, own=kind != "S")
        inner = scope.inner(*names, new)
        inner.rules += [rule for n in names if n.number in "kt" for rule in counted(n.text)]
        steps = [f"{name} = {name} * 0.5 + {self.share_of(kind, inner)}"]
        if self.choice.random() < 0.5:
            started, counting = self.clock(scope, inner)
            steps = [f"{name} = {name} * 0.5 + {self.share_of(kind, inner)}"]
            lines, steps = [*lines, *started], self.choice.choice(([*steps, *counting], [*counting, *steps]))
        if kind != "S" and self.choice.random() < 0.2:
            steps.append(f"{name} *= 0.75")
        scope.names.append(new)
        return [*lines, f"{name} = {start}", head, *self.round(inner, depth, [*steps, *end])]

    def append(self, scope: Scope, depth: int) -> Lines:
        """Let a loop append to one list or two, and read what it has appended; others may read it, too."""
        kind, length = self.kind("SSVVP"), self.choice.choice((0, 1, 1, 2))
        item = self.choice.choice(("{}",) * 8 + tuple(ITEMS))
        lines, xs = self.new_list(kind, length, item, scope)
        before, head, names, end = self.head(scope)
        inner = scope.inner(*names)
        lines += before
        steps: Lines = []
        if self.choice.random() < 0.3:
            started, counting = self.clock(scope, inner)
            lines, steps = [*lines, *started], counting
        part = ITEMS[item]
        listed = f"[t{part} for t in {xs}]" if part else xs
        reads = [f"{xs}[-{k}]{part}" for k in range(1, length + 1)] * 2
        reads += [text.replace("{l}", listed) for text in READ] if length and self.choice.random() < 0.2 else []
        last = self.make.fresh("o") if length and self.choice.random() < 0.2 else ""
        if last:
            steps = [*steps, f"{last} = {xs}[-1]"]
            reads += [f"{last}{part}"] * 2
        inner.rules += [(kind, text) for text in reads]
        inner.rules += [("S", f"len({xs}) * {{S}}")] if self.choice.random() < 0.15 else []
        if self.choice.random() < 0.25:
            lines += self.reader(kind, length, listed, inner)
        add = f"{xs}.append"
        if self.choice.random() < 0.1:
            add = self.make.fresh("g")
            lines += [f"def {add}(t):", f"    {xs}.append(t)"]
        steps += self.appended(kind, f"{add}({item})", reads, inner)
        if self.choice.random() < 0.3:
            made, ys = self.new_list(kind, 1, item, scope)
            lines = made + lines
            inner.rules += [(kind, f"{ys}[-1]{part}")]
            other = f"{ys}[-1]{part} * 0.5 + {self.share_of(kind, inner)}"
            more = f"{ys}.append({self.choice.choice((item.format(other), item.format(other), f'{xs}[-1]'))})"
            steps = self.choice.choice(([*steps, more], [more, *steps]))
        if self.choice.random() < 0.1:
            steps.append(self.changed(xs, kind, item, inner))
        rest = self.round(inner, depth, [*steps, *end])
        scope.names.append(Name(f"{xs}[-1]{part}", kind, own=kind != "S" and self.choice.random() < 0.5))
        if last:
            scope.names.append(Name(f"{last}{part}", kind, own=kind != "S"))
        scope.rules += [(kind, self.choice.choice(READ).replace("{l}", listed)) for _ in range(3)]
        again = []
        if self.choice.random() < 0.2:
            name, element = self.make.fresh("v"), self.make.fresh("e")
            scope.names.append(Name(name, kind))
            again = [f"{name} = {self.value(kind, scope, 1)} * 1.0", f"for {element} in {xs}:"]
            again.append(f"    {name} = {name} * 0.5 + np.sin({element}{part})")
        return [*lines, head, *rest, *again]

    def new_list(self, kind: str, length: int, item: str, scope: Scope) -> tuple[Lines, str]:
        """Return statements that make a list of some items, and how it is written: a name, an element, an attribute."""
        name = self.make.fresh("l")
        values = [item.format(f"{self.value(kind, scope, 1)} * 1.0") for _ in range(length)]
        items = f"[{', '.join(values)}]"
        form = self.choice.choice(("name",) * 6 + ("dict", "attribute", "nested", "twice"))
        if form == "dict":
            return [f"{name} = {{'a': {items}, 'b': 0.5}}"], f"{name}['a']"
        if form == "attribute":
            return [f"{name} = types.SimpleNamespace()", f"{name}.level = {items}"], f"{name}.level"
        if form == "nested":
            return [f"{name} = [0.5, {items}]"], f"{name}[1]"
        if form == "twice":
            other = self.make.fresh("l")
            return [f"{name} = {items}", f"{other} = {name}"], self.choice.choice((name, other))
        return [f"{name} = {items}"], name

    def appended(self, kind: str, add: str, reads: Lines, inner: Scope) -> Lines:
        """Return statements that append an item, whose value may be one that a round appended before."""
        old = f"{self.make.filled(self.choice.choice(reads), kind, inner, 0)} * 0.5 + " if reads else ""
        value = f"{old}{self.share_of(kind, inner)}"
        other = self.share_of(kind, inner)
        form = self.choice.choice(("plain",) * 4 + ("named", "written", "branch", "chosen", "row", "packed"))
        name = self.make.fresh("v")
        if form == "named":
            inner.names.append(Name(name, kind))
            return [f"{name} = {value}", add.format(name)]
        if form == "written" and kind != "S":
            return [f"{name} = {value}", add.format(name), f"{name}[0] = {self.share_of('S', inner)}"]
        if form == "branch":
            test = self.make.condition(inner, 1)
            return [f"if {test}:", f"    {add.format(value)}", "else:", f"    {add.format(other)}"]
        if form == "chosen":
            return [add.format(f"{value} if {self.make.condition(inner, 1)} else {other}")]
        matrices = [n for n in inner.writable("MWQ") if {"M": "V", "W": "P", "Q": "V"}[n.kind] == kind]
        counters = [n.text for n in inner.names if n.number == "k"]
        if form == "row" and matrices and counters:
            return [add.format(f"{self.choice.choice(matrices).text}[{self.choice.choice(counters)} % 2]")]
        if form == "packed":
            function, packed = add.split("(", 1)
            return [f"{name} = {packed[:-1].format(value)}", f"{function}({name})"]
        return [add.format(value)]

    def reader(self, kind: str, length: int, xs: str, inner: Scope) -> Lines:
        """Define a function that reads a list."""
        name = self.make.fresh("g")
        forms = READ if length else ("len({l}) * {X}", "{X} if len({l}) % 2 else {S} * {X}")
        bare = Scope([Name("x", "V", bound=False), Name("y", "M", bound=False), Name("s", "S", bound=False)])
        value = self.make.filled(self.choice.choice(forms).replace("{l}", xs), kind, bare, 1)
        inner.rules += [(kind, f"{name}({{{kind}}})")] * 3
        return [f"def {name}(t):", f"    return t * 0.5 + {value}"]

    def changed(self, xs: str, kind: str, item: str, scope: Scope) -> str:
        """Return a statement that changes a list."""
        template = self.choice.choice(CHANGES).replace("{l}", xs)
        if ITEMS[item] and "* 0.5" in template:
            template = f"{xs}.append({xs}.pop())"
        values = [item.format(self.value(kind, scope, 1)) for _ in range(template.count("{X}"))]
        for value in values:
            template = template.replace("{X}", value, 1)
        return template

    def change_list(self, scope: Scope, _depth: int) -> Lines:
        """Change a list outside of the loop that appends to it."""
        lists = [n for n in scope.names if n.text.endswith("[-1]") and n.bound and n.number == "f"]
        if not lists:
            return []
        name = self.choice.choice(lists)
        return [self.changed(name.text.removesuffix("[-1]"), name.kind, "{}", scope)]

    def pattern(self, pattern: str, kind: str) -> tuple[str, list[Name]]:
        """Return the text of a pattern, and the names that it binds."""
        bound: list[Name] = []

        def bind(found: re.Match[str]) -> str:
            bound.append(Name(self.make.fresh("e"), found[1].replace("X", kind)[-1], "i" if found[1] == "iS" else "f"))
            return bound[-1].text

        return re.sub(r"\{e:(\w+)\}", bind, pattern), bound

    def match(self, scope: Scope, depth: int) -> Lines:
        """Make a match statement, which gives a variable a value in each case."""
        kind, name = self.kind("SVVPM"), self.make.fresh("v")
        subject, patterns = self.choice.choice(sorted(PATTERNS.items()))
        lines = [f"{name} = {self.value(kind, scope)} * 1.0", f"match {self.make.filled(subject, kind, scope, 1)}:"]
        for pattern in self.choice.sample(patterns, self.choice.randint(1, len(patterns))):
            text, bound = self.pattern(pattern, kind)
            inner = scope.inner(*bound)
            guard = f" if {self.make.condition(inner, 1)}" if self.choice.random() < 0.4 else ""
            value = self.value(kind, inner) if not bound or bound[-1].kind != kind else f"{bound[-1].text} * 0.5"
            body = [*self.block(inner, self.choice.choice((0, 0, 1)), depth - 1), f"{name} = {value}"]
            lines += [f"    case {text}{guard}:", *("        " + line for line in body)]
            if text.isidentifier() and not guard:
                break  # which nothing may follow
        scope.names.append(Name(name, kind))
        return lines


def counted(name: str) -> list[tuple[str, str]]:
    """Return rules of what a known number is good for."""
    return [("S", text.replace("{k}", name)) for text in COUNTED]
