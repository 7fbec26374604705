# SPDX-License-Identifier: MIT
"""Padding, roll-off, normalisation and correlation, against NumPy."""

import bracewell
import numpy as np
import pytest
from conftest import relative_error


@pytest.mark.parametrize("box, padded", [((5, 6), (8, 9)), ((4, 5, 7), (6, 5, 8))])
def test_padding_puts_the_centre_at_the_origin_and_back(rng, box, padded):
    image = rng.normal(size=(2, *box))
    found = bracewell.pad_centre(image, padded)
    larger = np.zeros((2, *padded))
    larger[(slice(None), *[slice(0, n) for n in box])] = image
    expected = np.roll(larger, [-(n // 2) for n in box], axis=range(1, len(box) + 1))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(bracewell.crop_centre(found, box, 2.0), 2 * image)


@pytest.mark.parametrize("interpolation, transform", [
    ("linear", lambda v: np.sinc(v)**2),
    ("catmull_rom", lambda v: np.sinc(v)**3 * (3 * np.sinc(v) - 2 * np.cos(np.pi * v))),
    ("cubic_bspline", lambda v: np.sinc(v)**4),
])
def test_rolloff_is_the_kernels_transform(interpolation, transform):
    volume = np.ones((1, 5, 6, 7))
    assert bracewell.correct_rolloff(volume, (8, 9, 14), interpolation=interpolation) is volume
    factors = [transform((np.arange(n) - n // 2) / N) for n, N in zip((5, 6, 7), (8, 9, 14))]
    expected = 1 / (factors[0][:, None, None] * factors[1][:, None] * factors[2])
    assert relative_error(volume[0], expected) < 1e-13


def shells_of(shape):
    """Shell of every element of the full spectrum, in periods per box width."""
    axes = np.meshgrid(*[np.fft.fftfreq(n) * shape[-1] for n in shape], indexing="ij")
    return np.floor(np.sqrt(sum(axis**2 for axis in axes)) + 0.5).astype(int)


def test_correlation_of_shells(rng):
    maps = rng.normal(size=(2, 9, 8, 8))
    first, second = (np.fft.rfftn(m)[None] for m in maps)
    found = bracewell.fourier_shell_correlation(first, second)
    a, b = (np.fft.fftn(m) for m in maps)
    shell = shells_of((9, 8, 8))
    for s in range(5):
        here = shell == s
        expected = (a[here] * b[here].conj()).real.sum() / np.sqrt((abs(a[here])**2).sum() * (abs(b[here])**2).sum())
        assert abs(found[0, s] - expected) < 1e-12


def test_normalise_divides_with_a_floor(rng):
    shape = (8, 8)
    weight = np.abs(np.fft.rfft2(rng.normal(size=shape)))**2  # of a real image: self-mated columns are consistent
    data = np.fft.rfft2(rng.normal(size=shape))
    found = bracewell.normalise(data[None], weight[None], wiener=0.5, floor=0.3, radius=9)[0]
    columns = np.minimum(np.arange(8), (8 - np.arange(8)))
    full = np.array([[weight[(y if x <= 4 else -y) % 8, columns[x]] for x in range(8)] for y in range(8)])
    shell = shells_of(shape)
    average = np.array([full[shell == s].mean() if (shell == s).any() else 0 for s in range(5)])
    least = 0.3 * (average[np.minimum(shell, 4)][:, :5] + 0.5)
    assert relative_error(found, data / np.maximum(weight + 0.5, least)) < 1e-12


def test_a_map_comes_back_from_its_projections():
    """A few Gaussian blobs, projected in many poses and reconstructed: the round trip of the guide."""
    n, N = 24, 36
    rng = np.random.default_rng(3)
    axis = np.arange(n) - n // 2
    z, y, x = np.meshgrid(axis, axis, axis, indexing="ij")
    blob = sum(np.exp(-((x - a)**2 + (y - b)**2 + (z - c)**2) / 4) for a, b, c in rng.uniform(-6, 6, size=(8, 3)))[None]
    spectrum = np.fft.rfftn(bracewell.pad_centre(bracewell.correct_rolloff(blob.copy(), (N, N, N)), (N, N, N)), axes=(1, 2, 3))
    matrices = np.linalg.qr(rng.normal(size=(1, 1000, 3, 3)))[0]
    images = bracewell.project(spectrum, matrices, shape=(n, n), oversampling=N / n)
    data, weight = bracewell.backproject(images, matrices, weights=np.ones(images.shape), shape=(N, N, N), oversampling=N / n)
    volume = np.fft.irfftn(bracewell.normalise(data, weight, radius=N / 2), s=(N, N, N), axes=(1, 2, 3))
    found = bracewell.correct_rolloff(bracewell.crop_centre(volume, (n, n, n)), (N, N, N))
    inside = np.sqrt(x**2 + y**2 + z**2) < 0.4 * n
    assert relative_error(found[0][inside], blob[0][inside]) < 0.05
