"""Option greeks: the sensitivities of a price, by nesting derivatives, and the volatility that a price implies.

A call of strike K and time to expiry T is worth, by Black and Scholes, with spot S, rate r and volatility s,

    C = S N(d1) - K exp(-r T) N(d2),   d1 = (log(S / K) + (r + s^2 / 2) T) / (s sqrt(T)),   d2 = d1 - s sqrt(T).

Its greeks are derivatives: delta = dC/dS, gamma = d^2C/dS^2, vega = dC/ds, theta = -dC/dT, rho = dC/dr, vanna = d^2C/dS
ds, volga = d^2C/ds^2, speed = d^3C/dS^3. `grad` makes each, and `vmap` evaluates it for many spots. The implied
volatility solves C(s) = price by Newton's method, a while loop that stops when it has converged; it is differentiated
like anything else, and by the theorem of the implicit function ds/dprice = 1 / vega.

Source: J. C. Hull, Options, futures, and other derivatives, 9th edition, 2015, chapters 15 and 19.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

import wengert as wg
from examples._program import Array, command, figure


class Option(NamedTuple):
    """Hold what a price depends on."""

    spot: float
    strike: float
    expiry: float
    rate: float
    volatility: float


class Result(NamedTuple):
    """Hold greeks for a range of spots."""

    spots: Array  # shape (n,)
    greeks: dict[str, Array]  # their names, each with an array of shape (n,)
    implied: float  # the volatility that the price at the money implies
    slope: float  # the derivative of the implied volatility by the price


def call(option: Option) -> Any:
    """Return the price of a call."""
    spot, strike, expiry, rate, volatility = option
    spread = volatility * np.sqrt(expiry)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * expiry) / spread
    return spot * ndtr(d1) - strike * np.exp(-rate * expiry) * ndtr(d1 - spread)


def by_spot(option: Option) -> Any:
    """Return delta."""
    return wg.grad(call)(option).spot


def by_volatility(option: Option) -> Any:
    """Return vega."""
    return wg.grad(call)(option).volatility


def greeks(option: Option) -> dict[str, Any]:
    """Return the price with its derivatives."""
    price, slopes = wg.value_and_grad(call)(option)
    curvatures = wg.grad(by_spot)(option)
    return {
        "price": price,
        "delta": slopes.spot,
        "vega": slopes.volatility,
        "theta": -slopes.expiry,
        "rho": slopes.rate,
        "gamma": curvatures.spot,
        "vanna": curvatures.volatility,
        "volga": wg.grad(by_volatility)(option).volatility,
        "speed": wg.grad(lambda o: wg.grad(by_spot)(o).spot)(option).spot,
    }


@wg.jit
def implied_volatility(price: float, option: Option) -> Any:
    """Return the volatility at which a call has a price, by Newton's method from the option's own."""
    volatility, error = option.volatility, np.inf
    while abs(error) > 1e-12 * price:
        value, slopes = wg.value_and_grad(call)(option._replace(volatility=volatility))
        error = value - price
        volatility = volatility - error / slopes.volatility
    return volatility


def main(points: int = 33, expiry: float = 0.5, volatility: float = 0.2) -> Result:
    """Compute the greeks of a call of strike 100 for spots between 60 and 140."""
    option = Option(100.0, 100.0, expiry, 0.03, volatility)
    spots = np.linspace(60.0, 140.0, points)
    found = wg.jit(wg.vmap(lambda spot: greeks(option._replace(spot=spot))))(spots)
    implied, slope = wg.value_and_grad(implied_volatility)(call(option), option._replace(volatility=0.5))
    return Result(spots, found, implied, slope)


def draw(result: Result) -> object:
    """Draw each greek against the spot."""
    drawn, axes = figure(3, 3, sharex=True)
    for ax, (name, values) in zip(axes.flat, result.greeks.items(), strict=True):
        ax.plot(result.spots, values)
        ax.axvline(100.0, color="gray", linewidth=0.5)
        ax.set_title(name)
        ax.locator_params(nbins=4)
    for ax in axes[-1]:
        ax.set_xlabel("spot")
    return drawn


if __name__ == "__main__":
    command(main, draw)
