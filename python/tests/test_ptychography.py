# SPDX-License-Identifier: MIT
"""The ptychographic loss against its formula in NumPy, its gradients against finite differences, Adam against its paper."""

import bracewell
import numpy as np
import pytest
from conftest import relative_error

M, SIZE = 8, (14, 15)
WHOLE = np.array([[0, 0], [3, 2], [6, 7], [1, 5]], float)


def loss_of(object_, probe, positions, patterns, weights=None, kind="amplitude", scaled=True):
    """L = 1 / (N n^2) sum w l(J, t), positions whole, far field."""
    total = 0
    n = patterns.shape[-1]
    w = np.ones((n, n)) if weights is None else weights
    for (row, column), measured in zip(positions.astype(int), patterns):
        window = object_[row:row + M, column:column + M]
        modelled = sum(abs(np.fft.fft2(window * p, (n, n)))**2 for p in np.atleast_3d(probe).reshape(-1, M, M))
        if scaled:
            modelled = modelled / (w * modelled).sum() * w.sum()
            measured = measured / (w * measured).sum() * w.sum()
        terms = (np.sqrt(modelled) - np.sqrt(measured))**2 if kind == "amplitude" else (modelled - measured)**2
        total += (w * terms).sum() / (len(positions) * n * n)
    return total


def example(rng, n=10, modes=1):
    object_ = rng.normal(size=SIZE) + 1j * rng.normal(size=SIZE)
    probe = rng.normal(size=(modes, M, M)) + 1j * rng.normal(size=(modes, M, M))
    return object_, probe, rng.uniform(0.5, 2, size=(len(WHOLE), n, n))


@pytest.mark.parametrize("kind", ["amplitude", "least_squares"])
@pytest.mark.parametrize("scaled", [True, False])
def test_the_loss_is_its_formula(rng, kind, scaled):
    object_, probe, patterns = example(rng, modes=2)
    weights = (rng.uniform(size=patterns.shape[1:]) > 0.2).astype(float)
    plan = bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M, modes=2, loss=kind, scale="pattern" if scaled else "none",
                                      weights=weights)
    expected = loss_of(object_, probe, WHOLE, patterns, weights, kind, scaled)
    found = plan.evaluate(object_, probe, wanted=())
    assert found.object is None and found.probe is None
    assert abs(found.loss[0] - expected) < 1e-11 * expected
    single = bracewell.PtychographyLoss(patterns.astype(np.float32), WHOLE, SIZE, M, modes=2, loss=kind,
                                        scale="pattern" if scaled else "none", weights=weights.astype(np.float32))
    found = single.evaluate(object_.astype(np.complex64), probe.astype(np.complex64), wanted=())
    assert abs(found.loss[0] - expected) < 2e-5 * expected


def test_gradients_are_the_derivatives(rng):
    object_, probe, patterns = example(rng)
    positions = WHOLE + rng.uniform(-0.4, 0.4, size=WHOLE.shape)
    positions = np.clip(positions, 0, None)
    plan = bracewell.PtychographyLoss(patterns, positions, SIZE, M, loss="poisson", refine_positions=True)
    found = plan.evaluate(object_, probe[0], positions, wanted=("object", "probe", "positions"))
    step = [rng.normal(size=SIZE) + 1j * rng.normal(size=SIZE), rng.normal(size=(M, M)) + 1j * rng.normal(size=(M, M)),
            rng.normal(size=positions.shape)]
    e = 1e-6

    def at(sign):
        return plan.evaluate(object_ + sign * e * step[0], probe[0] + sign * e * step[1], positions + sign * e * step[2],
                             wanted=()).loss[0]

    slope = sum((g.conj() * d).real.sum() for g, d in zip((found.object, found.probe, found.positions), step))
    assert abs((at(1) - at(-1)) / (2 * e) - slope) < 1e-7 * max(1, abs(slope))


def test_a_subset_is_the_loss_of_its_patterns(rng):
    object_, probe, patterns = example(rng)
    plan = bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M)
    some = np.array([2, 0], np.int32)
    found = plan.evaluate(object_, probe[0], subset=some)
    assert abs(found.loss[0] - loss_of(object_, probe, WHOLE[some], patterns[some])) < 1e-12


def test_adam_takes_the_steps_of_its_paper(rng):
    real, waves = rng.normal(size=5), rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    expected = [real.copy(), waves.copy().view(float)]
    means, squares = [0, 0], [0, 0]
    adam = bracewell.Adam([real, waves], [0.1, 0.02])
    for t in range(1, 5):
        gradients = [rng.normal(size=5), rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))]
        adam.step(gradients)
        for i, (gradient, rate) in enumerate(zip((gradients[0], gradients[1].view(float)), (0.1, 0.02))):
            means[i] = 0.9 * means[i] + 0.1 * gradient
            squares[i] = 0.999 * squares[i] + 0.001 * gradient**2
            expected[i] -= rate * means[i] / (1 - 0.9**t) / (np.sqrt(squares[i] / (1 - 0.999**t)) + 1e-8)
    assert relative_error(real, expected[0]) < 1e-12
    assert relative_error(waves.view(float), expected[1]) < 1e-12


def test_wrong_input_is_told_in_one_sentence(rng):
    object_, probe, patterns = example(rng)
    with pytest.raises(ValueError, match="positions: expected .* found"):
        bracewell.PtychographyLoss(patterns, WHOLE + 100, SIZE, M)
    with pytest.raises(ValueError, match="patterns: expected finite intensities"):
        bracewell.PtychographyLoss(-patterns, WHOLE, SIZE, M)
    with pytest.raises(ValueError, match="loss: expected one of least_squares, amplitude, poisson, found l1"):
        bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M, loss="l1")
    plan = bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M)
    with pytest.raises(TypeError, match="object: expected complex128, the precision of the plan, found complex64"):
        plan.evaluate(object_.astype(np.complex64), probe[0])
