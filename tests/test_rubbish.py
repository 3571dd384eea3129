"""Rubbish in every parameter of every public name: a result, an error of ours in the house form, or NumPy's own.

The calls are generated: each parameter of a call that is right takes each of some thirty wrong values in turn.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import operator
import re
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert import autograd, distributed, errors, extend, graph, implicit, optim, random, sparse, testing, tree
from wengert.core.primitives import primitive
from wengert.native.threads.elementwise import SHARING

FORM = re.compile(r"^[^;]+: .+; .+\. .+\.$", re.DOTALL)
X = np.array([0.5, 0.6])
EYE = np.eye(2)
FLOAT = np.dtype(float)
SGD = optim.sgd(0.1)
STATE = SGD.init(X)
DRIVERS = tuple(
    f"optim.{name}"
    for name in ("anderson", "curve_fit", "fixed_point", "least_squares", "minimize", "root", "root_scalar")
)


def escaped() -> Any:
    """Return a Tensor of a transformation that is over."""
    kept: list[Any] = []
    wg.grad(lambda x: (kept.append(x), x)[1])(1.0)
    return kept[0]


def staged() -> Any:
    """Return a Tensor of a trace that is over."""
    kept: list[Any] = []
    wg.jit(lambda x: (kept.append(x), x)[1])(X)
    return kept[0]


def objects() -> Any:
    """Return an array of objects, one of which is a Tensor and one nothing."""
    found = np.empty(2, dtype=object)
    found[0] = wg.tensor(1.0)
    return found


class Plain:
    """Know nothing of arrays."""


RUBBISH: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "string": lambda: "a",
    "empty string": lambda: "",
    "bytes": lambda: b"a",
    "set": lambda: {1.0},
    "function": lambda: lambda *args, **kwargs: args,
    "class": lambda: Plain,
    "type": lambda: int,
    "module": lambda: np,
    "object": lambda: object(),
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "huge": lambda: 2**70,
    "negative": lambda: -3,
    "fraction": lambda: 2.5,
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "objects": objects,
    "dates": lambda: np.array(["2026-11-21"], dtype="datetime64[D]"),
    "structured": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "strings": lambda: np.array(["a", "b"]),
    "generator": lambda: (i for i in range(2)),
    "empty list": list,
    "empty tuple": lambda: (),
    "empty dict": dict,
    "bool": lambda: True,
    "complex": lambda: 1j,
    "nested": lambda: {"a": {"b": 1.0}},
    "seven": lambda: np.ones(7),
    "three axes": lambda: np.ones((2, 1, 3)),
    "integers": lambda: np.arange(3),
    "escaped": escaped,
    "staged": staged,
    "slice": lambda: slice(None),
}


def f(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def step(c: Any, x: Any) -> Any:
    return c * 2.0, x


class Twice(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * 2


def leaf() -> Any:
    return wg.tensor(X, requires_grad=True)


def traced() -> Any:
    return graph.trace(f)(X)


def with_rule(forward: Any = lambda x: (np.sin(x), x), backward: Any = lambda x, ct: (ct * np.cos(x),)) -> Any:
    rule = wg.custom_rule(np.sin)
    rule.defvjp(forward, backward)
    return wg.vjp(rule, X)[1](X)


def with_jvp(rule: Any = lambda p, t: (np.sin(p[0]), t[0])) -> Any:
    function = wg.custom_rule(np.sin)
    function.defjvp(rule)
    return wg.jvp(function, (X,), (X,))


def with_threads(threads: Any = 1) -> None:
    before = SHARING.threads
    try:
        wg.set_num_threads(threads)
    finally:
        SHARING.set_threads(before)


def with_batch(rule: Any = lambda size, batched, x: (np.sin(x), True)) -> Any:
    function = wg.custom_rule(np.sin)
    function.defbatch(rule)
    return wg.vmap(function)(X)


def in_mode(mode: Any, x: Any = None) -> Any:
    with mode:
        return leaf() * 2


def hooked(hook: Any = lambda ct: ct) -> Any:
    x = leaf()
    x.register_hook(hook)
    f(x).backward()


def hooked_after(hook: Any = lambda t: None) -> Any:
    x = leaf()
    x.register_post_accumulate_grad_hook(hook)
    f(x).backward()


def run_graph(x: Any = X) -> Any:
    p = graph.placeholder("p", (2,))
    return graph.Executor(p * 2).run({p: x})


def run_feeds(feeds: Any = None) -> Any:
    p = graph.placeholder("p", (2,))
    return graph.Executor(p * 2).run({"p": X} if feeds is None else feeds)


def gradients_of(output: Any = None, inputs: Any = None) -> Any:
    p = graph.placeholder("p", ())
    return graph.gradients(p * 2 if output is None else output, p if inputs is None else inputs)


def declared(declare: Any) -> Any:
    def call(name: Any = "rubbish.name", evaluate: Any = np.sin, rule: Any = "right") -> Any:
        try:
            if declare is extend.constant:
                return extend.apply(declare(name, evaluate), X)
            given = RULES[declare] if isinstance(rule, str) else rule
            return extend.apply(declare(name, evaluate, given), *(X,) * COUNTS[declare])
        finally:
            with contextlib.suppress(TypeError):
                primitive.PRIMITIVES.pop(name, None)

    return call


RULES: dict[Any, Any] = {
    extend.elementwise: lambda t, _out, x: t,
    extend.linear: lambda ct, _aval: ct,
    extend.multilinear: (lambda ct, _, y: ct * y, lambda ct, _, x: ct * x),
    extend.opaque: lambda ct, out, x: ct,
}
COUNTS = {extend.elementwise: 1, extend.linear: 1, extend.multilinear: 2, extend.opaque: 1}

CALLS: dict[str, Callable[..., Any]] = {
    "asarray": lambda data=X, dtype=float: wg.asarray(data, dtype),
    "tensor": lambda data=X, dtype=float, requires_grad=True: wg.tensor(data, dtype, requires_grad),
    "call": lambda fun=f, x=X: wg.jit(lambda y: wg.call(fun, y))(x),
    "checkpoint": lambda fun=f, x=X: wg.grad(wg.checkpoint(fun))(x),
    "cond": lambda p=True, yes=np.sin, no=np.cos, x=X: wg.cond(p, yes, no, x),
    "cond traced": lambda p=1.0, yes=np.sin, no=np.cos, x=X: wg.jit(lambda q: wg.cond(q > 0, yes, no, x))(p),
    "switch": lambda i=1, fs=(np.sin, np.cos), x=X: wg.switch(i, fs, x),
    "switch traced": lambda i=1, fs=(np.sin, np.cos), x=X: wg.jit(lambda j: wg.switch(j, fs, x))(i),
    "custom_rule": lambda fun=np.sin, x=X: wg.custom_rule(fun)(x),
    "custom_rule.defvjp": with_rule,
    "custom_rule.defjvp": with_jvp,
    "custom_rule.defbatch": with_batch,
    "elementwise_grad": lambda fun=np.sin, argnums=0, x=X: wg.elementwise_grad(fun, argnums)(x),
    "enable_grad": lambda fun=f: wg.enable_grad()(fun)(leaf()),
    "memory_budget": lambda size="1 MB", fun=f: wg.memory_budget(size)(fun)(leaf()),
    "no_grad": lambda fun=f: wg.no_grad()(fun)(leaf()),
    "inference_mode": lambda fun=f: wg.inference_mode()(fun)(leaf()),
    "set_grad_enabled": lambda mode=True: in_mode(wg.set_grad_enabled(mode)),
    "is_grad_enabled": wg.is_grad_enabled,
    "set_num_threads": with_threads,
    "explain": lambda fun=f, x=X: str(wg.explain(fun, x)),
    "visualize": lambda x="x": wg.visualize(leaf() * 2.0 if isinstance(x, str) and x == "x" else x),
    "fori_loop": lambda lower=0, upper=3, body=lambda i, s: s * 2, init=1.0: wg.fori_loop(lower, upper, body, init),
    "grad": lambda fun=f, argnums=0, has_aux=False, holomorphic=False, x=X: wg.grad(fun, argnums, has_aux, holomorphic)(
        x
    ),
    "value_and_grad": lambda fun=f, argnums=0, has_aux=False, holomorphic=False, x=X: wg.value_and_grad(
        fun, argnums, has_aux, holomorphic
    )(x),
    "hessian": lambda fun=f, argnums=0, holomorphic=False, x=X: wg.hessian(fun, argnums, holomorphic)(x),
    "hvp": lambda fun=f, primals=(X,), tangents=(X,): wg.hvp(fun, primals, tangents),
    "jacfwd": lambda fun=f, argnums=0, holomorphic=False, x=X: wg.jacfwd(fun, argnums, holomorphic)(x),
    "jacrev": lambda fun=f, argnums=0, holomorphic=False, x=X: wg.jacrev(fun, argnums, holomorphic)(x),
    "jacobian": lambda fun=f, argnums=0, mode="auto", holomorphic=False, x=X: wg.jacobian(
        fun, argnums, mode, holomorphic
    )(x),
    "jit": lambda fun=f, static_argnums=(), static_argnames=(), donate_argnums=(), x=X: wg.jit(
        fun, static_argnums, static_argnames, donate_argnums
    )(x),
    "jit returning": lambda result=1.0: wg.jit(lambda x: result)(X),
    "grad returning": lambda result=1.0: wg.grad(lambda x: result)(X),
    "vmap returning": lambda result=1.0: wg.vmap(lambda x: result)(X),
    "jvp": lambda fun=f, primals=(X,), tangents=(X,), has_aux=False: wg.jvp(fun, primals, tangents, has_aux),
    "jvp of": lambda primal=X, tangent=X: wg.jvp(f, (primal,), (tangent,)),
    "linearize": lambda fun=f, x=X, t=X: wg.linearize(fun, x)[1](t),
    "scan": lambda fun=step, init=1.0, xs=X, length=2, reverse=False, unroll=1: wg.scan(
        fun, init, xs, length, reverse, unroll
    ),
    "scan traced": lambda fun=step, init=1.0, xs=X, length=2, reverse=False, unroll=1: wg.jit(
        lambda x: wg.scan(fun, init, xs, length, reverse, unroll)[0] * x
    )(X),
    "stop_gradient": lambda tree=X: wg.stop_gradient(tree),
    "taylor": lambda fun=f, primals=(X,), tangents=(X,), order=2: wg.taylor(fun, primals, tangents, order),
    "taylor of": lambda primal=X, tangent=X: wg.taylor(f, (primal,), (tangent,), 2),
    "vjp": lambda fun=f, x=X, has_aux=False: wg.vjp(fun, x, has_aux=has_aux),
    "vjp of": lambda ct=1.0: wg.vjp(f, X)[1](ct),
    "vmap": lambda fun=np.sin, in_axes=0, out_axes=0, batch_size=2, x=X: wg.vmap(
        fun, in_axes, out_axes, batch_size=batch_size
    )(x),
    "vmap of two": lambda in_axes=(0, None), out_axes=(0, 0): wg.vmap(lambda x, y: (x, y), in_axes, out_axes)(X, X),
    "while_loop": lambda cond=lambda s: s < 5, body=lambda s: s + 1, init=1.0: wg.while_loop(cond, body, init),
    "autograd.backward": lambda tensors=None, grad_tensors=None, inputs=None: autograd.backward(
        f(leaf()) if tensors is None else tensors, grad_tensors, inputs=inputs
    ),
    "autograd.grad": lambda outputs=None, inputs=None, grad_outputs=None: autograd.grad(
        f(leaf()) if outputs is None else outputs, leaf() if inputs is None else inputs, grad_outputs
    ),
    "autograd.Function": lambda x=X: Twice.apply(x),
    "autograd.once_differentiable": lambda fun=lambda ctx, ct: ct: autograd.once_differentiable(fun),
    "autograd.detect_anomaly": lambda fun=f: autograd.detect_anomaly()(fun)(X),
    "autograd.saved_tensors_hooks": lambda pack=lambda t: t, unpack=lambda t: t: in_mode(
        autograd.saved_tensors_hooks(pack, unpack)
    ),
    "autograd.saved_tensors_hooks packing": lambda pack=lambda t: t, unpack=lambda t: t: packed(pack, unpack),
    "Tensor.register_hook": hooked,
    "Tensor.register_post_accumulate_grad_hook": hooked_after,
    "Tensor.backward": lambda gradient=1.0, inputs=None: f(leaf()).backward(gradient, inputs=inputs),
    "Tensor.grad": lambda grad=X: setattr(leaf(), "grad", grad),
    "Tensor.requires_grad_": lambda value=True: wg.tensor(X).requires_grad_(value),
    "Tensor.getitem": lambda index=0: leaf()[index],
    "Tensor.setitem": lambda index=0, value=1.0: wg.tensor(X).__setitem__(index, value),
    "Tensor.to_device": lambda device="cpu": wg.tensor(X).to_device(device),
    "Tensor.item": lambda index=0: wg.tensor(X).item(index),
    "Tensor.astype": lambda dtype=float: leaf().astype(dtype),
    "graph.trace": lambda fun=f, x=X: graph.trace(fun)(x),
    "graph.gradient": lambda g=None, wrt=None, output=-1: graph.gradient(
        traced() if g is None else g, wrt, output=output
    ),
    "graph.gradient of": lambda g="x": graph.gradient(g),
    "graph.gradients": gradients_of,
    "graph.placeholder": lambda name="p", shape=(2,), dtype=float: graph.placeholder(name, shape, dtype),
    "graph.Executor": lambda outputs="p": graph.Executor(outputs),
    "graph.Executor.run": run_feeds,
    "graph.Executor.run of": run_graph,
    "graph.check": lambda g="g": graph.check(g),
    "graph.render": lambda g="g": graph.render(g),
    "graph.to_dot": lambda g="g": graph.to_dot(g),
    "graph.to_svg": lambda g="g": graph.to_svg(g),
    "graph.to_html": lambda g="g": graph.to_html(g),
    "graph.save": lambda g="g": graph.save(g, "/nonexistent/graph"),
    "graph.save to": lambda path="/nonexistent/graph": graph.save(traced(), path),
    "graph.load": lambda path="/nonexistent/graph": graph.load(path),
    "graph.Graph": lambda inputs=(), equations=(), outputs=(): graph.check(graph.Graph(inputs, equations, outputs)),
    "graph.Graph of": lambda x=X: traced()(x),
    "extend.apply": lambda one=extend.PRIMITIVES["sin"], x=X: extend.apply(one, x),
    "extend.elementwise": declared(extend.elementwise),
    "extend.linear": declared(extend.linear),
    "extend.multilinear": declared(extend.multilinear),
    "extend.opaque": declared(extend.opaque),
    "extend.constant": declared(extend.constant),
    "extend.implements": lambda name=np.ones, function=np.sin: None,
    "extend.describe": lambda name="a", given="b", needed="c", action="d": extend.describe(name, given, needed, action),
    "testing.check_grads": lambda fun=f, args=(X,), order=1, modes=("rev",): testing.check_grads(
        fun, args, order=order, modes=modes
    ),
    "testing.check_rule": lambda fun="rule", x=X, seed=0: testing.check_rule(
        wg.custom_rule(np.sin) if isinstance(fun, str) else fun, x, seed=seed
    ),
}
GIVEN: dict[str, dict[str, Any]] = {
    "tree": {"tree": {"a": X}, "function": np.sin, "kind": None},
    "optim": {
        **dict.fromkeys(("rate", "end", "schedule"), 0.1),
        **dict.fromkeys(("largest", "start", "factor"), 1.0),
        "file": "/nonexistent/file",
        "rule": SGD,
        "steps": 5,
        "rates": [1.0, 0.1],
        "bounds": [3],
        "tree": {"a": X},
    },
}
"""Right values of parameters, by module and name; others have defaults."""


def called_with(name: str) -> Callable[..., Any]:
    """Return a function of a module with right defaults for its parameters."""
    function = operator.attrgetter(name)(wg)
    known = GIVEN[name.split(".")[0]]
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    right = {p.name: known.get(p.name, p.default) for p in parameters if p.kind is not p.VAR_POSITIONAL}

    def call(**wrong: Any) -> Any:
        return function(**{**right, **wrong})

    call.__signature__ = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.name in right])  # type: ignore[attr-defined]
    return call


CALLS |= {
    f"{module}.{name}": called_with(f"{module}.{name}")
    for module in GIVEN
    for name in getattr(wg, module).__all__
    if f"{module}.{name}" not in ("optim.Optimizer", "optim.Rule", "optim.train", "tree.Structure", *DRIVERS)
}
ROWS = np.ones((4, 2))
TOTALS = {
    "total": lambda x, rows: np.sum(x * rows),
    "value_and_grad": lambda x, rows: np.sum(x * rows),
    "grad": lambda x, rows: np.sum(x * rows),
    "hvp": lambda x, rows: np.sum(x**2 * rows),
    "gauss_newton_product": lambda x, rows: x * rows[0],
    "normal_equations": lambda x, rows: x * rows[0],
}


def solved(x: Any, by: Callable[..., Any], **options: Any) -> Any:
    """Return the slope of a root that a decorated function finds."""
    return wg.grad(lambda a: np.sum(by(**options)(lambda _, a: a / 2)(X, a)))(x)


def rooted(
    residual: Any = lambda x, a: 2 * x - a,
    argnums: Any = 0,
    linear_solver: Any = "auto",
    like: Any = None,
    tol: Any = 1e-3,
    singular: Any = "raise",
    x: Any = X,
) -> Any:
    by = functools.partial(implicit.custom_root, residual, argnums=argnums, linear_solver=linear_solver)
    return solved(x, by, like=like, tol=tol, singular=singular)


def sparsely(name: str) -> Callable[..., Any]:
    """Return a function that computes a sparse derivative."""
    fun = f if "hessian" in name else np.sin

    def call(
        fun: Any = fun, argnums: Any = 0, pattern: Any = None, plan: Any = "auto", format: Any = "csr", x: Any = X
    ) -> Any:
        return getattr(sparse, name)(fun, argnums, pattern=pattern, plan=plan, format=format)(x)

    return call


def totalled(name: str) -> Callable[..., Any]:
    """Return a function that sums over partitions."""

    def call(
        fun: Any = TOTALS[name],
        data: Any = (ROWS,),
        reduce: Any = "sum",
        nan: Any = "raise",
        memory: Any = None,
        x: Any = X,
    ) -> Any:
        function = getattr(distributed, name)(fun, data, reduce=reduce, nan=nan, memory=memory)
        return function(x, X) if name in ("hvp", "gauss_newton_product") else function(x)

    return call


CALLS |= {
    **{
        f"sparse.{name}": sparsely(name)
        for name in sparse.__all__
        if "value_and" in name or name in ("jacobian", "hessian")
    },
    **{f"distributed.{name}": totalled(name) for name in TOTALS},
    "distributed.partitions": lambda data=X, count=None, columns=None, names=None: distributed.partitions(
        data, count=count, columns=columns, names=names
    ),
    "sparse.jacobian_pattern": lambda fun=np.sin, x=X, argnums=0: sparse.jacobian_pattern(fun, x, argnums=argnums),
    "sparse.hessian_pattern": lambda fun=f, x=X, argnums=0: sparse.hessian_pattern(fun, x, argnums=argnums),
    "sparse.lagrangian_hessian": lambda objective=f, constraints=np.sin, x=X, multipliers=X, weight=1.0: (
        sparse.lagrangian_hessian(objective, constraints)(x, multipliers, weight)
    ),
    "sparse.color": lambda pattern=EYE, structure="general", partition="auto", recovery="direct", order="auto": (
        sparse.color(pattern, structure, partition, recovery, order)
    ),
    "sparse.Coloring": lambda matrix=EYE: sparse.color(EYE).compress(matrix),
    "sparse.Coloring recover": lambda compressed=X[:, None]: sparse.color(EYE).recover(compressed),
    "sparse.Plan": lambda file="/nonexistent/file": sparse.jacobian(np.sin).plan(X).save(file),
    "sparse.load_plan": lambda file="/nonexistent/file": sparse.load_plan(file),
    "implicit.custom_root": rooted,
    "implicit.custom_fixed_point": lambda step=lambda x, a: a / 2, tol=1e-3, singular="raise", x=X: solved(
        x, functools.partial(implicit.custom_fixed_point, step), tol=tol, singular=singular
    ),
    "implicit.complementarity": lambda f=lambda x: x - 1.0, lower=0.0, upper=X, args=(), start=None, tol=1e-3: (
        implicit.complementarity(f, lower, upper, args, start=start, tol=tol)
    ),
    "implicit.linear_solve": lambda matvec=lambda v: 2 * v, b=X, solve=lambda _, b: b / 2, transpose_solve=None: (
        wg.grad(lambda b: np.sum(implicit.linear_solve(matvec, b, solve, transpose_solve)))(b)
    ),
    "implicit.qp": lambda P=EYE, q=X, A=None, b=None, G=None, h=None, solver=None, relax=0.0, tol=1e-3: implicit.qp(
        P, q, A, b, G, h, solver=solver, relax=relax, tol=tol
    ),
    "implicit.stationary": lambda value=lambda x, a: np.sum((x - a) ** 2), argmin=lambda a: a, x=X: wg.grad(
        implicit.stationary(value, argmin)
    )(x),
}
CALLS |= {
    "optim.Optimizer": lambda parameters=None, rule=SGD: optim.Optimizer(
        [leaf()] if parameters is None else parameters, rule
    ).step(),
    "optim.Rule": lambda gradients=X, state=STATE, parameters=X: SGD.update(gradients, state, parameters),
    "optim.norm": lambda tree=X: optim.norm(tree),
    "optim schedules": lambda step=1: [s(step) for s in (optim.linear(1.0, 0.0, 5), optim.cosine(1.0, 5))],
    "functional.GradOperation": lambda get_all=False, get_by_list=True, sens_param=False, fun=f, weights=None, x=X: (
        wg.functional.GradOperation(get_all, get_by_list, sens_param)(fun, [leaf()] if weights is None else weights)(
            *(x, 1.0) if sens_param is True else (x,)
        )
    ),
    "functional.Jvp": lambda fun=f, inputs=X, directions=X: wg.functional.Jvp(fun)(inputs, directions),
    "grad captured": lambda captured=(): wg.grad(f, captured=captured)(X),
    "tree.Structure": lambda leaves=(1.0,): tree.structure([1.0]).unflatten(leaves),
    "tree.ravel back": lambda vector=X: tree.ravel(X)[1](vector),
}
LEGITIMATE = re.compile(
    "loop of ufunc|ufunc '|inhomogeneous|only integers, slices|arrays used as indices|setting an array element"
    "|could not convert string|unsupported operand|not supported between instances|can't multiply sequence"
    r"|Plain\(\)|must be a string or a real number|must be a string, a bytes-like|cannot be interpreted as an integer"
    "|positional arguments? but|takes at most|expected at most|out of bounds for axis|using the string multiply ufunc"
    "|only integer scalar arrays|too large to convert to C|can only convert an array of size 1|an integer is required"
    "|to a NumPy dtype|Field elements must be|Tuple must have size|entry not a 2- or 3- tuple"
    "|at most 63 and a sign are needed|operands could not be broadcast"
    "|only 0-dimensional arrays|Cannot cast array data|Cannot interpret|Cannot construct a dtype|data type"
)
"""What Python and NumPy say of wrong values in the user's own functions, and in functions that mirror NumPy's."""
ENDLESS = {
    ("fori_loop", "upper", "huge"),
    ("taylor", "order", "huge"),
    ("testing.check_grads", "order", "huge"),
    *(("while_loop", "cond", kind) for kind in ("type", "function")),
    *(("while_loop", "body", kind) for kind in ("type", "class", "function")),
}
"""Calls that are right, and would never end."""


def packed(pack: Any, unpack: Any) -> Any:
    with autograd.saved_tensors_hooks(pack, unpack):
        y = f(leaf())
    y.backward()


def failures(name: str, call: Callable[..., Any], parameters: list[str]) -> Iterator[str]:
    """Call a function with each wrong value in each parameter; show the calls that ended badly."""
    for parameter in parameters:
        for kind, make in RUBBISH.items():
            if (name, parameter, kind) not in ENDLESS:
                found = outcome(functools.partial(call, **{parameter: make()}))
                if found:
                    yield f"{name}({parameter}={kind}): {found}"


def outcome(call: Callable[[], Any]) -> str:
    """Return what is wrong with how a call ended; nothing if it gave a result, or an error that says what to do."""
    try:
        call()
    except (errors.WengertError, AssertionError) as error:  # what checks of derivatives raise
        return "" if FORM.match(str(error)) else f"{type(error).__name__}: {error}"
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        return "" if LEGITIMATE.search(str(error)) else f"{type(error).__name__}: {error}"
    except OSError:
        return ""
    except Exception as error:  # noqa: BLE001 - what comes out is what is tested
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let nothing be written where the tests run, and no warning be an error."""
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.long
@together("name", CALLS)
def test_own_functions_answer_rubbish_in_the_house_form(name: str) -> None:
    call = CALLS[name]
    assert not list(failures(name, call, list(inspect.signature(call).parameters)))


# The mirror of NumPy: what NumPy refuses with an error for ndarrays may be refused with the like


VALID: dict[str, Any] = {
    **dict.fromkeys(("axis", "axis1", "k", "offset", "n", "shift", "kth"), 0),
    **dict.fromkeys(("axis2",), 1),
    **dict.fromkeys(("indices_or_sections", "repeats", "reps", "num", "N", "M", "deg"), 2),
    **dict.fromkeys(("shape", "newshape", "dims", "sizes"), (2, 2)),
    **dict.fromkeys(("dtype", "dtype1", "to"), float),
    **dict.fromkeys(("q", "x1", "fill_value", "start"), 0.5),
    **dict.fromkeys(("indices", "ind", "multi_index"), np.array([0, 1])),
    **dict.fromkeys(("mask", "condition", "where"), np.array([[True, False], [False, True]])),
    **dict.fromkeys(("arrays", "tup", "seq", "choicelist", "choices", "array_list"), (np.eye(2), np.ones((2, 2)))),
    "condlist": [np.eye(2) > 0, np.eye(2) == 0],
    "funclist": [np.sin, np.cos],
    "subscripts": "ij,jk->ik",
    "pad_width": 1,
    "source": 0,
    "destination": 1,
    "function": lambda i, j: i + j,
    "string": "1 2",
    "buffer": np.ones(2),
    "iter": [1.0, 2.0],
    "iterable": [1.0, 2.0],
    "weights": None,
    "axes": None,
}
SETTINGS = {"errstate", "seterr", "set_printoptions", "printoptions", "lib", "linalg", "fft"}
"""Names that are settings or modules, NumPy's own."""


def matrix() -> Any:
    return wg.tensor(np.array([[1.0, 0.25], [0.5, 2.0]]), requires_grad=True)


EMPTY = "what is empty and no sequence of places is none to NumPy"
STRICTER: dict[tuple[str, str], str] = {
    **{(f"{name}split", "indices_or_sections"): EMPTY for name in ("", "h", "v")},
    **{(name, p): "no number of degrees is complex" for name in ("std", "var") for p in ("ddof", "correction")},
    **dict.fromkeys((("fft.fftshift", "axes"), ("fft.ifftshift", "axes")), "a generator is gone through twice"),
}
"""Parameters of functions that refuse what NumPy takes, with an error that is not of the house form, and why."""


def mirrored() -> dict[str, tuple[Any, Any]]:
    """Return the functions of `wengert.numpy`, each with NumPy's."""
    found = {}
    for prefix, ours, theirs in (("", wnp, np), ("linalg.", wnp.linalg, np.linalg), ("fft.", wnp.fft, np.fft)):
        for name in ours.__all__ if hasattr(ours, "__all__") else vars(ours):
            function, original = getattr(ours, name, None), getattr(theirs, name, None)
            known = callable(function) and original is not None and function is not original
            if known and not isinstance(function, type) and name not in SETTINGS:
                found[prefix + name] = (function, original)
    return found


MIRRORED = mirrored()
WRONG = (TypeError, ValueError, IndexError, OverflowError, MemoryError, ZeroDivisionError, np.linalg.LinAlgError)


def plain(value: Any) -> Any:
    """Return an argument as NumPy takes it."""
    if type(value) is not wg.Tensor or not isinstance(value._value, np.ndarray):
        return value
    return value.detach().numpy().copy() if value.requires_grad else value


def answered(function: Any, original: Any, arguments: dict[str, Any], stricter: bool) -> str:
    """Return what is wrong with how a function answered; nothing if NumPy refused the same arguments."""
    positional = [arguments[p] for p in arguments if p.startswith("operand ")]
    named = {p: v for p, v in arguments.items() if not p.startswith("operand ")}
    try:
        function(*positional, **named)
    except Exception as error:  # noqa: BLE001 - what comes out is what is tested
        if FORM.match(str(error)):
            return ""
        try:
            result = original(*map(plain, positional), **{p: plain(v) for p, v in named.items()})
        except Exception as theirs:  # noqa: BLE001 - NumPy may raise anything
            if isinstance(error, WRONG) or type(error) is type(theirs):
                return ""
        else:
            if isinstance(error, WRONG) and (stricter or (isinstance(result, np.ndarray) and result.dtype == object)):
                return ""
        return f"{type(error).__name__}: {error}"
    return ""


def own_parameters(function: Any) -> list[inspect.Parameter]:
    """Return the parameters that the library's function spells out, of those that NumPy's has."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return list(inspect.signature(function).parameters.values())
    plain = types.FunctionType(
        code, {}, code.co_name, inspect.unwrap(function).__defaults__, inspect.unwrap(function).__closure__
    )
    plain.__kwdefaults__ = inspect.unwrap(function).__kwdefaults__
    return list(inspect.signature(plain).parameters.values())


def operands_of(name: str, function: Any, original: Any) -> dict[str, Any]:
    """Return right arguments of a function: those that it needs."""
    if isinstance(original, np.ufunc):
        return {f"operand {i}": matrix() for i in range(original.nin)}
    found = {}
    for p in own_parameters(function):
        if p.kind is p.VAR_POSITIONAL:
            found["operand 0"] = matrix()
        elif p.default is p.empty and p.kind is not p.VAR_KEYWORD:
            found[f"operand {p.name}" if p.kind is p.POSITIONAL_ONLY else p.name] = VALID.get(p.name, matrix())
    return found


def optional(function: Any, original: Any) -> list[str]:
    """Return the parameters that may be left out, ours and NumPy's."""
    if isinstance(original, np.ufunc):
        return ["out", "where", "dtype"]
    ours = own_parameters(function)
    theirs: list[inspect.Parameter] = []
    if not any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in ours):  # which NumPy itself is given
        theirs = list(inspect.signature(original).parameters.values())
    named = [p for p in (*ours, *theirs) if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY]
    return list(dict.fromkeys(p.name for p in named))


@pytest.mark.long
@together("name", MIRRORED)
def test_the_mirror_of_numpy_answers_rubbish_as_numpy_does(name: str) -> None:
    function, original = MIRRORED[name]
    right = operands_of(name, function, original)
    bad = []
    for parameter in (*right, *optional(function, original)):
        for kind, make in RUBBISH.items():
            if kind == "huge" and parameter in ("num", "N", "M", "n", "repeats", "indices_or_sections"):
                continue
            stricter = (name, parameter) in STRICTER
            found = answered(function, original, {**right, parameter: make()}, stricter)
            if found:
                bad.append(f"{name}({parameter}={kind}): {found}")
    assert not bad


# Nothing is left out


FORMS = ("Contraction", "Like", "Place", "Pointwise", "Reduction", "Routine", "SIZE", "Scan", "Selection", "View")
APART = {
    **dict.fromkeys(DRIVERS, "what SciPy's drivers refuse they say themselves"),
    **{f"nn.functional.{name}": "tests/test_nn.py has its refusals" for name in wg.nn.functional.__all__},
    "nn.functional": "a module",
    "optim.train": "tests/test_training.py has its refusals; a huge number of epochs is right",
    **{f"random.{name}": "parameters are refused as by NumPy's generators" for name in random.__all__},
    "extend.Primitive": "the type of what is declared",
    **dict.fromkeys(
        ("implicit.QuadraticSolution", *map("distributed.{}".format, ("Batches", "Partitions", "Total"))), "results"
    ),
    "extend.PRIMITIVES": "what the functions that declare primitives enter them in",
    **dict.fromkeys(map("extend.{}".format, ("aligned", "lead", "shift", "labelled")), "for rules"),
    **dict.fromkeys((f"extend.{name}" for name in FORMS), "plain data for declarations"),
    **dict.fromkeys(("graph.Equation", "graph.Variable"), "plain data, which graph.check looks at"),
    **dict.fromkeys(("autograd.Context", "autograd.GradFunction", "autograd.RemovableHandle"), "made by the library"),
}
"""Public names without a call of their own here, and why."""


def public_names() -> Iterator[str]:
    """Yield the public names that docs/public-names.md lists, but for errors and the mirrors of NumPy and SciPy."""
    page = Path(__file__).resolve().parent.parent / "docs" / "public-names.md"
    module = ""
    for line in page.read_text().splitlines():
        if line.startswith("## `"):
            module = line.split("`")[1]
        elif line.startswith("- `") and module.split(".")[1:2] not in (["errors"], ["numpy"], ["scipy"]):
            yield f"{module}.{line.split('`')[1]}".removeprefix("wengert.")


def test_every_public_name_is_called() -> None:
    called = [f"{name.split(' ')[0]}." for name in CALLS]
    names = {name: operator.attrgetter(name)(wg) for name in public_names()}
    modes = [thing for name, thing in names.items() if "." not in name]  # which `wengert.autograd` exports, too
    missing = [
        name
        for name, thing in names.items()
        if name not in APART
        and not any(call.startswith(f"{name}.") for call in called)
        and not ("." in name and any(thing is x for x in modes))
        and not (isinstance(thing, type) and issubclass(thing, Exception))
    ]
    assert not missing
    assert not [name for name in APART if name not in names]
