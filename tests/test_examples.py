"""The programs of examples/, each in a short form: what it finds is right."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.stats
from scipy.special import ndtr

import wengert as wg
from examples import (
    _program,
    deblurring,
    digits,
    epidemic,
    equilibrium_network,
    flight_delays,
    gaussian_process,
    heat_equation,
    hmc,
    inverse_kinematics,
    kalman_filter,
    kernel_ridge,
    logistic_regression,
    membrane,
    neural_ode,
    optimal_control,
    option_greeks,
    orbit_design,
    pendulum_fit,
    regression,
    sparse_deconvolution,
    system_identification,
    text_rnn,
    truss_design,
    variational_inference,
)
from tests.cases import together

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures" / "examples"
NAMES = sorted(path.stem for path in PICTURES.glob("*.svg"))


def test_digits_are_read():
    found = digits.main(channels=4, epochs=3)
    assert found.accuracy > 0.7
    assert len(found.labels) == round((1 - found.accuracy) * 360)


def test_regression_reproduces_the_published_fit():
    found = regression.main(points=3)
    np.testing.assert_allclose(found.parameters, [15.0429, -0.2322], rtol=2e-4)
    np.testing.assert_allclose(found.standard_errors, [7.3786, 0.1082], rtol=1e-3)
    assert np.all(found.low < found.probability)
    assert np.all(found.probability < found.high)


def test_months_of_flights_give_the_fit_of_all_at_once():
    found = flight_delays.main(flights=2000)
    months = zip(*map(flight_delays.Months(2000), range(12)), strict=True)
    x, late = (np.concatenate(column) for column in months)
    p = 1 / (1 + np.exp(-(x @ found.coefficients)))
    assert found.flights == 24_000
    np.testing.assert_allclose(x.T @ (p - late) / 24_000, 0.0, atol=1e-7)
    covariance = np.linalg.inv((x.T * p * (1 - p)) @ x)  # McCullagh and Nelder, section 4.4
    np.testing.assert_allclose(found.standard_errors, np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert np.all(np.abs(found.coefficients - flight_delays.TRUE) < 4 * found.standard_errors)


def test_a_truss_sinks_least_at_the_same_length_of_bars():
    found = truss_design.main(panels=4)
    truss = truss_design.bridge(4, 0.004)
    lengths = [np.sum(truss.lengths(joints)) for joints in (found.before, found.after)]
    assert found.sunk_after < 0.99 * found.sunk_before
    assert lengths[1] == pytest.approx(lengths[0])
    np.testing.assert_allclose(found.heights, found.heights[::-1], rtol=1e-4)
    solve = truss_design.equilibrium(truss, 1.0)
    wg.testing.check_grads(lambda heights: truss.load @ solve(heights), found.heights, order=1)


def test_the_likelihood_of_a_gaussian_process_is_that_of_a_normal_distribution():
    found = gaussian_process.main(years=6, iterations=3)
    t, y = found.times[:24], found.values[:24] - np.mean(found.values[:24])
    logs = gaussian_process.Logs()
    covariance = gaussian_process.covariance(logs, t, t) + np.exp(2 * logs.noise) * np.eye(24)
    expected = scipy.stats.multivariate_normal(np.zeros(24), covariance).logpdf(y)
    value, slope = wg.value_and_grad(gaussian_process.log_likelihood)(logs, t, y)
    assert value == pytest.approx(expected)
    assert found.log_likelihood > expected
    inverse = np.linalg.inv(covariance)  # Rasmussen and Williams, equation 5.9
    weights = np.outer(inverse @ y, inverse @ y) - inverse
    assert slope.noise == pytest.approx(np.trace(weights) * np.exp(2 * logs.noise))
    means, deviations = gaussian_process.predicted(logs, t, y, t + 0.1)
    cross = gaussian_process.covariance(logs, t, t + 0.1)
    np.testing.assert_allclose(means, cross.T @ inverse @ y, rtol=1e-6)
    np.testing.assert_allclose(deviations**2, np.diag(covariance - cross.T @ inverse @ cross), rtol=1e-6)


def test_the_variances_of_the_nile_are_the_published_ones():
    found = kalman_filter.main()
    assert found.noise == pytest.approx(15099, rel=1e-3)
    assert found.level == pytest.approx(1469.1, rel=1e-3)
    assert found.log_likelihood == pytest.approx(-632.54, abs=0.01)


def test_the_best_transfer_is_hohmanns():
    found = orbit_design.main(radius=2.0, steps=30)
    assert found.cost == pytest.approx(found.hohmann, rel=1e-4)
    assert found.duration == pytest.approx(found.half_ellipse, rel=1e-3)


def test_the_hand_follows_the_path():
    found = inverse_kinematics.main(links=3, places=5)
    assert found.largest_error < 1e-7
    np.testing.assert_allclose(np.linalg.norm(np.diff(found.joints, axis=1), axis=2), 0.8)


def test_conductivity_is_recovered():
    found = heat_equation.main(points=17, steps=40)
    assert found.largest_error < 0.1
    x = np.linspace(0, 1, 9)
    spread = heat_equation.records(np.ones(8), np.sin(np.pi * x), 20)  # an eigenvector of the scheme
    factor = 1 - 4 * heat_equation.STEP * np.sin(np.pi / 16) ** 2
    np.testing.assert_allclose(spread[:, 1], factor ** np.arange(1, 21))


def test_the_film_is_scherks_surface():
    found = membrane.main(points=9)
    assert found.largest_error < 0.01
    assert found.gradients[-1] < 1e-12
    assert found.elements == 289


def test_greeks_have_their_formulas():
    found = option_greeks.main(points=5, expiry=0.5, volatility=0.2)
    s, k, t, r, v = found.spots, 100.0, 0.5, 0.03, 0.2
    d1 = (np.log(s / k) + (r + v**2 / 2) * t) / (v * np.sqrt(t))
    d2 = d1 - v * np.sqrt(t)
    density = np.exp(-(d1**2) / 2) / np.sqrt(2 * np.pi)
    gamma, vega = density / (s * v * np.sqrt(t)), s * density * np.sqrt(t)
    expected = {
        "price": s * ndtr(d1) - k * np.exp(-r * t) * ndtr(d2),
        "delta": ndtr(d1),
        "vega": vega,
        "theta": -s * density * v / (2 * np.sqrt(t)) - r * k * np.exp(-r * t) * ndtr(d2),
        "rho": k * t * np.exp(-r * t) * ndtr(d2),
        "gamma": gamma,
        "vanna": -density * d2 / v,
        "volga": vega * d1 * d2 / v,
        "speed": -gamma / s * (d1 / (v * np.sqrt(t)) + 1),
    }
    assert found.greeks.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found.greeks[name], values, rtol=1e-9, err_msg=name)
    assert found.implied == pytest.approx(0.2)
    assert found.slope == pytest.approx(1 / np.interp(100.0, s, vega))


def test_chains_draw_from_the_posterior():
    found = hmc.main(draws=60, chains=6, steps=6)
    mu, tau = np.meshgrid(np.linspace(-40, 60, 201), np.linspace(0.05, 60, 400), indexing="ij")
    spread = tau[..., None] ** 2 + hmc.ERRORS**2
    density = scipy.stats.norm.logpdf(hmc.EFFECTS, mu[..., None], np.sqrt(spread)).sum(-1)
    density = np.exp(density - mu**2 / 800) / (1 + (tau / 25) ** 2)
    assert abs(found.mean_effect - np.average(mu, weights=density)) < 2.0
    assert abs(np.mean(found.tau) - np.average(tau, weights=density)) < 3.0
    assert found.accepted > 0.7
    q = hmc.Parameters(4.0, 1.0, np.linspace(-1, 1, 8))
    p = hmc.Parameters(0.5, -0.5, np.linspace(1, 0, 8))
    there, momentum = hmc.proposal(q, p, 0.1, 5)
    back, _ = hmc.proposal(there, wg.tree.map(np.negative, momentum), 0.1, 5)
    np.testing.assert_allclose(wg.tree.ravel(back)[0], wg.tree.ravel(q)[0], rtol=1e-12)
    assert hmc.energy(there, momentum) == pytest.approx(hmc.energy(q, p), abs=1e-2)


def test_the_adjoint_equation_gives_the_gradient_of_a_neural_ode():
    found = neural_ode.main(times=8, hidden=8, iterations=20)
    assert found.adjoint_error < 1e-4
    assert found.losses[-1] < 0.7 * found.losses[0]


def test_an_equilibrium_network_is_differentiated_without_its_rounds():
    found = equilibrium_network.main(points=40, states=8, iterations=15, places=3)
    assert 1 < found.rounds < 30
    assert found.gradient_error < 1e-5
    assert found.losses[-1] < found.losses[0]


@pytest.mark.long
def test_the_worst_day_of_an_epidemic_has_the_derivatives_of_differences():
    fitted = {"infection": 1.79, "recovery": 0.456, "ill": 1.6}
    days, isolated = (
        [f(49.9), f(50.1)]
        for f in (
            lambda number: epidemic.peak({**fitted, "recovery": 0.456 + (number - 50.0) / 1000})[0],
            lambda number: epidemic.isolated_peak(number, 0.6, fitted),
        )
    )
    by_recovery = wg.grad(lambda p: epidemic.peak(p)[0])(fitted)["recovery"]
    assert by_recovery == pytest.approx((days[1] - days[0]) / 2e-4, rel=1e-4)
    by_number = wg.grad(epidemic.isolated_peak)(50.0, 0.6, fitted)
    assert by_number == pytest.approx((isolated[1] - isolated[0]) / 0.2, rel=1e-4)


def test_a_network_learns_more_than_the_frequencies_of_letters():
    found = text_rnn.main(hidden=16, rows=16, iterations=30)
    assert found.bits < found.single
    assert len(found.written) == 201


def test_the_pendulum_stands():
    found = optimal_control.main(steps=80, iterations=20)
    np.testing.assert_allclose(found.states[-1], 0.0, atol=0.05)
    assert np.all(np.diff(found.costs) < 0)


def test_a_linear_system_is_controlled_by_riccatis_equation():
    a, b = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    q, r = np.eye(2), 0.5 * np.eye(1)
    problem = (lambda x, u: a @ x + b @ u, lambda x, u: x @ q @ x + u @ r @ u, lambda x: x @ q @ x)
    found = optimal_control.regulated(problem, np.array([1.0, 0.0]), np.zeros((150, 1)), 3)
    p = scipy.linalg.solve_discrete_are(a, b, q, r)
    expected = -np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
    np.testing.assert_allclose(found[2][0], expected, rtol=1e-6)
    assert found[3][-1] == pytest.approx(p[0, 0], rel=1e-6)
    assert len(found[3]) == 2


def test_parameters_of_an_oscillator_are_recovered():
    found = system_identification.main(samples=100)
    np.testing.assert_allclose((found.free - [1.5, 0.6, 5.0]) / found.free_errors, 0.0, atol=3.0)
    assert found.constrained[2] == pytest.approx(5.0)
    assert found.constrained_errors[2] == 0.0
    assert found.constrained_errors[0] < found.free_errors[0]


def test_the_length_of_a_pendulum_is_recovered():
    found = pendulum_fit.main(pictures=40, noise=1e-4)
    assert found.length == pytest.approx(0.8, rel=1e-3)
    assert found.friction == pytest.approx(0.15, rel=1e-2)
    assert found.drift < 0.01


def test_an_image_becomes_sharper():
    found = deblurring.main(size=24, iterations=80)
    assert found.ratio_after > found.ratio_before + 2
    kernel, image = deblurring.bell(2, 1.0), np.random.default_rng(0).standard_normal((9, 9))
    expected = scipy.ndimage.convolve(image, kernel, mode="nearest")
    np.testing.assert_allclose(deblurring.blurred(image, kernel), expected, atol=1e-14)


def test_spikes_are_a_minimum():
    found = sparse_deconvolution.main(samples=60, number=2)
    assert found.largest_slope == pytest.approx(1.0, abs=1e-3)
    assert found.spike_error < 1e-3
    assert np.count_nonzero(found.found) < 20


def test_hyperparameters_of_a_kernel_ridge_are_better_than_the_first():
    found = kernel_ridge.main(data=30, outliers=4)
    assert found.errors[1] < found.errors[0]
    assert found.gradient_error < 1e-6


def test_logistic_regression_finds_what_scikit_learn_does():
    found = logistic_regression.main()
    assert found.loss == pytest.approx(
        897.8364720881, rel=1e-10
    )  # LogisticRegression(C=0.1, tol=1e-10), scikit-learn 1.9
    assert found.accuracy == pytest.approx(341 / 360)


def test_a_distribution_moves_onto_the_posterior():
    found = variational_inference.main(iterations=120)
    assert found.shape / found.rate == pytest.approx(found.exact_shape / found.exact_rate, rel=0.02)
    assert found.shape == pytest.approx(found.exact_shape, rel=0.3)
    assert np.mean(found.bounds[-20:]) == pytest.approx(found.evidence, abs=0.1)


# The command line, pictures and their page


def test_programs_have_a_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["inverse_kinematics", "--links", "3", "--places", "2"])
    _program.command(inverse_kinematics.main, inverse_kinematics.draw)
    assert re.search(r"^largest error +\d\S+$", capsys.readouterr().out, re.MULTILINE)


BY_PATH = pytest.param([str(ROOT / "examples" / "kalman_filter.py")], marks=pytest.mark.long)


@pytest.mark.parametrize("call", [["-m", "examples.kalman_filter"], BY_PATH])
def test_programs_run_by_name_and_by_path(call):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONPATH"] = str(Path(wg.__file__).parent.parent)  # as if it were installed
    done = subprocess.run(
        [sys.executable, *call, "--help"], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Kalman filter" in done.stdout


def test_programs_are_short():
    long = {p.name for p in (ROOT / "examples").glob("*.py") if len(p.read_text().splitlines()) > 120}
    assert not long


@together("name", NAMES)
def test_pictures_are_small_and_on_the_page(name):
    picture = (PICTURES / f"{name}.svg").read_text()
    assert len(picture) < 60_000
    assert "<dc:date>" not in picture
    page = (ROOT / "examples" / "README.md").read_text()
    assert f"({name}.py)" in page
    assert f"(../docs/pictures/examples/{name}.svg)" in page


def test_programs_that_draw_have_a_picture():
    drawing = [path.stem for path in (ROOT / "examples").glob("[!_]*.py") if "\ndef draw(" in path.read_text()]
    assert sorted(drawing) == NAMES


def test_drawing_again_gives_the_same_file(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures are drawn by the extra `examples`")
    result = inverse_kinematics.main(links=3, places=7)
    for name in ("one.svg", "two.svg"):
        _program.save(inverse_kinematics.draw(result), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
