# SPDX-License-Identifier: MIT
"""Tomography and non-uniform FFTs against direct sums and closed forms."""

import bracewell
import numpy as np
import pytest
from conftest import relative_error

ANGLES = np.arange(90) * np.pi / 90


def disc(n, x0, y0, radius):
    """An ellipse's area per pixel, by 8 x 8 points in each; its line integrals in closed form."""
    fine = (np.arange(8 * n) + 0.5) / 8 - 0.5 - n // 2
    inside = (fine[None, :] - x0)**2 + (fine[:, None] - y0)**2 < radius**2
    image = inside.reshape(n, 8, n, 8).mean(axis=(1, 3))
    s = np.arange(n) - n // 2
    centre = x0 * np.cos(ANGLES) + y0 * np.sin(ANGLES)
    distance = s[None, :] - centre[:, None]
    return image, 2 * np.sqrt(np.maximum(radius**2 - distance**2, 0))


@pytest.mark.parametrize("dtype, tolerance", [(np.complex128, 1e-9), (np.complex64, 1e-4)])
@pytest.mark.parametrize("shape", [(11,), (9, 12), (6, 7, 8)])
def test_nonuniform_transforms_are_the_direct_sums(rng, shape, dtype, tolerance):
    points = rng.uniform(-0.7, 0.7, size=(40, len(shape)))
    plan = bracewell.NonuniformFFT(points, shape, tolerance=tolerance)
    samples = (rng.normal(size=(3, 40)) + 1j * rng.normal(size=(3, 40))).astype(dtype)
    grids = np.meshgrid(*[np.arange(n) - n // 2 for n in shape], indexing="ij")
    phase = sum(np.multiply.outer(points[:, d], grids[len(shape) - 1 - d]) for d in range(len(shape)))
    waves = np.exp(2j * np.pi * phase).reshape(40, -1)
    images = plan.adjoint(samples)
    assert images.dtype == dtype
    assert relative_error(images, samples @ waves) < 2 * tolerance
    assert relative_error(plan.forward(images), images.reshape(3, -1) @ waves.conj().T) < 2 * tolerance
    one = plan.adjoint(samples[1])
    assert one.shape == shape and relative_error(one, images[1]) < 2 * tolerance
    for d in range(len(shape)):
        position = -2j * np.pi * grids[len(shape) - 1 - d].ravel()
        expected = (samples.conj() * ((images.reshape(3, -1) * position) @ waves.conj().T)).sum(axis=0).real
        assert relative_error(plan.point_gradients(images, samples)[:, d], expected) < 10 * tolerance


@pytest.mark.parametrize("dtype, tolerance", [(np.complex128, 1e-9), (np.complex64, 1e-4)])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_nonuniform_sums_are_the_direct_sums(rng, axes, dtype, tolerance):
    points, targets = rng.uniform(-3, 5, size=(40, axes)), rng.uniform(-1, 1.5, size=(30, axes))
    plan = bracewell.NonuniformSums(points, targets, tolerance=tolerance)
    values = (rng.normal(size=(3, 40)) + 1j * rng.normal(size=(3, 40))).astype(dtype)
    waves = np.exp(2j * np.pi * points @ targets.T)
    sums = plan.forward(values)
    assert sums.dtype == dtype
    assert relative_error(sums, values @ waves) < tolerance
    assert relative_error(plan.adjoint(sums), sums @ waves.conj().T) < tolerance
    one = plan.forward(values[1])
    assert one.shape == (30,) and relative_error(one, sums[1]) < tolerance
    with pytest.raises(ValueError, match="targets: expected"):
        bracewell.NonuniformSums(points, targets[:, :0]).forward(values)


@pytest.mark.parametrize("method, tolerance", [("fourier", 0.03), ("line", 0.05), ("log_polar", 0.05)])
def test_a_disc_comes_back_from_its_line_integrals(method, tolerance):
    n = 96
    image, sinogram = disc(n, 10, -7, 20)
    beam = bracewell.Tomography(ANGLES, n, method=method)
    found = beam.backproject(bracewell.filter_projections(sinogram, "ramp", padding="zero"))
    y, x = np.mgrid[:n, :n] - n // 2
    within = np.hypot(x - 10, y + 7) < 16
    away = (np.hypot(x - 10, y + 7) > 25) & (np.hypot(x, y) < n / 2 - 2)
    assert abs(found[within].mean() - 1) < tolerance
    assert np.sqrt((found[within] - 1)**2).mean() < tolerance
    assert abs(found[away]).mean() < tolerance


@pytest.mark.parametrize("method", ["fourier", "line", "log_polar"])
def test_project_is_the_transpose(rng, method):
    beam = bracewell.Tomography(ANGLES, 31, method=method)
    image, sinogram = rng.normal(size=(3, 31, 31)), rng.normal(size=(3, 90, 31))
    one, other = (beam.project(image) * sinogram).sum(), (image * beam.backproject(sinogram)).sum()
    assert abs(one - other) < 1e-10 * np.linalg.norm(image) * np.linalg.norm(sinogram)


@pytest.mark.parametrize("dtype, tolerance", [(np.complex128, 1e-9), (np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("shape", [(9, 12), (5, 6, 4)])
def test_normal_operators_are_the_direct_sums(rng, shape, dtype, tolerance):
    points, weights = rng.uniform(-0.7, 0.7, size=(30, len(shape))), rng.normal(size=30)
    grids = np.stack([g.ravel() for g in np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")][::-1])  # x first
    waves = np.exp(2j * np.pi * points @ grids)
    images = rng.normal(size=(3, *shape)) + 1j * rng.normal(size=(3, *shape))
    images = (images if dtype == np.complex128 else images.real).astype(dtype)
    plan = bracewell.ToeplitzNormal(points, shape, weights, tolerance=tolerance)
    expected = (weights * (images.reshape(3, -1) @ waves.conj().T)) @ waves
    found = plan.execute(images)
    assert found.dtype == dtype and found.shape == images.shape
    assert relative_error(found, expected if dtype == np.complex128 else expected.real) < 5 * tolerance
    one = plan.execute(images[1])
    assert one.shape == shape and relative_error(one, found[1]) < 5 * tolerance
    with pytest.raises(ValueError, match="weights: expected .* found"):
        bracewell.ToeplitzNormal(points, shape, weights[:7]).execute(images)


@pytest.mark.parametrize("width", [16, 17])
def test_a_normal_operator_of_tomography_is_the_pair(rng, width):
    options = dict(centre=width // 2 + 0.4, shifts=rng.normal(size=11), weights=1 + 0.1 * rng.normal(size=11), image=15,
                   units="line_integrals", tolerance=1e-9)
    beam = bracewell.FourierNormal(ANGLES[::9][:10].tolist() + [2.9], width, **options)
    images = rng.normal(size=(3, 15, 15))
    rows = beam.project(images)
    assert relative_error(beam.normal(images), beam.backproject(rows)) < 1e-8
    assert relative_error(beam.normal(images[1]), beam.backproject(rows[1])) < 1e-8
    plain = bracewell.Tomography(beam.angles, width, **options).project(images)
    if width % 2:
        assert relative_error(rows, plain) < 1e-12
    else:
        alternating = (plain * (-1.0)**np.arange(width)).mean(axis=-1, keepdims=True) * (-1.0)**np.arange(width)
        assert relative_error(rows, plain - alternating) < 1e-12
    with pytest.raises(ValueError, match="plan: expected FourierNormal"):
        bracewell.FourierNormal.normal(bracewell.Tomography(ANGLES, 16, image=15), images)


def test_shifts_of_views_move_their_rows():
    n, shifts = 64, 3 * np.sin(np.arange(90))
    image = np.exp(-((np.arange(n) - 40)**2 + (np.arange(n)[:, None] - 25)**2) / 18)
    middle = 8 * np.cos(ANGLES) - 7 * np.sin(ANGLES) + n // 2 + shifts
    expected = np.sqrt(18 * np.pi) * np.exp(-(np.arange(n) - middle[:, None])**2 / 18)
    for method in ("fourier", "line"):
        beam = bracewell.Tomography(ANGLES, n, method=method, units="line_integrals", shifts=shifts)
        assert relative_error(beam.project(image), expected) < 0.02


@pytest.mark.parametrize("width", [20, 21])
def test_gradients_of_views_are_those_of_differences(rng, width):
    angles, shifts = rng.uniform(0, 3, size=5), rng.normal(size=5)
    images, cotangents = rng.normal(size=(2, 18, 18)), rng.normal(size=(2, 5, width))

    def beam(turn=0, move=0, centre=0, tolerance=1e-11):
        return bracewell.ViewSlopes(angles + turn, width, image=18, shifts=shifts + move, centre=9.7 + centre,
                                    tolerance=tolerance, weights=[1, 2, 0.5, 0.5, 1])

    step = 1e-5
    of_angles, of_shifts, of_centre = ((beam(**{name: step}).project(images) - beam(**{name: -step}).project(images)) / (2 * step)
                                       for name in ("turn", "move", "centre"))
    for found, expected in zip(beam().slopes(images), (of_angles, of_shifts)):
        assert relative_error(found, expected) < 1e-6
    gradients = beam().gradients(images, cotangents)
    assert relative_error(gradients.angles, (of_angles * cotangents).sum(axis=(0, 2))) < 1e-6
    assert relative_error(gradients.shifts, (of_shifts * cotangents).sum(axis=(0, 2))) < 1e-6
    assert relative_error(gradients.centre, (of_centre * cotangents).sum()) < 1e-6
    single = beam(tolerance=1e-5).gradients(images[0].astype(np.float32), cotangents[0].astype(np.float32))
    assert single.angles.dtype == np.float64 and single.shifts.shape == (5,) and single.centre.shape == (1,)
    assert relative_error(single.angles, (of_angles * cotangents)[0].sum(axis=1)) < 1e-3
    with pytest.raises(ValueError, match="cotangents: expected .* found"):
        beam().gradients(images, cotangents[:, :4])


def test_line_integrals_are_sums_of_pixels():
    n = 64
    image, sinogram = disc(n, 4, 9, 15)
    for method in ("fourier", "line"):
        found = bracewell.Tomography(ANGLES, n, method=method, units="line_integrals").project(image.astype(np.float32))
        assert relative_error(found, sinogram) < 0.03


def area_beyond(x, angle):
    """Of a unit square seen from an angle, the area beyond the distance x: the integral of a trapezoid."""
    wide, narrow = sorted((abs(np.cos(angle)), abs(np.sin(angle))))[::-1]
    if narrow < 1e-9:
        return np.clip(0.5 - x, 0, 1)
    return (np.maximum((wide + narrow) / 2 - x, 0)**2 - np.maximum((narrow - wide) / 2 - x, 0)**2
            - np.maximum((wide - narrow) / 2 - x, 0)**2 + np.maximum(-(wide + narrow) / 2 - x, 0)**2) / (2 * wide * narrow)


def test_line_backprojection_is_its_formula(rng):
    n, centre = 15, 6.3
    sinogram = rng.normal(size=(90, n))
    y, x = np.mgrid[:n, :n] - n // 2
    expected = np.zeros((n, n))
    for p, angle in enumerate(ANGLES):
        s = x * np.cos(angle) + y * np.sin(angle) + centre
        for i in range(n):
            expected += sinogram[p, i] * (area_beyond(i - 0.5 - s, angle) - area_beyond(i + 0.5 - s, angle))
    found = bracewell.Tomography(ANGLES, n, method="line", centre=centre).backproject(sinogram)
    assert relative_error(found, expected * np.pi / 90) < 1e-10


def test_the_ramp_is_a_convolution_with_its_kernel(rng):
    """Ramachandran and Lakshminarayanan: 1/4 at 0, -1 / (pi m)^2 at odd m."""
    rows = rng.normal(size=(2, 3, 20))
    m = np.arange(-19, 20)
    kernel = np.where(m == 0, 0.25, np.where(m % 2 == 0, 0, -1 / (np.pi * np.where(m == 0, 1, m))**2))
    expected = np.array([[np.convolve(row, kernel)[19:39] for row in slice_] for slice_ in rows])
    assert relative_error(bracewell.filter_projections(rows, "ramp", padding="zero"), expected) < 1e-12


def test_the_axis_is_found(rng):
    n, angles = 128, np.arange(181) * np.pi / 180
    sinogram = np.zeros((181, n))
    for x, y, size in ((20, 5, 3), (-15, 22, 4), (4, -30, 2)):
        s = x * np.cos(angles) + y * np.sin(angles) + 66.5
        sinogram += np.exp(-(np.arange(n) - s[:, None])**2 / (2 * size**2))
    assert abs(bracewell.find_centre(sinogram.astype(np.float32), angles) - 66.5) < 0.5


@pytest.mark.parametrize("sinogram, words", [
    (np.full((181, 64), np.nan), "sinogram: expected finite values, found 11584 of 11584 that are not"),
    (np.zeros((181, 64)), "sinogram: expected values that differ, those of an object, found 0 everywhere"),
    (np.full((181, 64), 7, np.uint16), "found 7 everywhere"),
])
def test_there_is_no_axis_in_nothing(sinogram, words):
    with pytest.raises(ValueError, match=words):
        bracewell.find_centre(sinogram, np.arange(181) * np.pi / 180)
    with pytest.raises(ValueError, match=words):
        bracewell.find_overlap(sinogram, np.arange(181) * np.pi / 90)


def test_counts_of_any_byte_order_are_taken():
    flat, dark = np.full((2, 9), 60000, np.uint16), np.full((2, 9), 100, np.uint16)
    raw = np.arange(5000, 5000 + 7 * 2 * 9, dtype=np.uint16).reshape(7, 2, 9)
    found = bracewell.normalise_projections(raw, dark, flat)
    assert found.dtype == np.float32
    assert relative_error(found, -np.log((raw - 100.0) / 59900).transpose(1, 0, 2)) < 1e-5
    assert np.array_equal(bracewell.normalise_projections(raw.astype(">u2"), dark.astype(">i4"), flat.astype(">f4")), found)
    beam = bracewell.Tomography(ANGLES, 16, method="log-polar")
    rows = np.ones((1, 90, 16))
    assert np.array_equal(beam.backproject(rows.astype(">f8")), beam.backproject(rows))
    assert np.array_equal(beam.backproject(rows[0].astype(np.int32)), beam.backproject(rows[0].astype(np.float32)))
    assert np.array_equal(bracewell.filter_projections(rows.astype(">f4")), bracewell.filter_projections(rows.astype(np.float32)))


def test_minus_the_angles_have_y_up():
    """The convention of ASTRA and scikit-image: s = x cos + y sin, y = -row."""
    n = 64
    y, x = -(np.mgrid[:n, :n] - n // 2)[0], np.mgrid[:n, :n][1] - n // 2
    s = np.arange(n) - n // 2 - 12 * np.cos(ANGLES)[:, None] - 7 * np.sin(ANGLES)[:, None]
    sinogram = np.exp(-s**2 / 18) * np.sqrt(18 * np.pi)
    found = bracewell.Tomography(-np.asarray(ANGLES), n).backproject(bracewell.filter_projections(sinogram, "ramp"))
    blob = np.exp(-((x - 12)**2 + (y - 7)**2) / 18)
    assert np.linalg.norm((found - blob)[np.hypot(x, y) < 28]) < 0.05 * np.linalg.norm(blob)


def test_stripes_go_and_their_sinogram_stays():
    _, sinogram = disc(96, 5, 3, 30)
    striped = sinogram + 0.5 * (np.arange(96) == 50)
    for method in ("sorting", "offset"):
        found = bracewell.remove_stripes(striped, method)
        assert np.linalg.norm((found - sinogram)[:, 50]) < 0.5 * np.linalg.norm((striped - sinogram)[:, 50])
        assert striped[0, 50] != found[0, 50]  # the input stays as it is


def test_raw_frames_become_attenuation(rng):
    attenuation = rng.uniform(0, 2, size=(7, 2, 9))
    flat, dark = rng.uniform(5, 9, size=(2, 9)), rng.uniform(0, 1, size=(2, 9))
    raw = np.exp(-attenuation) * (flat - dark) + dark
    found = bracewell.normalise_projections(raw, dark, flat)
    assert relative_error(found, attenuation.transpose(1, 0, 2)) < 1e-12


def bridged(sinogram, valid):
    """Straight lines between the nearest valid values of every row."""
    out = sinogram.copy()
    for row, good in zip(out.reshape(-1, out.shape[-1]), valid.reshape(-1, out.shape[-1]) > 0):
        row[~good] = np.interp(np.flatnonzero(~good), np.flatnonzero(good), row[good])
    return out


def spoiled(rng, turns=1):
    """Frames of three blobs with dead columns and single values that are no data, and what is true of them."""
    n, count = 128, 181
    angles = np.arange(count) * turns * np.pi / (count - 1)
    attenuation = np.zeros((2, count, n))
    for x, y, size in ((20, 5, 6), (-15, 22, 8), (4, -30, 5)):
        s = x * np.cos(angles) + y * np.sin(angles) + 66.5
        attenuation += np.exp(-(np.arange(n) - s[:, None])**2 / (2 * size**2))
    flat, dark = rng.uniform(5, 9, size=(2, n)), rng.uniform(0.1, 1, size=(2, n))
    raw = np.ascontiguousarray(np.exp(-attenuation.transpose(1, 0, 2)) * (flat - dark) + dark)
    valid = np.ones_like(attenuation)
    valid[:, :, 40:43] = valid[:, ::2, 90] = valid[0, 20:60, 100:103] = 0
    valid[rng.uniform(size=valid.shape) < 0.01] = 0
    raw[valid.transpose(1, 0, 2) == 0] = np.where(rng.uniform(size=(valid == 0).sum()) < 0.5, np.nan, 0)  # not finite, without light
    return angles, attenuation, raw, dark, flat, valid


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_values_that_are_no_data_are_marked_and_passed_on(rng, dtype, tolerance):
    angles, attenuation, raw, dark, flat, valid = spoiled(rng)
    raw, dark, flat = (values.astype(dtype) for values in (raw, dark, flat))
    found, marks = bracewell.normalise_projections(raw, dark, flat, return_valid=True)
    assert marks.dtype == found.dtype == dtype and np.array_equal(marks, valid)
    assert np.array_equal(bracewell.normalise_projections(raw, dark, flat), found)
    assert relative_error(found, bridged(attenuation, valid)) < tolerance

    striped = np.where(valid > 0, attenuation + 0.3 * (np.arange(128) == 60), np.nan).astype(dtype)
    for method in ("sorting", "all", "wavelet", "offset"):
        clean = bracewell.remove_stripes(striped, method, valid=valid)
        assert np.array_equal(clean, bracewell.remove_stripes(np.where(valid > 0, striped, dtype(1e4)), method, valid=valid > 0))
        assert relative_error(bridged(clean, valid), clean) < 1e-5
        assert np.linalg.norm((clean - attenuation)[:, :, 60]) < 0.5 * np.linalg.norm(0.3 * np.ones((2, 181)))
        assert np.array_equal(bracewell.remove_stripes(striped[1], method, valid=valid[1]), clean[1])
    with pytest.raises(ValueError, match=r"remove_stripes: valid: expected \[2, 181, 128\], found \[181, 128\]"):
        bracewell.remove_stripes(striped, valid=valid[0])


@pytest.mark.parametrize("turns", [1, 2])
def test_values_that_are_no_data_do_not_move_the_axis(rng, turns):
    angles, attenuation, _, _, _, valid = spoiled(rng, turns)
    find = bracewell.find_centre if turns == 1 else bracewell.find_overlap
    lost = valid[0].copy()
    lost[30] = 0  # a view without light
    expected = find(bridged(attenuation[0], valid[0]), angles)
    for garbage in (np.nan, 1e4):
        assert abs(find(np.where(valid[0] > 0, attenuation[0], garbage), angles, valid=valid[0]) - expected) < 1e-6
        assert abs(find(np.where(lost > 0, attenuation[0], garbage).astype(np.float32), angles, valid=lost > 0) - 66.5) < 0.3
    with pytest.raises(ValueError, match="expected finite values"):
        find(np.where(valid[0] > 0, attenuation[0], np.nan), angles)
    with pytest.raises(ValueError, match="valid: expected some values above 0, found none"):
        find(attenuation[0], angles, valid=np.zeros_like(valid[0]))
    with pytest.raises(ValueError, match="valid: expected .* found"):
        find(attenuation[0], angles, valid=valid)


def test_even_angles_weigh_the_same():
    assert np.allclose(bracewell.angular_density_weights(ANGLES), 1)
    assert np.allclose(bracewell.angular_density_weights([0, 0, np.pi / 2]), [0.75, 0.75, 1.5])


@pytest.mark.parametrize("change, words", [
    (dict(method="art"), "method: expected fourier, line or log_polar, found art"),
    (dict(units="pixels"), "units: expected transpose or line_integrals, found pixels"),
    (dict(centre=float("inf")), "centre: expected .* found"),
])
def test_wrong_options_are_told_in_one_sentence(change, words):
    with pytest.raises(ValueError, match=words):
        bracewell.Tomography(ANGLES, 16, **change).backproject(np.ones((1, 90, 16)))


def test_a_sinogram_of_another_width_is_told():
    with pytest.raises(ValueError, match="sinograms: expected .* found"):
        bracewell.Tomography(ANGLES, 16).backproject(np.ones((1, 90, 17)))


@pytest.mark.parametrize("method, tolerance", [("fourier", 1e-3), ("line", 0.02)])
def test_a_ball_about_a_tilted_axis_has_its_line_integrals(method, tolerance):
    angles, tilt, sigma = np.arange(7) * 2 * np.pi / 7, 0.5, 2.5
    x, y, z = 4.0, -3.0, 1.5
    beam = bracewell.Laminography(angles, 31, 26, tilt, method=method, image=28, depth=20, centre=14.5, row_centre=12.25,
                                  units="line_integrals")
    slices, lines, columns = (np.arange(n) - n // 2 for n in (20, 28, 28))
    ball = np.exp(-((slices[:, None, None] - z)**2 + (lines[:, None] - y)**2 + (columns - x)**2) / (2 * sigma**2))
    u = x * np.cos(angles) + y * np.sin(angles) + 14.5
    v = z * np.cos(tilt) + (y * np.cos(angles) - x * np.sin(angles)) * np.sin(tilt) + 12.25
    squared = (np.arange(26)[:, None, None] - v[:, None])**2 + (np.arange(31) - u[:, None])**2
    expected = np.sqrt(2 * np.pi) * sigma * np.exp(-squared / (2 * sigma**2))
    found = beam.project(ball)
    assert found.shape == (26, 7, 31) and relative_error(found, expected) < tolerance
    assert beam.project(ball.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("method", ["fourier", "line"])
def test_laminography_is_a_transposed_pair(rng, method):
    beam = bracewell.Laminography(np.arange(5), 9, 8, -0.7, method=method, depth=6, weights=[1, 2, 0.5, 0.5, 1])
    volume, sinograms = rng.normal(size=(6, 9, 9)), rng.normal(size=(8, 5, 9))
    one, other = (beam.project(volume) * sinograms).sum(), (volume * beam.backproject(sinograms)).sum()
    assert abs(one - other) < 1e-10 * np.linalg.norm(volume) * np.linalg.norm(sinograms)


def test_wrong_arguments_of_laminography_are_told():
    for options, words in ((dict(tilt=2), "tilt: expected"), (dict(method="log_polar"), "method: expected fourier or line"),
                           (dict(units="pixels"), "units: expected transpose or line_integrals")):
        with pytest.raises(ValueError, match=words):
            bracewell.Laminography(**{**dict(angles=[0, 1], width=8, rows=6, tilt=0.1), **options}).project(np.ones((6, 8, 8)))
    with pytest.raises(ValueError, match="sinograms: expected .* found"):
        bracewell.Laminography([0, 1], 8, 6, 0.1).backproject(np.ones((6, 3, 8)))


def test_points_changed_in_place_do_not_reach_a_plan(rng):
    points, samples = rng.uniform(-0.5, 0.5, (50, 2)), rng.normal(size=50) + 1j * rng.normal(size=50)
    transform, original = bracewell.NonuniformFFT(points, (8, 8), tolerance=1e-9), points.copy()
    points += 0.1
    pixels = np.arange(8) - 4
    waves = [np.exp(2j * np.pi * original[:, axis, None] * pixels) for axis in (1, 0)]
    expected = np.einsum("j,jy,jx->yx", samples, *waves)
    for found in (transform.adjoint(samples), *transform.adjoint(np.stack([samples, samples]))):
        assert np.linalg.norm(found - expected) < 1e-8 * np.linalg.norm(expected)
