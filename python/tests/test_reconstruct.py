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


def full_of(half, n):
    """The full spectrum [n, n, n] of a half one, by Friedel's law; real ones are even."""
    k = np.arange(n)
    mates = half[np.ix_(-k % n, -k % n, (-k % n)[n // 2 + 1:])]
    return np.concatenate([half, mates.conj()], axis=2)


def half_spectra(rng, n, count):
    """Half spectra of real volumes, and weights that are even and positive."""
    data = [np.fft.rfftn(rng.normal(size=(n, n, n))) for _ in range(count)]
    weight = [np.abs(np.fft.rfftn(rng.normal(size=(n, n, n))))**2 / n**3 for _ in range(count)]
    return data, weight


def test_normalise_adds_a_prior_and_softens_the_edge(rng):
    n, radius, edge = 8, 4.0, 2.0
    (data,), (weight,) = half_spectra(rng, n, 1)
    prior = rng.uniform(0.1, 2, size=(1, 5))
    found = bracewell.normalise(data[None], weight[None], prior=prior, radius=radius, edge=edge, interpolation="linear")[0]
    k = np.fft.fftfreq(n, 1 / n)
    r = np.sqrt(k[:, None, None]**2 + k[:, None]**2 + np.arange(n // 2 + 1)**2)
    shell = np.minimum(np.floor(r + 0.5).astype(int), 4)
    full = full_of(weight, n)
    rf = np.sqrt(k[:, None, None]**2 + k[:, None]**2 + k**2)
    average = np.array([full[np.floor(rf + 0.5).astype(int) == s].mean() for s in range(5)])
    divisor = np.maximum(weight + prior[0][shell], 1e-3 * (average + prior[0])[shell])
    falls = 0.5 + 0.5 * np.cos(np.pi * np.clip((r - (radius - edge)) / edge, 0, 1))
    expected = np.where(r <= radius, data / divisor * falls, 0)
    assert relative_error(found, expected) < 1e-12


def test_moments_powers_and_prior(rng):
    n = 8
    (d1, d2), (w1, w2) = half_spectra(rng, n, 2)
    d2 = d1 + 0.3 * d2
    prior = rng.uniform(0.5, 2, size=(1, 6))
    found = bracewell.half_set_moments(d1[None], w1[None], d2[None], w2[None], prior=prior)
    assert found.shape == (1, 6, 7)
    a, b, u, v = (full_of(x, n) for x in (d1, d2, w1, w2))
    k = np.fft.fftfreq(n, 1 / n)
    shell = np.floor(np.sqrt(k[:, None, None]**2 + k[:, None]**2 + k**2) + 0.5).astype(int)
    added = prior[0][np.minimum(shell, 5)]
    g, h = 1 / (u + added), 1 / (v + added)
    terms = [(a * b.conj()).real * g * h, u * v * g * h, abs(a * g)**2 + abs(b * h)**2, (u * g)**2 + (v * h)**2,
             u * g**2 + v * h**2, (u + v) / 2, np.ones_like(u)]
    expected = np.array([[term[shell == s].sum() for term in terms] for s in range(6)])
    np.testing.assert_allclose(found[0], expected, rtol=1e-11, atol=1e-11)
    assert bracewell.half_set_moments(d1[None], w1[None], d2[None], w2[None]).shape == (1, 5, 7)

    # Signal 4 and noise 3 of a sample of weight 1 in every shell, exactly, with weights of 2.
    energy = (2 / 3)**3  # of linear weights: the mean of (1 - t)^2 + t^2, cubed
    count, signal, noise, weight = 100.0, 4.0, 3.0, 2.0
    sums = np.tile([signal * weight**2, weight**2, 2 * (signal * 1.1 * weight**2 + noise * energy * weight), 2 * weight**2,
                    2 * weight, weight, 1.0], (12, 1)) * count
    powers = bracewell.signal_and_noise(sums, interpolation="linear")
    np.testing.assert_allclose(powers.signal, signal)
    np.testing.assert_allclose(powers.noise, noise)
    np.testing.assert_allclose(powers.weight, weight)
    np.testing.assert_allclose(bracewell.wiener_prior(powers, 2, 0.3), 0.3 * noise / (signal * 8))
    with pytest.raises(ValueError, match=r"moments: expected \[S, 7\]"):
        bracewell.signal_and_noise(sums.ravel())


def test_symmetrise_sums_over_operators(rng):
    n = 9  # odd: the lattice is its own under C4
    volume = rng.normal(size=(n, n, n))
    half = np.fft.rfftn(volume)[None].copy()
    assert bracewell.symmetrise(half, "C4", width=n, radius=4.0) is half
    k = np.rint(np.fft.fftfreq(n, 1 / n)).astype(int)
    kz, ky, kx = np.meshgrid(k, k, k[:n // 2 + 1], indexing="ij")
    full, expected = np.fft.fftn(volume), 0
    for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        expected = expected + full[kz % n, (s * kx + c * ky) % n, (c * kx - s * ky) % n]
    expected = np.where(kx**2 + ky**2 + kz**2 <= 16, expected, 0)
    assert relative_error(half[0], expected) < 1e-12

    operators = bracewell.symmetry_operators("D7")
    assert operators.shape == (14, 3, 4)
    turns = operators[:, :, :3]
    np.testing.assert_allclose(turns @ turns.transpose(0, 2, 1), np.tile(np.eye(3), (14, 1, 1)), atol=1e-12)
    helix = bracewell.helical_operators(1.5, 20.0, 3)
    angles = np.rad2deg(np.arctan2(helix[:, 1, 0], helix[:, 0, 0]))
    np.testing.assert_allclose(abs(angles), [0, 20, 20], atol=1e-9)
    np.testing.assert_allclose(abs(helix[:, 2, 3]), [0, 1.5, 1.5])
    # A shift alone is a phase.
    weight = np.ones((1, n, n, n // 2 + 1), "float32")
    moved = np.array([np.eye(3, 4), np.eye(3, 4)])
    moved[1, 2, 3] = 2
    half = np.fft.rfftn(volume)[None].copy()
    bracewell.symmetrise(half, moved, width=n, radius=4.0)
    expected = np.where(kx**2 + ky**2 + kz**2 <= 16, np.fft.rfftn(volume) * (1 + np.exp(2j * np.pi * kz * 2 / n)), 0)
    assert relative_error(half[0], expected) < 1e-12
    bracewell.symmetrise(weight, moved, width=n, radius=4.0)
    np.testing.assert_allclose(weight[0], np.where(kx**2 + ky**2 + kz**2 <= 16, 2, 0), atol=1e-6)
    with pytest.raises(ValueError, match="C<n>, D<n>"):
        bracewell.symmetrise(half, "I5", width=n)
    with pytest.raises(ValueError, match=r"operators: expected \[operators, 3, 3\]"):
        bracewell.symmetrise(half, np.eye(3), width=n)
    for longer in (2 * np.eye(3), 1e30 * np.ones((3, 4)), np.full((3, 3), np.nan)):  # which lead out of the box
        with pytest.raises(ValueError, match="operators: expected rotations, found a matrix that is none"):
            bracewell.symmetrise(half, longer[None], width=n)


@pytest.mark.parametrize("keep_power", [False, True])
def test_equalise_is_pipe_and_menons_iteration(rng, keep_power):
    n, box, radius = 10, 5, 4.2
    _, (weight,) = half_spectra(rng, n, 1)
    prior = rng.uniform(0.1, 0.5, size=(1, 6))
    found = bracewell.equalise(weight[None], (box,) * 3, prior=prior, steps=3, tolerance=0, radius=radius, keep_power=keep_power)[0]
    k = np.fft.fftfreq(n, 1 / n)
    r = np.sqrt(k[:, None, None]**2 + k[:, None]**2 + np.arange(n // 2 + 1)**2)
    shell = np.minimum(np.floor(r + 0.5).astype(int), 5)
    full, rf = full_of(weight, n), np.sqrt(k[:, None, None]**2 + k[:, None]**2 + k**2)
    average = np.array([full[np.minimum(np.floor(rf + 0.5), 99) == s].mean() for s in range(6)])
    own = np.where(r <= radius, weight + prior[0][shell], 0)
    falls = np.exp(-(2.5 * k / box)**2)
    falls = falls[:, None, None] * falls[:, None] * falls
    blur = lambda values: np.fft.rfftn(np.fft.irfftn(values, s=(n,) * 3, axes=(0, 1, 2)) * falls).real
    divisor = (average + prior[0])[shell]
    for step in range(3):
        around = np.maximum(1e-6, abs(blur(own / divisor)))
        divisor = np.where(own > 0, divisor * around**(1 if step == 0 else 1.5), divisor)
    if keep_power:
        left = np.clip(blur(np.where(own > 0, weight / divisor, 0)), 1e-3, 1)
        divisor = divisor * np.sqrt(left * (1 + left) / 2)
    assert relative_error(found, divisor) < 1e-10


def test_half_sets_in_single_precision_and_torch(rng):
    n = 8
    (d1, d2), (w1, w2) = half_spectra(rng, n, 2)
    exact = bracewell.half_set_moments(d1[None], w1[None], d2[None], w2[None])
    single = [a.astype("complex64" if np.iscomplexobj(a) else "float32")[None] for a in (d1, w1, d2, w2)]
    np.testing.assert_allclose(bracewell.half_set_moments(*single), exact, rtol=1e-4, atol=1e-2)
    divisor = bracewell.equalise(w1[None], (4, 4, 4))
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(a[None].copy()) for a in (d1, w1, d2, w2)]
    found = bracewell.half_set_moments(*tensors)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), exact)
    of_torch = bracewell.equalise(tensors[1], (4, 4, 4))
    np.testing.assert_array_equal(of_torch.numpy(), divisor)
    twice = tensors[0].clone()
    bracewell.symmetrise(twice, "C2")
    once = d1[None].copy()
    bracewell.symmetrise(once, "C2")
    np.testing.assert_allclose(twice.numpy(), once, rtol=1e-12, atol=1e-9)
