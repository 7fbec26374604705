# SPDX-License-Identifier: MIT
"""Lists of points against sums over taps in NumPy, and against finite differences of them."""

import numpy as np
import pytest

import bracewell


def kernel(name, x):
    a = np.abs(x)
    if name == "linear":
        return np.maximum(0, 1 - a)
    if name == "catmull_rom":
        return np.where(a < 1, 1.5 * a**3 - 2.5 * a**2 + 1, np.where(a < 2, -0.5 * a**3 + 2.5 * a**2 - 4 * a + 2, 0))
    return np.where(a < 1, 2 / 3 - a**2 + a**3 / 2, np.where(a < 2, (2 - a) ** 3 / 6, 0))


def full_spectrum(half, width, mates):
    """All elements of a half spectrum, [H, W] or [D, H, W]; with both mates what a value and its conjugate are read from."""
    shape = (*half.shape[:-1], width)
    result = np.zeros(shape, complex)
    for index in np.ndindex(*shape):
        opposite = tuple(-i % n for i, n in zip(index, shape))
        own = half[index] if index[-1] < half.shape[-1] else 0
        mate = np.conj(half[opposite]) if opposite[-1] < half.shape[-1] else 0
        result[index] = own + mate if mates == "both" else (own if index[-1] < half.shape[-1] else mate)
    return result


def sampled(grid, points, name, width, mates):
    """The sum over all elements, and all periods that are near."""
    full = full_spectrum(grid, width, mates) if np.iscomplexobj(grid) else grid
    values = []
    for q in points:
        sum_ = full
        for d in range(len(q)):  # x is the last axis
            n = sum_.shape[-1]
            distance = q[d] - np.arange(n)
            periods = range(-4, 5) if np.iscomplexobj(grid) else (0,)
            weights = sum(kernel(name, distance + n * period) for period in periods)
            sum_ = sum_ @ weights
        values.append(sum_)
    return np.array(values)


def problem(rng, shape, half, batches=2):
    stored = (*shape[:-1], shape[-1] // 2 + 1) if half else shape
    grid = rng.normal(size=(batches, *stored)) + (1j * rng.normal(size=(batches, *stored)) if half else 0)
    size = np.array(shape[::-1])
    points = rng.uniform(-1, 1.2, (batches, 9, len(shape))) * size
    amplitudes = rng.normal(size=(batches, 9)) + (1j * rng.normal(size=(batches, 9)) if half else 0)
    return grid, points, amplitudes, {"width": shape[-1]} if half else {}


def product(a, b):
    return np.vdot(a, b).real


@pytest.mark.parametrize("name", ["linear", "catmull_rom", "cubic_bspline"])
@pytest.mark.parametrize("shape, half, mates", [((8, 7), True, "single"), ((5, 8), True, "both"), ((5, 6, 7), True, "single"),
                                                ((6, 5, 4), True, "both"), ((7, 5), False, "single"),
                                                ((4, 3, 6), False, "single")])
def test_points_have_the_values_and_gradients_of_their_definition(rng, name, shape, half, mates):
    grid, points, amplitudes, width = problem(rng, shape, half)
    options = {"interpolation": name, "mates": mates}
    values = bracewell.sample(grid, points, **width, **options)
    for b in range(2):
        np.testing.assert_allclose(values[b], sampled(grid[b], points[b], name, shape[-1], mates), atol=1e-11)
    inserted = bracewell.insert(amplitudes, points, shape=shape, **options)
    assert abs(product(amplitudes, values) - product(inserted, grid)) < 1e-10
    given = bracewell.sample_gradients(grid, points, amplitudes, **width, **options)
    np.testing.assert_allclose(given.grid, inserted, atol=1e-12)
    back = bracewell.insert_gradients(amplitudes, points, grid, **width, **options)
    np.testing.assert_allclose(back.values, values, atol=1e-12)
    np.testing.assert_allclose(back.points, given.points, atol=1e-12)
    step = 1e-6
    for axis in range(len(shape)):
        move = np.zeros(len(shape))
        move[axis] = step
        slope = [np.real(np.conj(amplitudes[b]) * (sampled(grid[b], points[b] + move, name, shape[-1], mates)
                                                   - sampled(grid[b], points[b] - move, name, shape[-1], mates))) / (2 * step)
                 for b in range(2)]
        np.testing.assert_allclose(given.points[..., axis], slope, atol=1e-7)


def test_shared_grids_and_points_get_the_sum(rng):
    grid, points, amplitudes, width = problem(rng, (6, 7), True)
    shared = bracewell.sample_gradients(grid[:1], points, amplitudes, **width)
    apart = bracewell.sample_gradients(np.repeat(grid[:1], 2, 0), points, amplitudes, **width)
    np.testing.assert_allclose(shared.grid, apart.grid.sum(0, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(shared.points, apart.points, atol=1e-12)
    shared = bracewell.sample_gradients(grid, points[:1], amplitudes, **width)
    apart = bracewell.sample_gradients(grid, np.repeat(points[:1], 2, 0), amplitudes, **width)
    np.testing.assert_allclose(shared.points, apart.points.sum(0, keepdims=True), atol=1e-12)


def test_single_precision_and_outputs(rng):
    grid, points, amplitudes, _ = problem(rng, (6, 8), True)
    exact = bracewell.sample(grid, points)
    out = np.empty((2, 9), np.complex64)
    found = bracewell.sample(grid.astype(np.complex64), points.astype(np.float32), out=out)
    assert found is out
    np.testing.assert_allclose(found, exact, atol=1e-4)
    total = np.array(grid)
    bracewell.insert(amplitudes, points, out=total)
    np.testing.assert_allclose(total - grid, bracewell.insert(amplitudes, points, shape=(6, 8)), atol=1e-12)
    one = bracewell.insert(amplitudes, points, shape=(6, 8), batches=1)
    np.testing.assert_allclose(one, (total - grid).sum(0, keepdims=True), atol=1e-12)


def test_arguments_that_do_not_fit_are_said_in_one_sentence(rng):
    grid, points, amplitudes, width = problem(rng, (6, 7), True)
    for call, sentence in [
        (lambda: bracewell.sample(problem(rng, (7, 7), True)[0], points), "width= where boxes are odd"),
        (lambda: bracewell.sample(grid.real.copy(), points, width=7), "width: expected none where the grid is real"),
        (lambda: bracewell.sample(grid, points[0], **width), "points: expected"),
        (lambda: bracewell.sample(grid, points[..., :1].copy(), **width), "points: expected"),
        (lambda: bracewell.sample(grid, points, interpolation="cubic", **width), "interpolation: expected"),
        (lambda: bracewell.sample(grid, points, mates="none", **width), "mates: expected"),
        (lambda: bracewell.insert(amplitudes, points), "shape: expected"),
        (lambda: bracewell.sample_gradients(grid, points, amplitudes, wanted=("values",), **width), "wanted: expected"),
        (lambda: bracewell.sample_gradients(grid, points, amplitudes, wanted=(), **width), "expected at least one output"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()


def test_torch_functions_have_exact_gradients():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from bracewell.torch import insert, sample

    generator = torch.Generator().manual_seed(1)
    points = (torch.rand((1, 4, 2), dtype=torch.float64, generator=generator) * 5 + 0.1).requires_grad_()
    for half in (True, False):
        kind = torch.complex128 if half else torch.float64
        grid = torch.randn((1, 6, 4 if half else 6), dtype=kind, generator=generator).requires_grad_()
        values = torch.randn((1, 4), dtype=kind, generator=generator).requires_grad_()
        assert torch.autograd.gradcheck(sample, (grid, points))
        assert torch.autograd.gradcheck(lambda v, p: insert(v, p, shape=(6, 6)), (values, points))
