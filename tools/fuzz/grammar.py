"""Expressions, as rules of a grammar: templates whose placeholders are filled by expressions of a kind.

A kind is a letter: S a scalar, P, V, F vectors of 2, 3, 6 elements, M, W, Q matrices of 2 x 3, 3 x 2, 3 x 3. `cV` is a
complex vector of 3, `bV` a vector of truth values, `iV` one of integers. In a rule for every shape, X stands for the
shape of the result.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.fuzz import wings

__all__ = ["MAYBE_VIEWS", "SHAPES", "VIEWS", "Expressions", "Name", "Scope", "templates"]

SHAPES = {"S": (), "P": (2,), "V": (3,), "F": (6,), "M": (2, 3), "W": (3, 2), "Q": (3, 3)}


def templates(text: str) -> tuple[str, ...]:
    """Return what stands in a table, parted by semicolons and line ends."""
    return tuple(part.strip() for part in re.split(r"[;\n]", text) if part.strip())


# Elementwise, for every shape. Functions are bounded or have bounded arguments, so that values stay moderate.
UNARY = templates(
    """
    np.sin({X}) ; np.cos({X}) ; np.tanh({X}) ; np.arctan({X}) ; np.exp(np.sin({X})) ; np.exp(-({X}) ** 2)
    np.sqrt(1.0 + ({X}) ** 2) ; np.log(2.0 + ({X}) ** 2) ; np.log1p(np.square({X})) ; -({X}) ; np.abs({X})
    ({X}) ** 2 ; ({X}) ** 3 ; 1.0 / (2.0 + np.cos({X})) ; np.arcsinh({X}) ; np.square({X}) ; np.copy({X})
    np.expm1(np.sin({X})) ; np.cbrt(2.0 + np.sin({X})) ; np.reciprocal(3.0 + np.cos({X})) ; np.positive({X})
    {X} * (lambda {u}: ({u}[0] * {u}[-1]) ** 2)(np.ravel(np.cbrt(2.0 + np.sin({X}))))
    np.abs({X}) ** 2 ; np.sqrt(({X}) ** 4) ; np.square(0.5 * np.fabs({X})) ; np.cbrt(({X}) ** 3) * {X}
    """
)
BINARY = templates(
    """
    ({X} + {X}) ; ({X} - {X}) ; ({X} * {X}) ; ({X} * {X}) ; {X} / (2.0 + np.sin({X})) ; ({X} * {S}) ; ({S} - {X})
    ({X} + {S}) ; np.maximum({X}, {X}) ; np.minimum({X}, {S}) ; np.hypot({X}, 1.0 + ({X}) ** 2)
    (np.hypot({X}, {X}) / 2.0) ** 2
    np.where({bX}, {X}, {X}) ; np.where({bX}, {X}, {S}) ; np.logaddexp({X}, {X})
    np.arctan2({X}, 3.0 + np.sin({X})) ; (1.5 + np.sin({X})) ** {X} ; np.clip({X}, -0.7, 0.9)
    np.multiply({X}, {X}) ; ({X} * {bX}) ; np.add({X}, {X}, where={bX}, out=np.zeros_like({X}))
    np.copysign({X}, {X}) ; 2.0 ** np.sin({X}) ; np.heaviside({bX} * 1.0, {X})
    """
)
COMPLEX = templates(
    """
    {X} * (1 + 2j) ; np.exp(1j * {X}) ; {X} + 1j * {X} ; ({cX} + {cX}) ; ({cX} * {X}) ; np.conj({cX})
    ({cX} * (0.5 - 1j)) ; np.sin({X} + 0.5j) ; ({cX} * {cX}) ; {cX} / (3.0 + 1j + np.sin({X})) ; -({cX})
    """
)
FROM_COMPLEX = templates(
    """
    ({cX}).real ; ({cX} + 0.2j).imag ; np.real({cX}) ; np.imag({cX} + 0.3j) ; np.abs({cX} * 0.3 + 2.5)
    ({cX} * np.conj({cX})).real ; np.angle(4.0 + np.tanh(({cX}).real) + 1j * {X})
    """
)
TRUTH = templates(
    """
    ({X} > {X}) ; ({X} > {S}) ; ({X} <= 0.3) ; ~({X} > {S}) ; (({X} > 0.1) & ({X} < {S})) ; ({X} != {X})
    """
)

INTEGERS = {
    "S": templates(
        """
        n[0] ; np.sum({iV}) ; np.argmax({V}) ; {iV}[1] ; 2 ; ({iS} + 1) ; ({iS} * {iS}) ; np.count_nonzero({bV})
        ({iS} // 2) ; np.max({iV}) ; len({V}) ; n[-1] - 1
        """
    ),
    "V": templates(
        """
        n ; ({iV} + 1) ; ({iV} * n) ; np.argsort({V}, kind='stable') ; np.arange(3) ; ({iV} % 3) ; ({iV} + {iS}) ; m * 2
        np.cumsum({iV}) ; {iV}[::-1] ; np.where({bV}, {iV}, n) ; -({iV}) ; ({V} > {S}).astype(int)
        np.abs({iV}) ; ({iV} - 2) ** 2
        """
    ),
}
OF_INTEGERS = {
    "S": templates(
        """
        {V}[{iS} % 3] ; {S} * {iS} ; np.sum({V}[{iV} % 3]) ; {V}[n[0]] ; {S} ** ({iS} % 4) ; np.mean({iV}) ; {S} + m[0]
        np.sum({V}, where=m) ; np.sum({V} * m) ; [{S}, {S}, {S}][{iS} % 3] ; WEIGHTS[{iS} % 3]
        (0.5, 1, -2.0)[{iS} % 3]
        """
    ),
    "V": templates(
        """
        {V} * {iV} ; {V}[{iV} % 3] ; np.take({V}, n) ; np.where(m, {V}, {V}) ; {V} + {iV} ; {iV} * {S} ; {V} ** (n + 1)
        np.where(m, {V}, {iV}) ; {V} * m ; {iV} / 2 ; {M}[{iS} % 2] ; {V} / (1 + n) ; np.roll({V}, 1) * ~m
        {Q}[n, [0, 1, 2]] ; {iV} * 0.5
        """
    ),
    "M": templates(
        """
        {M} * {iV} ; {M}[:, n] ; np.where(m, {M}, {V}) ; {M} + {iS} ; {Q}[n][:2]
        """
    ),
}

# Python's own words for what NumPy does otherwise.
PYTHON = {
    "S": templates(
        """
        ({S} if {C} else {S}) ; sum({t} * {t} for {t} in {V}) ; max({S}, {S}) ; min({V}) ; abs({S})
        sum([{t} * {S} for {t} in {V}]) ; len(f'{x.shape}{m.dtype}') * {S} ; len(str(np.shape({V}))) * {S}
        sum(map(lambda {t}: {t} * 0.5, {V})) ; max([{S}, {S}, {S}]) ; min({t} * {S} for {t} in {V})
        max({S}, 0.25, *{V}) ; min({V}, key=abs) ; max(zip({V}, {V}), key=lambda {t}: {t}[1])[0] ; max([], default={S})
        min({V}, {V}, key=np.sum)[0] ; sum(min({t}, {S}) for {t} in {V})
        functools.reduce(lambda {t}, {u}: {t} * 0.5 + {u}, {V}) ; next(iter({V})) ; max({V}, key=lambda {t}: -{t})
        powered({S}) ; sorted({V})[1] ; pow({S}, 2) ; [{t} for {t} in {V} if {t} > {S}][-1:] + [{S}][0:1] and {S}
        sum({t} for {t} in {V} if {t} > {S}) + {S} ; {'a': {S}, 'b': {S}}['a'] ; ({t} := {S}) * {S} ; sum(x[::2], {S})
        """
    ),
    "V": templates(
        """
        ({V} if {C} else {V}) ; np.array([{t} * {S} for {t} in {V}], like=x) ; np.stack([np.sin({t}) for {t} in {V}])
        np.stack([np.sum({t}) for {t} in {Q}]) ; np.array(sorted({V}), like=x)
        np.stack([max({t}, {S}) for {t} in {V}]) ; np.stack([*{V}]) ; np.stack(list(reversed({V})))
        sum({t} for {t} in {M}) ; powered({V}) ; sum([{V}, {V}], {S})
        np.stack([{t} * {u} for {t}, {u} in zip({V}, {V})])
        np.stack([{t} if {t} > {S} else -{t} for {t} in {V}])
        np.stack([{t} for {u} in [{V}] for {t} in {u}]) ; np.stack([*map(lambda {t}: {t} * 0.5, {V})])
        """
    ),
    "P": templates(
        """
        ({P} if {C} else {P}) ; np.stack([{t} @ {t} for {t} in {M}]) ; np.array([max({t}) for {t} in {M}], like=x)
        """
    ),
    "M": templates(
        """
        ({M} if {C} else {M}) ; np.stack([{t} * {u} for {t}, {u} in zip({M}, {P})]) ; np.stack([*{M}][::-1])
        np.stack([{t} if {t}[0] > {S} else {t} * 2.0 for {t} in {M}])
        np.array([[{t} for {t} in {u}] for {u} in {M}], like=x)
        """
    ),
}

# Masked arrays, which calculate in their own way: those of constants, and of what is differentiated.
MASKED = {
    "S": templates(
        """
        np.ma.array({V}, mask=MASK).sum() ; np.ma.mean({V} * HIDDEN) ; (HIDDEN * {S}).filled(0.5)[1]
        np.ma.masked_where({bV}, {V}).filled({S})[0] ; np.sum(HIDDEN * {V}) ; np.ma.dot(HIDDEN, {V})
        """
    ),
    "V": templates(
        """
        (HIDDEN * {V}).filled(0.5) ; ({V} + HIDDEN).filled(2.0) ; np.ma.filled(np.ma.array({V}, mask={bV}), 0.25)
        np.ma.getdata(HIDDEN) * {V} ; np.ma.where(MASK, {V}, {V}).filled(1.0) ; HIDDEN.filled(1.5) * {V}
        np.where(HIDDEN.mask, {V}, {S}) ; np.ma.fix_invalid({V}).filled(0.0) ; np.asarray(HIDDEN) + {V}
        """
    ),
}

# Systems, inverses, factors and determinants of matrices with more rows than lanes are used for, and of stacks of them;
# some are singular, where a sum is not above LOW: these are replaced, or only solved where they are not.
MATRICES_SHARE = 0.01
"""How often one is wanted."""
MATRICES = {
    "S": templates(
        """
        np.linalg.det(grown({Q}, 33) * 0.5) ; np.linalg.slogdet(grown({V}, 49))[1]
        np.linalg.slogdet(grown({M}, 34))[0]
        np.linalg.det(thinned({V}, 34, LOW) * 0.5) ; np.sum(np.linalg.cholesky(positive({V}, 37))[-1])
        np.linalg.solve(mended(thinned({M}, 35, LOW)), np.resize({V}, 35))[20] ; np.linalg.inv(grown({F}, 48))[40, 3]
        linalg.det(grown({V}, 36) * 0.5) ; np.linalg.solve(grown({S}, 65), np.resize({V}, (65, 33)))[64, 32]
        """
    ),
    "P": templates(
        """
        np.linalg.det(stacked({P}, 33) * 0.5) ; np.linalg.slogdet(stacked({P}, 50))[1]
        np.linalg.solve(stacked({P}, 34), np.resize({M}, (2, 34, 1)))[:, 7, 0]
        linalg.solve(positive({M}, 36), np.resize({P}, 36), assume_a='pos')[::20]
        linalg.solve_triangular(np.triu(positive({V}, 33)), np.resize({W}, (33, 2)))[30]
        """
    ),
    "V": templates(
        """
        np.linalg.solve(grown({Q}, 33), np.resize({V}, 33))[::16]
        np.linalg.inv(grown({M}, 41))[[3, 40, 0], [2, 5, 40]]
        np.linalg.solve(grown({V}, 50), np.resize({M}, (50, 3)))[7] ; np.linalg.det(stacked({V}, 40) * 0.5)
        linalg.solve_triangular(np.linalg.cholesky(positive({V}, 35)), np.resize({V}, 35), lower=True)[::17]
        linalg.cho_solve(linalg.cho_factor(positive({V}, 36), lower=True), np.resize({V}, 36))[:3]
        linalg.solve_triangular(np.linalg.cholesky(positive({Q}, 64)), np.resize({M}, (64, 3)), trans=1, lower=True)[33]
        np.linalg.solve(mended(thinned({V}, 33, LOW)), np.resize({V}, 33))[:3] ; linalg.inv(grown({V}, 34).T)[33, ::16]
        wg.fori_loop(0, 2, lambda i, {t}: np.linalg.solve(grown({t}, 33), np.resize({t}, 33))[:3], {V})
        (lambda {u}: wg.fori_loop(0, 2, lambda i, {t}: np.linalg.solve({u}, np.resize({t}, 9))[:3], {V}))(grown({V}, 9))
        wg.scan(lambda {t}, {u}: (np.linalg.inv(grown({t}, 34))[:3, 33] + {u}, {u}), {V}, {P})[0]
        wg.cond(np.sum({V}) > 0.3, lambda {t}: np.linalg.solve(grown({t}, 34), np.resize({t}, 34))[-3:], np.cos, {V})
        solved_or_turned({V}, 40)
        """
    ),
    "Q": templates(
        """
        np.linalg.inv(stacked({V}, 33))[:, 5, ::16] ; np.linalg.solve(stacked({V}, 34), np.resize({Q}, (34, 3)))[:, 33]
        np.linalg.cholesky(positive({Q}, 65))[-3:, -3:] ; np.linalg.solve(grown({Q}, 64), np.resize({Q}, (64, 3)))[:3]
        np.linalg.inv(mended(stacked({V}, 35)))[:, :3, 34]
        np.linalg.solve(grown({M}, 33).T, np.resize({V}, (33, 64)))[:3, :3]
        """
    ),
}

WINGS_SHARE = 0.0
"""How often a solver, an integration or another wing of the library is wanted: `--wings` says so."""
WINGS = {kind: templates(text) for kind, text in wings.WINGS.items()}

# Conditions that look at values.
CONDITIONS = templates(
    """
    {S} > LOW ; np.sum({V}) < LOW ; {V}[0] > LOW ; {S} > {S} ; np.any({bV}) ; np.all({bP}) ; not {S} > {S}
    LOW < {S} < HIGH ; {S} > LOW and {S} < HIGH ; {S} > LOW or {V}[1] > {S} ; (np.sum({M}) > LOW) == True
    m[0] ; n[1] > 1 ; {iS} > 1 ; {iS} in (0, 2) ; n[1] not in [1, {iS}] ; {S} > LOW and m[1]  ; m.any()
    ({S} > LOW if {S} > HIGH else {V}[0] > LOW) ; bool({S} > LOW) ; np.sum({V}) < LOW or not m[2]
    """
)
# Those that Python's own functions look at.
LOOKING = templates(
    """
    any({t} > LOW for {t} in {V}) ; all([{t} < LOW for {t} in {V}]) ; min({V}) < LOW ; '-' in f'{s:.2f}'
    '-' in format({S}, '.2f')
    any({bV}) ; all(({S} > LOW, {S} < HIGH)) ; any([{t} > LOW for {t} in {V}]) ; all({V} < HIGH)
    max({V}) < min({V}) + HIGH
    sorted({V})[0] < LOW ; max({S}, {S}) > LOW ; {S} in (1, LOW, {S}) ; len([{t} for {t} in {V} if {t} > LOW]) > 1
    """
)

# Results of each shape that are not elementwise.
SHAPED = {
    "S": templates(
        """
        {V}[0] ; {V}[-1] ; {M}[1, 2] ; {W}[2][0] ; {F}[3] ; np.sum({V}) ; np.sum({M}) ; np.mean({Q}) ; np.max({V})
        np.min({M}) ; ({V}).sum() ; np.prod({V}) ; np.dot({V}, {V}) ; {V} @ {V} ; np.trace({Q})
        np.linalg.norm({V} + 2.0) ; np.std({F} + 4.0 * np.arange(6))
        (np.linalg.norm({V}) * 0.5) ** 2 ; np.std({F}) ** 2
        np.var({M}) ; np.einsum('i,i->', {V}, {V}) ; np.vdot({P}, {P})
        {V}[np.argmax({V})] ; np.median({V}) ; np.ptp({F}) ; np.sum({M}, where={bM}) ; np.inner({V}, {V})
        float(0.75) ; 0.5 ; 2 ; 1.5 ; np.sum({V}, initial=0.5) ; np.average({V}, weights=np.array([0.2, 0.3, 0.5]))
        np.sum({V}[{bV}]) ; np.prod({M}[{bM}]) ; ({V}[{bV}] * {S}).sum() ; np.max({V}[{bV}], initial={S})
        np.linalg.norm({Q}[:, {bV}] + 2.0) ; np.any({V}[{bV}] > LOW) * {S} ; np.sum({V}[np.flatnonzero({bV})])
        np.linalg.det({Q} * 0.1 + np.eye(3)) ; np.add.reduce({V}) ; np.interp(0.4, [0.0, 1.0, 2.0], {V})
        """
    ),
    "P": templates(
        """
        {V}[1:] ; {V}[::2] ; {V}[[0, 2]] ; {V}[::-2] ; {V}[MASK] ; {M}[:, 1] ; {M}[..., -1] ; {W}[0] ; {F}[1:4:2]
        np.sum({M}, axis=1) ; ({M}).mean(1) ; np.max({M}, axis=-1) ; {M} @ {V} ; np.take({V}, [2, 0])
        np.stack([{S}, {S}]) ; np.array([{S}, {S}], like=x) ; np.diff({V}) ; np.einsum('ij,j,j->i', {M}, {V}, {V})
        np.sort({P}) ; np.prod({W}, axis=0) ; np.cumsum({P}) ; np.dot({V}, {W})
        {V}[np.argsort({V})[:2]]
        """
    ),
    "V": templates(
        """
        {M}[0] ; {M}[-1, :] ; {W}[:, 1] ; {Q}[1] ; {Q}[:, 2] ; np.diagonal({Q}) ; {F}[::2] ; {F}[1:4] ; {F}[-1:0:-2]
        np.sum({M}, axis=0) ; np.sum({Q}, axis=1) ; {Q} @ {V} ; {V} @ {Q} ; {V}[::-1] ; {V}[[2, 0, 0]] ; {V}[ORDER]
        {Q}[[0, 1, 2], [2, 0, 1]] ; np.append({P}, {S}) ; np.concatenate([{P}, {P}[:1]]) ; np.sort({V})
        np.cumsum({V}) ; np.stack([{S}, {S}, {S}]) ; np.array([{S}, {S}, {S}], like=x) ; np.roll({V}, 1)
        np.take({V}, ORDER) ; np.flip({V}) ; np.cross({V}, {V}) ; np.cumprod({V}) ; np.einsum('ij,i->j', {Q}, {V})
        {M}[{bM}.argmax(0) * 0, ORDER] ; {Q}[MASK3] ; np.where(MASK, {V}, {S}) ; np.repeat({S}, 3)
        np.full(3, {S}, like=x) ; np.convolve({P}, {P}) ; {V}[np.argsort({V}, kind='stable')]
        np.linalg.solve({Q} * 0.1 + np.eye(3), {V}) ; np.insert({P}, 1, {S})
        np.select([{bV}, {bV}], [{V}, {V}], {S}) ; np.choose([0, 1, 0], [{V}, {V}])
        np.piecewise({V}, [{bV}], [np.sin, np.cos]) ; np.mean({W}, axis=-1) ; np.array([0.5, -1.0, 2.0])
        np.arange(3) ; WEIGHTS ; np.ones(3) ; np.gradient({V}) ; np.delete({F}, [0, 2, 4]) ; np.max({Q}, axis=0)
        {Q}[{bV}].sum(axis=0) ; np.prod({Q}[:, {bV}], axis=1)
        np.min({M}, axis=0) ; np.quantile({Q}, 0.3, axis=0) ; np.trapezoid({Q}, axis=1)
        np.interp({V}, [-1.0, 0.5, 2.0], {V}) ; np.percentile({F}, [10, 50, 90]) ; np.linspace({S}, {S}, 3)
        np.nanmedian({Q}, axis=0) ; np.histogram({F}, 3, (-2.0, 2.0), weights={F})[0] ; np.nanstd({Q}, axis=1)
        """
    ),
    "F": templates(
        """
        ({M}).ravel() ; ({W}).reshape(6) ; ({M}).reshape(-1, order='F') ; ({M}).T.ravel() ; ({W}).flatten()
        np.concatenate([{V}, {V}]) ; np.hstack([{P}, {V}, {S}]) ; np.tile({V}, 2) ; np.repeat({V}, 2)
        ({M}).T.ravel('K') ; np.ravel({W}, order='F') ; np.sort({F}) ; {F}[::-1] ; np.pad({V}, (1, 2))
        np.concatenate([{M}, {M}], axis=None)[:6] ; np.array([{P}, {P}, {P}], like=x).ravel()
        np.convolve({F}, [0.5, 1.0, -0.5], 'same') ; np.resize({V}, 6)
        """
    ),
    "M": templates(
        """
        ({W}).T ; ({W}).reshape(2, 3) ; np.reshape({W}, (2, 3), order='F') ; ({F}).reshape(2, 3) ; {Q}[:2]
        {Q}[::2] ; ({F}).reshape((2, 3), order='F') ; np.stack([{V}, {V}]) ; np.vstack([{V}, {V}])
        np.broadcast_to({V}, (2, 3)) ; np.outer({P}, {V}) ; {P}[:, None] * {V} ; ({M} * {V}) ; ({M} + {P}[:, None])
        {M} @ {Q} ; {Q}[[2, 0]] ; np.einsum('ij,kj->ki', {Q}, {M}) ; {M}[:, ::-1] ; {M}[::-1] ; np.sort({M}, axis=0)
        np.cumsum({M}, axis=1) ; np.array([{V}, {V}], like=x)
        np.concatenate([{P}[:, None], ({W}).T[:, :2]], axis=1) ; np.roll({M}, 1, axis=1)
        np.take({M}, [1, 0], axis=0) ; {M}[[[1], [0]], ORDER]
        np.take_along_axis({M}, np.argsort({M}, axis=1), axis=1)
        ({M} - np.mean({M}, axis=1, keepdims=True))
        np.swapaxes({W}, 0, 1) ; np.arange(6).reshape(2, 3) ; np.ones((2, 3)) ; np.moveaxis({W}, 0, -1)
        np.split({F}, 2)[1] * {M} ; np.flip({M}, 1) ; np.tensordot({M}, {Q}, 1) ; np.kron({P}[:, None], {V})
        np.einsum('i,j->ij', {P}, {V}) ; np.array({M}, order='F', like=x) ; np.diff({Q}, axis=0) ; np.rot90({W})
        """
    ),
    "W": templates(
        """
        ({M}).T ; ({M}).reshape(3, 2) ; np.reshape({M}, (3, 2), order='F') ; ({F}).reshape(3, 2) ; {Q}[:, 1:]
        {Q}[:, ::2] ; np.stack([{V}, {V}], axis=1) ; np.outer({V}, {P}) ; ({W} * {P}) ; ({W} * {V}[:, None])
        {Q} @ {W} ; ({M}).swapaxes(0, 1) ; np.column_stack([{V}, {V}]) ; {Q}[:, [2, 0]] ; np.transpose({M})
        np.array([{P}, {P}, {P}], like=x) ; {W}[::-1, ::-1] ; ({M}).T.reshape(3, 2) ; np.sort({W}, axis=1)
        {W}[ORDER]
        """
    ),
    "Q": templates(
        """
        np.outer({V}, {V}) ; ({Q} * {V}) ; ({Q} + {V}[:, None]) ; ({W}) @ ({M}) ; ({Q}).T ; np.diag({V})
        np.tril({Q}) ; np.stack([{V}, {V}, {V}]) ; np.einsum('ki,kj->ij', {M}, {M}) ; np.eye(3) ; {Q}[::-1]
        {Q}[ORDER][:, ORDER] ; np.triu({Q}, 1) ; {Q} @ {Q} ; np.broadcast_to({V}, (3, 3))
        np.concatenate([{M}, {V}[None]]) ; {Q}[np.ix_(ORDER, ORDER)] ; np.rot90({Q})
        np.linalg.inv({Q} * 0.1 + np.eye(3)) ; np.roll({Q}, (1, 1), (0, 1)) ; np.meshgrid({V}, {V})[0]
        np.pad({V}[None], ((1, 1), (0, 0)))
        """
    ),
}

# What NumPy gives as views, of one operand.
VIEWS = {
    "S": templates(
        """
        V: {}[1, ...] ; V: {}[0:1].reshape(()) ; M: {}[0, 1, ...] ; S: {}[...] ; S: {}.T
        S: {}.reshape(()) ; S: np.squeeze({})
        """
    ),
    "P": templates(
        """
        V: {}[1:] ; V: {}[::2] ; M: {}[:, 1] ; W: {}[0] ; P: {}[::-1] ; F: {}[1:4:2]
        """
    ),
    "V": templates(
        """
        M: {}[0] ; M: {}[-1, :] ; W: {}[:, 1] ; Q: {}.T[1] ; F: {}[::2] ; V: {}[...] ; V: {}[::-1] ; F: {}[4:1:-1]
        W: {}.T[0] ; V: {}.reshape(3) ; V: {}[:, None].ravel() ; M: np.split({}, 2)[1][0] ; M: {}.reshape(-1)[3:]
        V: {}.real
        """
    ),
    "F": templates(
        """
        M: {}.ravel() ; W: {}.reshape(-1) ; M: np.ravel({}) ; F: {}[::-1] ; M: {}.T.ravel('F')
        """
    ),
    "M": templates(
        """
        W: {}.T ; F: {}.reshape(2, 3) ; Q: {}[1:] ; Q: {}[::-2] ; W: {}.reshape(2, 3) ; M: {}[:]
        W: np.swapaxes({}, 0, 1) ; M: {}[:, ::-1] ; M: np.atleast_2d({}) ; M: np.reshape({}, (2, 3), copy=False)
        """
    ),
    "W": templates(
        """
        M: {}.T ; Q: {}[:, 1:] ; F: {}.reshape(3, 2) ; M: np.transpose({}) ; Q: {}[:, ::2]
        """
    ),
    "Q": templates(
        """
        Q: {}.T ; Q: {}[::-1, ::-1] ; Q: {}[...] ; Q: np.squeeze({}[None])
        """
    ),
}
MAYBE_VIEWS = {
    "F": templates(
        """
        W: {}.T.ravel() ; M: {}.T.reshape(6) ; M: ({} * 2.0).T.ravel() ; M: np.ravel({}, order='F')
        """
    ),
    "M": templates(
        """
        W: {}.T.reshape(2, 3) ; M: np.zeros_like({}.T).T ; W: np.copy({}.T)
        """
    ),
    "W": templates(
        """
        M: {}.T.reshape(3, 2) ; M: np.reshape({}, (3, 2), order='F') ; M: np.take({}, [1, 0, 2], axis=1).T
        """
    ),
}

# Functions with rules of their own, and control flow by functions; t is a name that the filled expression may use.
CALLS = templates(
    """
    Weighted.apply({X}, 2) ; Weighted.apply({X}, 3) ; captured({X}, {S}) ; {X} * np.mean(TALL) ; {X} * TALL[1:4][0]
    {X} * FROZEN[1] ; {X} + np.sum(FROZEN * PLAIN) ; {X} * (PLAIN[0] + {S})
    sine({X}) ; cube({X}) ; root({X}) ; Scaled.apply({X}, {S}) ; Squared.apply({X}) ; product({X}, {X})
    wg.checkpoint(lambda {t}: {X:t})({X}) ; wg.checkpoint(lambda {t}, {u}: {X:tu})({X}, {X}) ; tripled({X})
    (lambda {t}: {X:t})({X}) ; (lambda {t}, {u}: {X:tu})({X}, {X}) ; twice(lambda {t}: {X:t}, {X})
    [np.sin, lambda {t}: {X:t}][len({V}) - 2]({X}) ; (lambda {t}, *, {u}={X}: {X:tu})({X})
    """
)
CONTROL = templates(
    """
    wg.cond({C}, lambda {t}: {X:t}, lambda {t}: {X:t}, {X}) ; wg.cond({C}, np.sin, np.tanh, {X})
    wg.fori_loop(0, 3, lambda i, {t}: np.sin({X:t}), {X})
    wg.fori_loop(0, 2, lambda i, {t}: {t} * 0.5 + {X:t} * i, {X})
    wg.switch(np.argmax({V}), [lambda {t}: {X:t}, np.cos, lambda {t}: {X:t}], {X})
    wg.while_loop(lambda {t}: abs(np.sum({t} * {t}) - 50.3) < 49.7, lambda {t}: {t} * 0.6 + np.sin({X:}) * 0.01, {X})
    wg.scan(lambda {t}, {u}: (np.sin({t} + {u}), {t}), {X}, {V})[0]
    wg.scan(lambda {t}, {u}: ({X:t} * 0.5 + {u}, None), {X}, {V}, reverse=True)[0]
    np.sum(wg.scan(lambda {t}, {u}: (np.cos({t}) * {u}, {t} * {u}), {X}, {V})[1], axis=0)
    {X} * energy(wg.scan(rewritten, {V}, {V})) ; {X} * energy(wg.scan(rewritten, {V}, WEIGHTS, reverse=True))
    wg.scan(lambda {t}, {u}: ({X:t} * 0.5 + {u}, None), {X}, {V}, unroll=True)[0]
    wg.while_loop(lambda {t}: abs(np.sum({t} * {t}) - 50.3) < 49.7, lambda {t}: {X:t} * 0.5, {X}, max_rounds=3)
    left_behind(lambda {t}: ({t} * 0.5, {X:t}), {X}) ; nested_loops(lambda {t}: {X:t}, {X})
    written_and_read(lambda {t}: {X:t}, {X})
    """
)

PLACEHOLDER = re.compile(r"\{([bci]?[A-Zt-u]?)(?::(\w*))?\}")


@dataclass(frozen=True)
class Name:
    """Be something that an expression can name: a variable, an element of a container, an attribute.

    Attributes:
        text: how it is written; it can also be assigned to.
        kind: the letter of its shape.
        number: "f" or "c".
        own: whether it may be written into: it is an array, and no part of an argument's memory.
        bound: whether it may be bound anew here: it is no variable of a surrounding function.
    """

    text: str
    kind: str
    number: str = "f"
    own: bool = False
    bound: bool = True


@dataclass
class Scope:
    """Hold what can be named at a place of a program, and rules that hold there besides the grammar's."""

    names: list[Name] = field(default_factory=list)
    rules: list[tuple[str, str]] = field(default_factory=list)

    def inner(self, *names: Name) -> Scope:
        """Return a scope inside of this one."""
        return Scope([*self.names, *names], list(self.rules))

    def having(self, kind: str, number: str = "f") -> list[Name]:
        """Return the names of one kind."""
        return [name for name in self.names if name.kind == kind and name.number == number]

    def writable(self, kinds: str = "PVFMWQ", numbers: str = "fc") -> list[Name]:
        """Return the names that may be written into."""
        return [name for name in self.names if name.own and name.kind in kinds and name.number in numbers]


class Expressions:
    """Make random expressions of a kind."""

    def __init__(self, choice: random.Random, features: frozenset[str]) -> None:
        self.choice = choice
        self.features = features
        self.count = 0

    def fresh(self, prefix: str) -> str:
        """Return a name that was not used before."""
        self.count += 1
        return f"{prefix}{self.count}"

    def having(self, feature: str, chance: float) -> bool:
        """Tell whether a feature is wanted and its turn has come."""
        return self.choice.random() < chance and feature in self.features

    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        """Return the text of an expression."""
        if kind[0] == "b":
            if kind == "bV" and self.having("integers", 0.1):
                return "m"
            return self.filled(self.choice.choice(TRUTH), kind[1], scope, depth - 1)
        if kind[0] == "i":
            return self.integers(kind, scope, depth)
        if kind[0] == "c":
            names = scope.having(kind[1], "c")
            if names and (depth <= 0 or self.choice.random() < 0.5):
                return self.choice.choice(names).text
            return self.filled(self.choice.choice(COMPLEX), kind[1], scope, depth - 1)
        names = scope.having(kind)
        if names and (depth <= 0 or self.choice.random() < 0.3):
            return self.choice.choice(names[-6:]).text
        return self.filled(self.template(kind, scope, depth), kind, scope, depth - 1)

    def integers(self, kind: str, scope: Scope, depth: int) -> str:
        """Return the text of an expression of integers."""
        names = scope.having(kind[1], "i")
        if names and (depth <= 0 or self.choice.random() < 0.4):
            return self.choice.choice(names).text
        if depth <= 0 or "integers" not in self.features:
            return {"S": "n[0]", "V": "n"}[kind[1]]
        return self.filled(self.choice.choice(INTEGERS[kind[1]]), kind[1], scope, depth - 1)

    def template(self, kind: str, scope: Scope, depth: int) -> str:
        """Return the template of a rule."""
        if depth <= 0:
            return self.choice.choice(self.shallow(kind))
        local = [template for result, template in scope.rules if result == kind]
        if local and self.choice.random() < 0.3:
            return self.choice.choice(local)
        if self.having("complex", 0.06):
            return self.choice.choice(FROM_COMPLEX)
        if self.having("calls", 0.08):
            return self.choice.choice(CALLS)
        if self.having("control", 0.04):
            return self.choice.choice(CONTROL)
        if self.having("integers", 0.05) and kind in OF_INTEGERS:
            return self.choice.choice(OF_INTEGERS[kind])
        if self.having("masked", 0.01) and kind in MASKED:
            return self.choice.choice(MASKED[kind])
        if WINGS_SHARE and kind in WINGS and self.choice.random() < WINGS_SHARE:
            return self.choice.choice(WINGS[kind])
        if self.having("matrices", MATRICES_SHARE) and kind in MATRICES:
            return self.choice.choice(MATRICES[kind])
        if self.having("python", 0.05) and kind in PYTHON:
            return self.choice.choice(PYTHON[kind])
        if self.having("single", 0.03):
            return "np.add({X}, 0.0).astype(single)"
        return self.choice.choice(self.choice.choice((UNARY, BINARY, SHAPED[kind], SHAPED[kind])))

    def shallow(self, kind: str) -> Sequence[str]:
        """Return templates that end quickly, because every scope names a V, an M and an S."""
        found = [t for t in SHAPED[kind] if t.count("{") == 1 and re.search(r"\{[VMS]\}", t)]
        return found or ["({P})[:, None] * np.ones(3)" if kind == "M" else "np.outer({V}, {V})"]

    def condition(self, scope: Scope, depth: int) -> str:
        """Return the text of a condition that looks at values."""
        low = round(self.choice.uniform(-1, 1.5), 2)
        table = LOOKING if self.having("python", 0.05) else CONDITIONS
        template = self.choice.choice(table).replace("LOW", str(low)).replace("HIGH", f"{low + 1.5:.2f}")
        return self.filled(template, "S", scope, depth)

    def filled(self, template: str, shape: str, scope: Scope, depth: int) -> str:
        """Return a template with expressions in place of its placeholders."""
        bound: dict[str, str] = {}

        def replace(match: re.Match[str]) -> str:
            code, given = match.group(1), match.group(2)
            if code in ("t", "u"):
                return bound.setdefault(code, self.fresh(code))
            if code == "C":
                return self.condition(scope, depth)
            inner = scope
            if given is not None:
                kinds = {"t": shape, "u": shape}
                inner = scope.inner(*(Name(bound.setdefault(c, self.fresh(c)), kinds[c]) for c in given))
            kind = code.replace("X", shape)
            return f"({self.expression(kind, inner, depth)})"

        return PLACEHOLDER.sub(replace, template)
