"""Examples whose results are certified or were computed by others: the programs of `examples/` on published data.

Regression runs on the files in the repository; where the published collections lie beside it, on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from examples import bundle_adjustment, gaussian_mixture, hand_tracking, recurrent_network
from examples import certified_regression as regression
from examples._program import PUBLISHED, error
from tests.cases import OPTIONS, together

SHARED = Path(__file__).parents[2] / "shared" / "data"


def published(folder: str, pattern: str, small: Sequence[str] = ()) -> list[Path]:
    """Return the files that lie in the repository or beside it, with `--every` the large ones, too."""
    found = {path.stem: path for place in (SHARED / folder, PUBLISHED) for path in place.glob(pattern)}
    return [path for name, path in sorted(found.items()) if OPTIONS.every or not small or name in small]


def columns(*found: Any) -> Any:
    return np.stack(np.broadcast_arrays(*found), axis=-1)


# Regression


def saturation(b: Any, x: Any) -> Any:
    decay = np.exp(-b[1] * x)
    return columns(1 - decay, b[0] * x * decay)


def bell(height: Any, centre: Any, width: Any, x: Any) -> tuple[Any, Any, Any]:
    away = x - centre
    value = np.exp(-(away**2) / width**2)
    return value, 2 * height * value * away / width**2, 2 * height * value * away**2 / width**3


def peaks(b: Any, x: Any) -> Any:
    decay = np.exp(-b[1] * x)
    return columns(decay, -b[0] * x * decay, *bell(b[2], b[3], b[4], x), *bell(b[5], b[6], b[7], x))


def decays(b: Any, x: Any) -> Any:
    return columns(*(f for i in (0, 2, 4) for d in (np.exp(-b[i + 1] * x),) for f in (d, -b[i] * x * d)))


def bennett(b: Any, x: Any) -> Any:
    power = (b[1] + x) ** (-1 / b[2])
    return columns(power, -b[0] * power / (b[2] * (b[1] + x)), b[0] * power * np.log(b[1] + x) / b[2] ** 2)


def chwirut(b: Any, x: Any) -> Any:
    below = b[1] + b[2] * x
    decay = np.exp(-b[0] * x)
    return columns(-x * decay / below, -decay / below**2, -x * decay / below**2)


def eckerle(b: Any, x: Any) -> Any:
    z = (x - b[2]) / b[1]
    value = np.exp(-0.5 * z**2) / b[1]
    return columns(value, b[0] * value * (z**2 - 1) / b[1], b[0] * value * z / b[1])


def kirby(b: Any, x: Any) -> Any:
    above, below = b[0] + b[1] * x + b[2] * x**2, 1 + b[3] * x + b[4] * x**2
    return columns(1 / below, x / below, x**2 / below, -above * x / below**2, -above * x**2 / below**2)


def mgh09(b: Any, x: Any) -> Any:
    above, below = x**2 + x * b[1], x**2 + x * b[2] + b[3]
    return columns(above / below, b[0] * x / below, -b[0] * above * x / below**2, -b[0] * above / below**2)


def mgh17(b: Any, x: Any) -> Any:
    first, second = np.exp(-x * b[3]), np.exp(-x * b[4])
    return columns(1.0, first, second, -b[1] * x * first, -b[2] * x * second)


def nelson(b: Any, x: Any) -> Any:
    decay = np.exp(-b[2] * x[1])
    return columns(1.0, -x[0] * decay, b[1] * x[0] * x[1] * decay)


def rat42(b: Any, x: Any) -> Any:
    term = np.exp(b[1] - b[2] * x)
    return columns(1 / (1 + term), -b[0] * term / (1 + term) ** 2, b[0] * x * term / (1 + term) ** 2)


def rat43(b: Any, x: Any) -> Any:
    term = np.exp(b[1] - b[2] * x)
    power = (1 + term) ** (-1 / b[3])
    slope = -b[0] * power * term / (b[3] * (1 + term))
    return columns(power, slope, -x * slope, b[0] * power * np.log1p(term) / b[3] ** 2)


def roszman(b: Any, x: Any) -> Any:
    below = np.pi * ((x - b[3]) ** 2 + b[2] ** 2)
    return columns(1.0, -x, -(x - b[3]) / below, -b[2] / below)


BY_HAND: dict[str, Callable[[Any, Any], Any]] = {
    "Bennett5": bennett,
    "BoxBOD": saturation,
    "Chwirut1": chwirut,
    "DanWood": lambda b, x: columns(x ** b[1], b[0] * x ** b[1] * np.log(x)),
    "Eckerle4": eckerle,
    "Gauss1": peaks,
    "Gauss3": peaks,
    "Kirby2": kirby,
    "Lanczos2": decays,
    "Lanczos3": decays,
    "MGH09": mgh09,
    "MGH17": mgh17,
    "Misra1a": saturation,
    "Misra1b": lambda b, x: columns(1 - (1 + b[1] * x / 2) ** -2, b[0] * x * (1 + b[1] * x / 2) ** -3),
    "Misra1c": lambda b, x: columns(1 - (1 + 2 * b[1] * x) ** -0.5, b[0] * x * (1 + 2 * b[1] * x) ** -1.5),
    "Misra1d": lambda b, x: columns(b[1] * x / (1 + b[1] * x), b[0] * x / (1 + b[1] * x) ** 2),
    "Nelson": nelson,
    "Rat42": rat42,
    "Rat43": rat43,
    "Roszman1": roszman,
}
"""The derivatives of the models by their parameters, as one would write them down."""


def problems() -> list[regression.Problem]:
    paths = {path.stem: path for folder in (regression.DATA / "nist", SHARED / "nist") for path in folder.glob("*.dat")}
    return [regression.read(paths[name]) for name in sorted(paths)]


@together("problem", problems())
def test_standard_deviations_are_those_certified(problem: regression.Problem) -> None:
    b = problem.certified
    for transformation in (wg.jacfwd, wg.jacrev, lambda f: wg.jit(wg.jacfwd(f))):
        found = regression.deviations(problem, b, transformation(problem.residuals))
        np.testing.assert_allclose(found, problem.deviations, rtol=1e-8)


@pytest.mark.long
@together("problem", problems())
def test_fits_reach_the_certified_parameters_as_they_do_with_derivatives_by_hand(problem: regression.Problem) -> None:
    derivative = BY_HAND[problem.name]
    for start in problem.starts:
        by_hand = regression.fit(problem, start, lambda b: -derivative(b, problem.x))
        np.testing.assert_allclose(by_hand.x, problem.certified, rtol=1e-6)
        found = regression.fit(problem, start, wg.jacfwd(problem.residuals))
        np.testing.assert_allclose(found.x, problem.certified, rtol=1e-6)


def test_the_program_prints_how_near_its_fits_are(capsys: pytest.CaptureFixture[str]) -> None:
    errors = regression.main(jit=True)
    assert list(errors) == ["DanWood", "Eckerle4", "MGH09", "Misra1d", "Rat43", "Roszman1"]
    assert max(errors.values()) < 1e-6
    assert len(capsys.readouterr().out.splitlines()) == 13


# A sum, a chain, a sparse and a dense Jacobian


@pytest.mark.parametrize("jit", [False, True])
def test_mixture_of_gaussians(jit: bool) -> None:
    paths = published("gmm", "gmm_*.npz", ["gmm_d2_K5", "gmm_d10_K10", "gmm_d20_K25"])
    errors = gaussian_mixture.main(paths, jit=jit)
    assert "gmm_d2_K5" in errors
    assert max(errors.values()) < 1e-8


@pytest.mark.parametrize("jit", [False, True] if OPTIONS.every else [True])
def test_recurrent_network(jit: bool) -> None:
    errors = recurrent_network.main(published("lstm", "lstm_*.npz", ["lstm_l2_c1024"]), jit=jit)
    assert "lstm_l2_c1024" in errors
    assert max(errors.values()) < 1e-8


@pytest.mark.parametrize("jit", [False, True])
def test_hand_tracking(jit: bool) -> None:
    errors = hand_tracking.main(
        published("hand", "*_small_hand*.npz", ["simple_small_hand1", "complicated_small_hand1"]), jit=jit
    )
    assert {"simple_small_hand1", "complicated_small_hand1"} <= set(errors)
    assert max(errors.values()) < 1e-8


@pytest.mark.parametrize("jit", [False, True])
def test_bundle_adjustment(jit: bool) -> None:
    found = bundle_adjustment.main(published("ba", "ba_mixed.npz"), jit=jit)
    residuals, jacobian = found["ba_mixed"]
    data = np.load(bundle_adjustment.DATA[0])
    assert error(residuals, np.concatenate([data["reproj_residuals"], data["weight_residuals"]])) < 1e-8
    assert jacobian.shape == tuple(data["shape"])
    np.testing.assert_array_equal(jacobian.indptr, data["indptr"])
    np.testing.assert_array_equal(jacobian.indices, data["indices"])
    assert error(jacobian.data, data["data"]) < 1e-8


@pytest.mark.parametrize("path", published("ba", "ba[123].npz", ["ba1"]), ids=lambda path: path.stem)
def test_large_bundle_adjustment(path: Path) -> None:
    data = np.load(path)
    residuals, jacobian = bundle_adjustment.main([path])[path.stem]
    count = int(data["p"])
    assert error(residuals[: 2 * count].reshape(-1, 2), data["residual_pair"]) < 1e-8
    assert error(residuals[2 * count :], data["weight_residual"]) < 1e-8
    blocks = jacobian.data[: 30 * count].reshape(-1, 2, 15)
    assert error(blocks, data["jac_block"]) < 1e-8
    assert error(jacobian.data[30 * count :], data["jac_weight"]) < 1e-8
    assert (jacobian.shape, jacobian.nnz) == (tuple(data["shape"]), data["nnz"])
    np.testing.assert_array_equal(jacobian.indptr[:201], data["head_indptr"])
    np.testing.assert_array_equal(jacobian.indices[:3000], data["head_indices"])
    np.testing.assert_array_equal(jacobian.indices[-200:], data["tail_indices"])
    turns = 1 + np.arange(jacobian.nnz) % 7
    sums = {
        "sum_residuals": np.sum(residuals),
        "sumsq_residuals": np.sum(residuals**2),
        "sum_data": np.sum(jacobian.data),
        "sumsq_data": np.sum(jacobian.data**2),
        "sum_indices": np.sum(jacobian.indices, dtype=np.int64),
        "sum_indptr": np.sum(jacobian.indptr, dtype=np.int64),
        "weighted_sum_data": np.sum(jacobian.data * turns),
        "weighted_sum_indices": np.sum(jacobian.indices * turns, dtype=np.int64),
    }
    for name, found in sums.items():
        np.testing.assert_allclose(found, data[name], rtol=1e-8, err_msg=name)
