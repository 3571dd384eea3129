"""Differential equations that several tests integrate."""

import numpy as np

START = np.array([2.0, 1.0])
RATES = np.array([1.1, 0.4, 0.4, 0.1])


def lotka(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def oscillator(t, y, k):
    return np.stack([y[1], -k * y[0] + 0.1 * np.sin(t)])


def logistic(x):
    grown = np.exp(2.0 * x[0])
    return x[1] * grown / (1 - x[1] + x[1] * grown)


def robertson(t, y, p):
    slow, fast, back = p[0] * y[0], p[1] * y[1] * y[1], p[2] * y[1] * y[2]
    return [back - slow, slow - back - fast, fast]
