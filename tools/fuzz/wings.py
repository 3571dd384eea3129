"""Solvers, integrations and other wings of the library, as functions that programs call: rules of the grammar.

What they give is bounded, and smooth in what they are given; tolerances are such that differences see the same values.
"""

from __future__ import annotations

__all__ = ["DEFINITIONS", "WINGS"]

DEFINITIONS = """
from wengert import implicit, nn, optim, sparse
from wengert.scipy import fft, integrate, interpolate, ndimage, optimize, signal, special, stats
from wengert.scipy.sparse import coo_array, diags_array
from wengert.scipy.sparse import linalg as sparse_linalg

TIGHT = {"rtol": 1e-11, "atol": 1e-12}
TIMES = np.array([0.0, 0.2, 0.5])
COUPLING = np.array([[2.0, 0.3, 0.0], [0.3, 2.5, -0.4], [0.0, -0.4, 3.0]])


def decayed(t, u, method="RK45", gradient="discrete"):
    def slope(s, y, a):
        return np.tanh(t) * np.cos(s) - y * (1.0 + a * a)

    return integrate.solve_ivp(
        slope, (0.0, 0.3), np.sin(t), method, args=(np.sin(u),), gradient=gradient, t_eval=(0.3,), **TIGHT
    ).y[:, 0]


def filled_slope(t, u):
    def slope(s, y):
        found = np.zeros(2)
        found[0] = y[1]
        found[1] = -np.sin(y[0]) * (1.0 + 0.3 * np.sin(u))
        return found

    return integrate.solve_ivp(slope, (0.0, 0.3), np.tanh(t[:2]), "DOP853", **TIGHT).y[:, -1]


def reached(u, t):
    def slope(s, y):
        return np.stack([y[1], -1.5 - 0.3 * np.tanh(t[0])])

    def ground(s, y):
        return y[0]

    ground.terminal = True
    start = np.stack([1.0 + 0.2 * np.sin(u), 0.3 * np.sin(t[1])])
    return integrate.solve_ivp(slope, (0.0, 5.0), start, "RK45", events=ground, **TIGHT).t_events[0][0]


def followed(t, u):
    def slope(y, s, a):
        return np.cos(s) * np.sin(t) - a * y

    return integrate.odeint(slope, np.tanh(t), TIMES, (2.0 + np.sin(u),), **TIGHT)


def rooted(t, method="hybr"):
    def missed(z, a):
        return z + 0.3 * np.tanh(z[::-1]) - np.sin(a)

    return optimize.root(missed, np.zeros(3), args=(t,), method=method, tol=1e-13).x


def crossing(u, t):
    def missed(z, a):
        return z + 0.5 * np.sin(z * np.tanh(t[0])) - np.tanh(a)

    return optimize.brentq(missed, -2.0, 2.0, args=(u,), xtol=1e-14)


def met(t):
    return optim.root(lambda z, a: z + 0.3 * np.tanh(COUPLING @ z) - np.sin(a), np.zeros(3), args=(t,)).x


def lowest(t, method="trust-exact"):
    def cost(z):
        return np.sum(z * z) + 0.3 * np.sum(np.log(np.cosh(COUPLING @ z))) - np.sum(np.sin(t) * z)

    return optimize.minimize(cost, np.zeros(3), method=method, tol=1e-12).x


def fitted(t):
    def curve(s, a, b):
        return a * np.exp(-b * s)

    given = curve(np.arange(3.0), 2.0 + 0.2 * np.sin(t[0]), 0.5 + 0.1 * np.sin(t[1]))
    least = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    return optimize.curve_fit(curve, np.arange(3.0), given, p0=(1.0, 1.0), method="trf", **least)[0]


def least(t, u):
    def missed(z):
        return np.concatenate([COUPLING @ z - np.sin(t), 0.1 * z**2 + 0.2 * np.cos(u)])

    return optimize.least_squares(missed, np.zeros(3), xtol=1e-14, ftol=1e-14, gtol=1e-14).x


def least_of(m, p):
    return optimize.lsq_linear(np.sin(m).T + np.eye(3)[:, :2] * 2.0, np.resize(np.cos(p), 3), tol=1e-14).x


def settling(z, t):
    return 0.5 * np.cos(z) + 0.3 * np.sin(t)


@implicit.custom_fixed_point(settling)
def settled(t):
    return wg.fori_loop(0, 60, lambda i, z: settling(z, t), t * 0.0)


def planned(t, u):
    return implicit.qp(COUPLING + np.eye(3) * np.sin(u) ** 2, np.sin(t), np.ones((1, 3)), np.tanh(t[:1])).x


def solved_by(t, u):
    def product(z):
        return COUPLING @ z + np.sin(u) * z

    def solve(f, b):
        return np.linalg.solve(COUPLING + np.sin(u) * np.eye(3), b)

    return implicit.linear_solve(product, np.sin(t), solve=solve)


def banded(t, u):
    a = diags_array([np.cos(t)[:2] * 0.5, 3.0 + np.sin(t), np.tanh(t)[1:]], offsets=[-1, 0, 1], format="csc")
    return sparse_linalg.spsolve(a, np.sin(t) + u)


def conjugate(t):
    a = sparse_linalg.LinearOperator((3, 3), lambda z: COUPLING @ z + z * np.sin(t) ** 2)
    return sparse_linalg.cg(a, np.cos(t), rtol=1e-13)[0]


def scattered(t, p):
    return coo_array((np.tanh(t), (ORDER, np.array([0, 1, 1]))), shape=(3, 2)) @ p


def bent_by(t):
    return np.sin(t) * t[::-1] + np.cumsum(t) ** 2 * 0.1


def splined(t, u):
    return interpolate.CubicSpline(np.arange(3.0), np.sin(t))(np.tanh(u) + 1.0)


def attended(q):
    return nn.functional.scaled_dot_product_attention(np.sin(q), np.cos(q), np.tanh(q))


def smoothed(t):
    return signal.lfilter(np.array([0.5, 0.3]), np.array([1.0, -0.4]), np.sin(t))


def accumulated(t):
    with wg.memory_budget("1kB"):
        return wg.fori_loop(0, 5, lambda i, z: np.tanh(z + np.sin(t) * i), t)


class Model:
    def __init__(self, t):
        self.weights = {"in": np.sin(t), "out": [np.cos(t)]}

    def slope(self, s, y):
        return self.weights["in"] * np.cos(s) - self.weights["out"][0] * y

    def missed(self, z):
        return 2.0 * z + np.tanh(z) * self.weights["in"] - self.weights["out"][0]

    def state(self):
        start = self.weights["out"][0] * 0.5
        return integrate.solve_ivp(self.slope, (0.0, 0.3), start, "RK23", (0.3,), **TIGHT).y[:, 0]

    def balance(self):
        return optimize.root(self.missed, np.zeros(3), tol=1e-13).x
"""

WINGS = {
    "S": """
        reached({S}, {V}) ; crossing({S}, {V}) ; splined({V}, {S}) ; integrate.simpson(np.sin({V}))
        integrate.quad(lambda {t}: np.sum(np.sin({t} * {V})), 0.0, np.tanh({S}))[0]
        integrate.quad(lambda {t}, {u}: np.exp(-{t} * {t} * {u}), 0.0, 1.0 + np.sin({S}) ** 2, args=(np.tanh({S}),))[0]
        optimize.newton(lambda {t}: {t} + 0.2 * np.sin({t}) - np.tanh({S}), 0.0, tol=1e-13)
        optimize.minimize_scalar(lambda {t}: ({t} - np.sin({S})) ** 2 + 0.1 * {t} ** 4, bracket=(-2.0, 0.1, 2.0)).x
        stats.norm.logpdf({S}, np.sin({S}), 1.0 + np.tanh({S}) ** 2) ; special.logsumexp({V})
        special.gammaln(2.0 + ({S}) ** 2)
        wg.grad(lambda {t}: np.sum(bent_by({t} * {V})))({S}) ; stats.t.logpdf({S}, 3.0 + np.sin({S}))
        """,
    "P": """
        fitted({V}) ; filled_slope({V}, {S}) ; least_of({M}, {P})
        sparse_linalg.spsolve(coo_array(np.eye(2) * 3.0 + 0.0).tocsc(), {P})
        wg.vmap(lambda {t}: np.sum(bent_by({t})))({M}) ; np.stack([crossing({t}, {V}) for {t} in {P}])
        """,
    "V": """
        decayed({V}, {S}) ; decayed({V}, {S}, "DOP853") ; decayed({V}, {S}, "Rodas5P") ; decayed({V}, {S}, "Tsit5")
        decayed({V}, {S}, "Radau") ; decayed({V}, {S}, "RK45", "forward") ; decayed({V}, {S}, "DOP853", "continuous")
        followed({V}, {S})[1] ; followed({V}, {S})[-1] ; rooted({V}) ; rooted({V}, "lm") ; met({V}) ; lowest({V})
        lowest({V}, "Newton-CG") ; least({V}, {S}) ; settled({V}) ; planned({V}, {S})
        solved_by({V}, {S}) ; banded({V}, {S}) ; conjugate({V}) ; scattered({V}, {P}) ; smoothed({V}) ; accumulated({V})
        Model({V}).state() ; Model({V}).balance() ; integrate.cumulative_simpson({V}, initial=0.0)
        integrate.quad_vec(lambda {t}: np.sin({t} * {V}), 0.0, np.tanh({S}))[0]
        wg.grad(lambda {t}: np.sum(bent_by({t})))({V}) ; wg.jvp(bent_by, ({V},), (np.cos({V}),))[1]
        wg.vjp(bent_by, {V})[1]({V})[0] ; wg.hessian(lambda {t}: np.sum(bent_by({t}) ** 2))({V}) @ {V}
        wg.jacfwd(bent_by)({V}) @ {V} ; wg.jacrev(bent_by)({V})[1] ; wg.linearize(bent_by, {V})[1]({V})
        wg.checkpoint(bent_by)({V}) ; wg.jit(bent_by)({V})
        wg.hvp(lambda {t}: np.sum(bent_by({t}) ** 2), ({V},), ({V},))[0]
        sparse.jacobian(lambda {t}: {t}[::-1] ** 2 * {t}[1])({V}) @ {V} ; wg.jit(rooted)({V})
        wg.checkpoint(rooted)({V})
        wg.grad(lambda {t}: np.sum(rooted({t}) * {V}))({V}) ; wg.jvp(met, ({V},), ({V},))[1]
        wg.vmap(lambda {t}: crossing({t}, {V}))({V}) ; wg.vmap(rooted)({Q})[1]
        wg.vmap(lambda {t}: decayed({t}, {S}))({Q})[2]
        wg.fori_loop(0, 2, lambda {u}, {t}: rooted({t} + {V}), {V})
        wg.scan(lambda {t}, {u}: (met({t} + {u}), {t}), {V}, {P})[0]
        wg.cond(np.sum({V}) > 0.3, rooted, np.sin, {V}) ; wg.fori_loop(0, 2, lambda {u}, {t}: decayed({t}, 0.5), {V})
        fft.irfft(fft.rfft({V}) * (1.0 + 0.5j), 3) ; fft.dct({V}, norm="ortho") ; special.expit({V}) * special.erf({V})
        ndimage.gaussian_filter1d({V}, 0.7) ; signal.convolve({V}, {P}, "same") ; stats.gamma.cdf(1.0 + ({V}) ** 2, 2.5)
        nn.functional.softmax({V}, -1) ; nn.functional.layer_norm({V}, (3,)) ; nn.functional.silu({V})
        special.ndtri(special.expit({V}))
        interpolate.PchipInterpolator(np.arange(3.0), np.cumsum(1.0 + ({V}) ** 2))(np.tanh({V}) * 0.9 + 1.0)
        sum(followed({V}, {S})) * 0.3 ; np.stack([*rooted({V})])
        wg.value_and_grad(lambda {t}: np.sum(bent_by({t})))({V})[1]
        """,
    "Q": """
        followed({V}, {S}) ; attended({Q}) ; linalg.expm(np.sin({Q}) * 0.5)
        linalg.sqrtm(4.0 * np.eye(3) + np.sin({Q}))
        wg.hessian(lambda {t}: np.sum(bent_by({t})))({V}) ; wg.jacfwd(rooted)({V}) ; wg.vmap(met)({Q})
        linalg.solve_sylvester(3.0 * np.eye(3) + np.sin({Q}), np.eye(3), {Q})
        linalg.lu_solve(linalg.lu_factor(4.0 * np.eye(3) + np.sin({Q})), {Q})
        """,
}
"""What is called, by the kind of what it gives, parted as all templates are."""
