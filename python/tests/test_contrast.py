# SPDX-License-Identifier: MIT
"""Contrast transfer functions against their formula, gradients against differences."""

import bracewell
import numpy as np
import pytest
from conftest import relative_error


def parameters(count):
    k = np.arange(count)
    return bracewell.CTFParameters(9000 + 700. * k, 8200 + 500. * k, 20 + 30. * k, 300 - 20. * k, 2.7, 0.1, 15. * k, 40, 1.5)


def formula(p, shape, pixel_size):
    height, width = shape
    y, x = np.fft.fftfreq(height, pixel_size)[:, None], np.fft.rfftfreq(width, pixel_size)
    one = [np.broadcast_to(value, np.shape(p.defocus_u))[:, None, None] for value in p]
    u, v, angle, voltage, aberration, contrast, plate, b_factor, scale = one
    volt = 1000 * voltage
    wavelength = 12.2643247 / np.sqrt(volt * (1 + 0.978466e-6 * volt))
    k2 = x**2 + y**2
    defocus = (u + v) / 2 + (u - v) / 2 * np.cos(2 * (np.arctan2(y, x) - np.radians(angle)))
    phase = np.pi * wavelength * defocus * k2 - np.pi / 2 * aberration * 1e7 * wavelength**3 * k2**2
    return scale * np.exp(-b_factor * k2 / 4) * np.sin(phase + np.arcsin(contrast) + np.radians(plate))


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-11), (np.float32, 1e-5)])
@pytest.mark.parametrize("shape", [(12, 16), (9, 13)])
def test_functions_are_their_formula(shape, dtype, tolerance):
    found = bracewell.evaluate_ctf(parameters(3), shape, 1.3, np.empty(0, dtype))
    expected = formula(parameters(3), shape, 1.3)
    if shape[0] % 2 == 0:  # the Nyquist row is +N/2 in one, -N/2 in the other
        found, expected = np.delete(found, shape[0] // 2, axis=1), np.delete(expected, shape[0] // 2, axis=1)
    assert found.dtype == dtype and relative_error(found, expected) < tolerance
    one = bracewell.evaluate_ctf(bracewell.CTFParameters(9000, 8200), shape, 1.3, np.empty(0, dtype))
    assert one.shape == (1, shape[0], shape[1] // 2 + 1)


def test_gradients_lead_from_a_loss_to_the_parameters(rng):
    size, pixel_size = 11, 1.7
    volume = np.fft.rfftn(rng.normal(size=(1, size, size, size)), axes=(1, 2, 3))
    matrices = np.linalg.qr(rng.normal(size=(1, 3, 3, 3)))[0]
    images = rng.normal(size=(1, 3, size, 6)) + 1j * rng.normal(size=(1, 3, size, 6))

    def residuals(p):
        filters = bracewell.evaluate_ctf(p, (size, size), pixel_size, images)[None]
        return bracewell.project(volume, matrices, filters=filters, shape=(size, size), width=size) - images

    start = parameters(3)
    of_filters = bracewell.filter_gradients(bracewell.project(volume, matrices, shape=(size, size), width=size), residuals(start))
    found = bracewell.ctf_gradients(start, pixel_size, of_filters[0], width=size)
    for name, value in start._asdict().items():
        step = 1e-6 * max(1, np.abs(value).max())
        one, other = (residuals(start._replace(**{name: value + sign * step})) for sign in (1, -1))
        expected = ((abs(one)**2 - abs(other)**2).sum(axis=(0, 2, 3)) / 2) / (2 * step)
        assert getattr(found, name).shape == (3,)
        assert relative_error(getattr(found, name), expected) < 1e-5, name


@pytest.mark.parametrize("shared, extents", [((), (2, 3)), (("batches",), (1, 3)), (("poses",), (2, 1)), (("batches", "poses"), (1, 1))])
def test_gradients_of_shared_filters_are_sums(rng, shared, extents):
    for box in ((6, 4), (3, 6, 4)):
        values, cotangent = rng.normal(size=(2, 2, 3, *box)) + 1j * rng.normal(size=(2, 2, 3, *box))
        expected = (values.conj() * cotangent).real
        for axis in (0, 1):
            if extents[axis] == 1:
                expected = expected.sum(axis=axis, keepdims=True)
        found = bracewell.filter_gradients(values, cotangent, shared=shared)
        assert found.shape == (*extents, *box) and relative_error(found, expected) < 1e-14
        found = bracewell.filter_gradients(values.astype(np.complex64), cotangent.astype(np.complex64), shared=shared)
        assert found.dtype == np.float32 and relative_error(found, expected) < 1e-5


def test_wrong_arguments_are_told():
    like = np.empty(0)
    with pytest.raises(ValueError, match="amplitude_contrast: expected"):
        bracewell.evaluate_ctf(bracewell.CTFParameters(1, 1, amplitude_contrast=2), (8, 8), 1, like)
    with pytest.raises(ValueError, match="pixel_size: expected"):
        bracewell.ctf_gradients(bracewell.CTFParameters(1, 1), 0, np.ones((1, 8, 5)))
    with pytest.raises(ValueError, match=r"ctfs: expected \[2\], found \[1\]"):
        bracewell.ctf_gradients(bracewell.CTFParameters(1, 1), 1, np.ones((2, 8, 5)))
    with pytest.raises(ValueError, match="shared: expected batches and poses, found all"):
        bracewell.filter_gradients(np.ones((1, 1, 4, 3), complex), np.ones((1, 1, 4, 3), complex), shared=("all",))
    with pytest.raises(ValueError, match="cotangent: expected"):
        bracewell.filter_gradients(np.ones((1, 1, 4, 3), complex), np.ones((1, 2, 4, 3), complex))
