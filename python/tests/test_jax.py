# SPDX-License-Identifier: MIT
"""bracewell.jax: the same values and gradients as finite differences have, in jit too."""

import bracewell
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")

import bracewell.jax as operators  # noqa: E402

jax.config.update("jax_enable_x64", True)


def check(function, *values):
    """Derivatives of a loss along random directions."""
    rng = np.random.default_rng(2)

    def loss(*given):
        found = function(*given)
        return (abs(found - 0.3)**2).sum()

    found = jax.jit(jax.grad(loss, argnums=tuple(range(len(values)))))(*values)
    for i, (value, gradient) in enumerate(zip(values, found)):
        step = rng.normal(size=value.shape) + (1j * rng.normal(size=value.shape) if np.iscomplexobj(value) else 0)
        moved = [[one if j != i else one + sign * 1e-6 * step for j, one in enumerate(values)] for sign in (1, -1)]
        expected = (loss(*moved[0]) - loss(*moved[1])) / 2e-6
        assert abs(np.sum(np.asarray(gradient) * step).real - expected) < 1e-5 * abs(expected) + 1e-5


def test_functions_of_jax_have_gradients(rng):
    points = rng.uniform(-0.5, 0.5, (9, 2))
    plan = operators.NonuniformFFT(points, (4, 5), tolerance=1e-10)
    check(plan.adjoint, rng.normal(size=9) + 1j * rng.normal(size=9))
    check(plan.forward, rng.normal(size=(2, 4, 5)) + 1j * rng.normal(size=(2, 4, 5)))
    for units in ("transpose", "line_integrals"):
        beam = operators.Tomography([0.1, 0.7, 1.9], 8, units=units, weights=[1, 0.5, 1.5])
        check(beam.project, rng.normal(size=(8, 8)))
        check(beam.backproject, rng.normal(size=(2, 3, 8)))
    volume = rng.normal(size=(1, 6, 6, 4)) + 1j * rng.normal(size=(1, 6, 6, 4))
    matrices = np.linalg.qr(rng.normal(size=(1, 2, 3, 3)))[0]
    check(lambda *given: operators.project(*given, radius=2.5), volume, matrices, rng.normal(size=(1, 2, 2)), rng.normal(size=(1, 1, 6, 4)))
    found = jax.jit(lambda v: operators.project(v, matrices, np.zeros((1, 2, 2))))(volume)
    np.testing.assert_allclose(found, bracewell.project(volume, matrices))
