"""Rules for the parameters of a tape, which change in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wengert.core.diagnostics.argument_checks import as_items, shown
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.optim.rules import Rule, State, require_rule
from wengert.support.hints import hint_attributes, hint_parameters
from wengert.traces.grad_modes import no_grad

RATES = frozenset(("learning_rate", "lr", "rate"))
"""What optimizers elsewhere let one set between steps."""


@hint_attributes("add_param_group", "load_state_dict", "param_groups", "state_dict")
class Optimizer:
    """Change Tensors that require grad by a rule, as users of PyTorch know it.

    Parameters without a gradient stay as they are, and so does what is remembered of them.

    Args:
        parameters: leaf Tensors that require grad.
        rule: an update rule.

    Raises:
        UsageError: there is no parameter, one is there twice or no leaf Tensor that requires grad, or `rule` is
            none.

    Attributes:
        parameters: the parameters.
        steps: what the rule remembers of each, and how often it was changed. `wengert.optim.save` keeps it.

    >>> import wengert as wg
    >>> from wengert import optim
    >>> x = wg.tensor([3.0, -1.0], requires_grad=True)
    >>> optimizer = optim.Optimizer([x], optim.momentum(0.1))
    >>> for _ in range(100):
    ...     loss = ((x - 2.0) ** 2).sum()
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> bool(((x - 2.0) ** 2).sum() < 1e-2)
    True
    """

    @hint_parameters("Optimizer")
    def __init__(self, parameters: Iterable[Tensor], rule: Rule) -> None:
        self.parameters = as_items("optim.Optimizer", "parameters", parameters)
        require_rule("Optimizer", rule)
        self.rule = rule
        for p in self.parameters:
            if isinstance(p, dict):
                raise parameter_error("groups of parameters", "Make an Optimizer for each, with a rule of its own")
            if type(p) is not Tensor or not p.requires_grad or not p.is_leaf:
                raise parameter_error(f"{describe_untrained(p)} among the parameters")
        if len(set(map(id, self.parameters))) < len(self.parameters):  # each step would be made twice
            raise parameter_error("a Tensor that is there twice", "Leave it out once")
        if not self.parameters:
            raise parameter_error("no parameter")
        self.steps: list[State] = [rule.init([p.detach()]) for p in self.parameters]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, but for the rate, which nobody would read.

        Raises:
            UsageError: it is the rate, which the rule has.
        """
        if name in RATES and not hasattr(type(self), name):
            given, needed = f"{name} of an optimizer", "the rule has the rate"
            remedy = 'Write a function of the step, as optim.sgd(lambda step: settings["rate"]), or a schedule'
            raise UsageError("Optimizer", given, needed, remedy)
        super().__setattr__(name, value)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of the parameters; without `set_to_none` they become zeros.

        A parameter without a gradient is left alone by `step`; one whose gradient is zero may still move.
        """
        for p in self.parameters:
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad.zero_()

    def step(self) -> None:
        """Change the parameters by their gradients."""
        groups: dict[Any, set[int]] = {}
        for i, p in enumerate(self.parameters):
            if p.grad is not None:
                groups.setdefault(self.steps[i].step, set()).add(i)
        chosen = sorted(set().union(*groups.values()))
        with no_grad():
            for step, group in groups.items():  # a rule counts its steps once for all it is given
                self.change(group, chosen, step)

    def change(self, group: set[int], chosen: list[int], step: Any) -> None:
        """Change those parameters that were changed as often before; the rule may look at the gradients of all."""
        parameters = [self.parameters[i].detach() for i in chosen]
        ascent = [ascent_direction(self.parameters[i]) for i in chosen]
        found, state = self.rule.update(ascent, State(step, [self.steps[i].memory[0] for i in chosen]), parameters)
        for i, value, kept in zip(chosen, found, state.memory, strict=True):
            if i in group:
                self.parameters[i][...] = value
                self.steps[i] = State(state.step, [kept])


def describe_untrained(value: Any) -> str:
    """Return the words for a value that cannot be a parameter."""
    if type(value) is not Tensor:
        return shown(value)
    return "a Tensor that does not require grad" if value.is_leaf else "a Tensor that is no leaf"


def ascent_direction(parameter: Tensor) -> Tensor:
    """Return the gradient of a parameter as rules need it: they conjugate those that `wengert.grad` gives."""
    slope: Any = parameter.grad
    return slope.conj() if slope.dtype.kind == "c" else slope  # type: ignore[no-any-return]  # a Tensor


MAKE = "Make them with wengert.tensor(..., requires_grad=True), or use the rule's own init and update"


def parameter_error(given: str, action: str = MAKE) -> UsageError:
    """Return the error about parameters."""
    return UsageError("optim.Optimizer", given, "leaf Tensors that require grad are needed", action)
