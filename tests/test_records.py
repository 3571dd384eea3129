"""Records: named tuples of ours do what those of Python do."""

import copy
import pickle
import typing

import pytest

from wengert.support.records import NamedTuple


class Span(NamedTuple):
    first: int
    count: int = 1
    step: int = 2

    @property
    def end(self):
        return self.first + self.count


class PythonSpan(typing.NamedTuple):
    first: int
    count: int = 1
    step: int = 2


MADE = (
    *(lambda c: c(3), lambda c: c(3, 4), lambda c: c(3, 4, 5), lambda c: c(count=1, first=2), lambda c: c(3, step=4)),
    *(lambda c: c._make((1, 2, 3)), lambda c: c(1)._replace(step=5, first=0), lambda c: c(1)._asdict()),
    *(lambda c: repr(c("a")).removeprefix("Python"), lambda c: hash(c(1)), lambda c: c(1) == (1, 1, 2)),
    *(lambda c: (c._fields, c._field_defaults, c.__match_args__), lambda c: c(1, 2)[1:], lambda c: c(7).step),
    *(lambda c: hasattr(c(1), "__dict__"), lambda c: [c(2), c(1, 9), c(1)] == sorted([c(1, 9), c(2), c(1)])),
)
REFUSED = (
    *(lambda c: c(), lambda c: c(1, 2, 3, 4), lambda c: c(1, first=2), lambda c: c(1, end=2), lambda c: c(count=2)),
    *(lambda c: c(1)._replace(end=2), lambda c: setattr(c(1), "first", 2), lambda c: setattr(c(1), "other", 2)),
)


@pytest.mark.parametrize("use", MADE)
def test_named_tuples_are_those_of_python(use):
    assert use(Span) == use(PythonSpan)


@pytest.mark.parametrize("use", REFUSED)
def test_named_tuples_refuse_what_those_of_python_do(use):
    for kind in (Span, PythonSpan):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            use(kind)


def test_named_tuples_are_copied_pickled_and_matched():
    span = Span(1, 2)
    for made in (copy.copy(span), copy.deepcopy(span), pickle.loads(pickle.dumps(span))):
        assert (type(made), made, made.end) == (Span, span, 3)
    match span:
        case Span(first, count=2):
            assert first == 1
