"""Functions in LLVM's language, written as Python functions: this and `values` alone know how it is written.

    @native(I64, Pointer(I64), I64)
    def total(b, numbers, count):
        with b.loop(count, carry=[0]) as loop:
            loop.next(loop.values[0] + numbers.at(loop.index).load())
        b.give(loop.results[0])

`program(total)` is the text of it and of all that it calls. Values have types, which every operation checks. Integers
are signed; `//` and `%` are for numbers that are not negative. Operations on vectors work on each of their numbers.
Nothing is optimised later but by the code generator, so what should be computed once is written once; a Python function
that writes instructions is an inlined function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from wengert.native.functions import BEGIN, MARK, ConstantTable, NativeFunction, Template, argument, join_by_commas
from wengert.native.structs import BOOL, I64, VOID, Type, Void
from wengert.native.values import Instructions, Operand, Value


class OpenLoop:
    """Be a loop that is being written: its index and the values of this round; after it, the last ones.

    A round may set `step`, from its number to the next one's.
    """

    def __init__(self, index: Value, values: list[Value], step: Operand) -> None:
        self.index = index
        self.values = values
        self.step = step
        self.following: list[Value] | None = [] if not values else None
        self.results: list[Value] = []

    def next(self, *values: Operand) -> None:
        """Say what is carried into the next round."""
        if len(values) != len(self.values):
            raise TypeError(f"{len(values)} values for {len(self.values)} that are carried")
        b = self.index.b
        self.following = [b.operand(value, kept.type) for value, kept in zip(values, self.values, strict=True)]


class Builder(Instructions):
    """Write the body of one function.

    Args:
        returns: the type of its result.
        mark: what names begin with: that of a template, or nothing.
    """

    def __init__(self, returns: Type | Void, mark: str = "") -> None:
        super().__init__(mark)
        self.returns = returns

    def give(self, value: Operand = None) -> None:
        """Return from the function."""
        if isinstance(self.returns, Void):
            self.end("ret void")
        else:
            self.end(f"ret {self.operand(value, self.returns)}")

    def give_if(self, condition: Value, value: Operand = None) -> None:
        """Return a value, which is there in any case, from the function if a condition holds."""
        with self.when(condition):
            self.give(value)

    def paste(self, template: Template, *arguments: Value) -> list[Value]:
        """Write a template's instructions and return what they give."""
        mark = f"{self.mark}.{self.names + 1}"
        self.names += 1

        def own(text: str) -> str:
            text = text.replace(BEGIN, f"{self.block}").replace(MARK, mark)
            for n, x in enumerate(arguments):
                text = text.replace(f"%{mark}argument{n}.", x.text)
            return text

        results = [Value(self, kind, own(text)) for kind, text in template.results]
        self.lines.append(own(template.text))
        self.called.update(dict.fromkeys(template.called))
        if template.block != BEGIN:
            self.block = own(template.block)
        return results

    # ---------------------------------------------------------------- control

    @contextmanager
    def loop(
        self, stop: Operand, start: Operand = 0, carry: Sequence[Operand] = (), step: int = 1, certain: bool = False
    ) -> Iterator[OpenLoop]:
        """Repeat what follows for each number from `start` up to `stop`, which is not among them.

        Args:
            stop: where to stop.
            start: where to start.
            carry: values that a round hands to the next one, as they are at the start; Python's numbers are I64.
            step: from one number to the next.
            certain: whether there is a first round, where numbers do not say so: a block and a jump less.
        """
        first, last = self.operand(start, I64), self.operand(stop, I64)
        carried = [self.operand(value, value.type if isinstance(value, Value) else I64) for value in carry]
        head, out = self.label("loop"), self.label("done")
        certain = certain or (isinstance(start, int) and isinstance(stop, int) and start < stop)
        before = self.end(f"br label %{head}") if certain else self.branch(first < last, head, out)
        self.begin(head)
        at = len(self.lines)
        loop = OpenLoop(self.reserve_value(I64), [self.reserve_value(value.type) for value in carried], step)
        yield loop
        if loop.following is None:
            raise TypeError("`next` was not called for what the loop carries")
        added = self.new(I64, f"add nsw {loop.index}, {self.operand(loop.step, I64).text}")
        # frozen, so that LLVM does not reduce the strength of indices: 15 % of its time, for addresses that are as good
        following = self.new(I64, f"freeze {added}")
        back = self.branch(following < last, head, out)
        self.begin(out)
        rounds = zip([loop.index, *loop.values], [first, *carried], [following, *loop.following], strict=True)
        self.lines[at:at] = [f"  {x.text} = {phi_instruction(a, before, c, back)}" for x, a, c in rounds]
        if certain:
            loop.results = loop.following
            return
        ends = zip(carried, loop.following, strict=True)
        loop.results = [self.new(a.type, phi_instruction(a, before, c, back)) for a, c in ends]

    @contextmanager
    def forever(self) -> Iterator[None]:
        """Repeat what follows until the function returns."""
        head = self.label("again")
        self.end(f"br label %{head}")
        self.begin(head)
        yield
        self.end(f"br label %{head}")

    @contextmanager
    def section(self) -> Iterator[Callable[[], None]]:
        """Do what follows; what is yielded leaves it at once, wherever in it that is called."""
        out = self.label("out")
        yield lambda: self.leave(out)
        if self.block is not None:
            self.leave(out)
        self.begin(out)

    def leave(self, block: str) -> None:
        """Go on in another block."""
        self.end(f"br label %{block}")

    @contextmanager
    def when(self, condition: Value) -> Iterator[AbstractContextManager[None]]:
        """Do what follows if a condition holds; what is yielded does what follows it if not."""
        yes, no = self.label("when"), self.label("otherwise")
        self.branch(condition, yes, no)
        self.begin(yes)
        leaving: list[int] = []  # where the line stands that leaves the first part
        yield self.otherwise(leaving, no)
        if self.block is not None:
            leaving.append(len(self.lines))
            self.end(f"br label %{no}")
        self.begin(no)

    @contextmanager
    def otherwise(self, leaving: list[int], no: str) -> Iterator[None]:
        """Do what follows if the condition of a `when` did not hold."""
        if not self.lines or self.lines[-1] != f"{no}:":
            raise TypeError("something stands between a `when` and its other part")
        yield
        join = self.label("join")
        for line in leaving:
            self.lines[line] = f"  br label %{join}"
        if self.block is not None:
            self.end(f"br label %{join}")
            leaving.append(len(self.lines))
        if leaving:
            self.begin(join)

    def either(
        self, condition: Value, yes: Callable[[], Sequence[Value]], no: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """Do one of two things, and return the values that it gave."""
        first, second, join = self.label("either"), self.label("or"), self.label("join")
        self.branch(condition, first, second)
        self.begin(first)
        given = yes()
        before = self.end(f"br label %{join}")
        self.begin(second)
        other = no()
        back = self.end(f"br label %{join}")
        self.begin(join)
        pairs = zip(given, other, strict=True)
        return [x if x is y else self.new(x.type, phi_instruction(x, before, y, back)) for x, y in pairs]

    # ---------------------------------------------------------------- text

    def reserve_value(self, kind: Type) -> Value:
        """Return a value that is to be defined later."""
        return Value(self, kind, self.name())

    def label(self, of: str) -> str:
        """Return a name for a block that nothing else has."""
        return self.name(of)[1:]

    def end(self, instruction: str) -> str | None:
        """Write what ends a block; return the block."""
        self.put(instruction)
        ended, self.block = self.block, None
        return ended

    def branch(self, condition: Value, yes: str, no: str) -> str | None:
        """End a block with a condition; return the block."""
        return self.end(f"br {self.operand(condition, BOOL)}, label %{yes}, label %{no}")

    def begin(self, block: str) -> None:
        """Begin a block."""
        self.lines.append(f"{block}:")
        self.block = block

    def finish(self) -> list[str]:
        """Return the lines, when all are written."""
        if self.block is not None:
            if not isinstance(self.returns, Void):
                raise TypeError(f"the function ends without giving {self.returns!r}")
            self.give()
        return self.lines


def phi_instruction(x: Value, before: str | None, y: Value, back: str | None) -> str:
    """Return the instruction for a value that depends on where the control came from."""
    return f"phi {x.type} [ {x.text}, %{before} ], [ {y.text}, %{back} ]"


# Programs: the text of functions, and templates, which are written once and pasted often


def program(*exported: NativeFunction) -> str:
    """Return the text of functions and of all that they call; the others cannot be called from outside."""
    texts: dict[NativeFunction | ConstantTable, str] = {}
    waiting: list[NativeFunction | ConstantTable] = list(exported)
    while waiting:
        function = waiting.pop()
        if function not in texts:
            texts[function], called = write_function(function, exported)
            waiting.extend(called)
    names = [function.name for function in texts]
    if len(set(names)) < len(names):
        raise TypeError(f"two functions have one name: {sorted(names)}")
    return "\n".join(texts[function] for function in sorted(texts, key=lambda f: f.name))


def write_function(
    function: NativeFunction | ConstantTable, exported: Sequence[NativeFunction]
) -> tuple[str, list[NativeFunction | ConstantTable]]:
    """Return the text of one function, and those that it calls; or that of constants."""
    if isinstance(function, ConstantTable):
        b = Builder(VOID)
        values = join_by_commas([b.constant(function.scalar, value) for value in function.values])
        return f"@{function.name} = internal constant [{len(function.values)} x {function.scalar}] [{values}]\n", []
    signature, attributes = function.signature, function.attributes
    if function.body is None:
        return f"declare {function.head}({join_by_commas(signature.parameters)}){attributes}\n", []
    b = Builder(signature.returns)
    code = function.body.__code__
    names = function.parameters or code.co_varnames[1 : code.co_argcount]
    if len(names) != len(signature.parameters):
        raise TypeError(f"{function.name}: {len(names)} parameters of {len(signature.parameters)} types")
    parameters = [Value(b, kind, f"%{name}") for kind, name in zip(signature.parameters, names, strict=True)]
    function.body(b, *parameters)
    linkage = "" if function in exported else "internal "
    head = f"define {linkage}{function.head}({join_by_commas(parameters)}){attributes} {{\nentry:\n"
    return head + "\n".join([*b.stacked, *b.finish()]) + "\n}\n", list(b.called)


def template(kinds: Sequence[Type], write: Callable[..., Sequence[Value]]) -> Template:
    """Return what a Python function writes as a template."""
    b = Builder(VOID, MARK)
    found = write(b, *(Value(b, kind, argument(n)) for n, kind in enumerate(kinds)))
    assert b.block is not None
    return Template("\n".join(b.lines), tuple((x.type, x.text) for x in found), tuple(b.called), b.block)
