# SPDX-License-Identifier: MIT
"""Steps before a reconstruction and iterative solutions, against NumPy and closed forms."""

import subprocess
from pathlib import Path

import bracewell
import numpy as np
import pytest
from conftest import relative_error
from test_arrays import interpreter


def paganin(frames, a):
    """Every frame divided by 1 + a f^2, without padding."""
    fy, fx = np.meshgrid(np.fft.fftfreq(frames.shape[-2]), np.fft.fftfreq(frames.shape[-1]), indexing="ij")
    return np.fft.ifft2(np.fft.fft2(frames) / (1 + a * (fx**2 + fy**2))).real


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-10), (np.float32, 2e-5)])
def test_phases_are_retrieved_as_by_the_formula(rng, dtype, tolerance):
    transmission = rng.uniform(0.5, 1, size=(32, 3, 40))  # sizes whose transforms need no padding
    options = dict(wavelength=0.5e-10, distance=0.1, pixel_size=1e-6, delta_beta=300, padding=0)
    a = np.pi * 300 * 0.5e-10 * 0.1 / 1e-12
    expected = -np.log(paganin(transmission.transpose(1, 0, 2), a)).transpose(1, 0, 2)
    found = bracewell.retrieve_phase(transmission.astype(dtype), attenuation=False, **options)
    assert found.dtype == dtype and relative_error(found, expected) < tolerance
    found = bracewell.retrieve_phase((-np.log(transmission)).astype(dtype), **options)
    assert relative_error(found, expected) < tolerance
    for change, words in ((dict(method="bronnikov"), "method: expected paganin, generalised_paganin or weak_object, found bron"),
                          (dict(distance=-1), "distance: expected"),
                          (dict(distance=1e9, padding=None), "padding: expected a number, as the filter of these lengths")):
        with pytest.raises(ValueError, match=words):
            bracewell.retrieve_phase(transmission, **{**options, **change})


def test_too_little_memory_is_a_sentence():
    resource = pytest.importorskip("resource")
    script = f"""if True:
        import resource, numpy, bracewell
        rows = numpy.zeros((2, 3, 4))
        bracewell.retrieve_phase(rows, wavelength=1e-10, distance=0.1, pixel_size=1e-6, delta_beta=100, padding=8)
        used = int(open("/proc/self/statm").read().split()[0]) * {resource.getpagesize()}
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
        try:
            bracewell.retrieve_phase(rows, wavelength=1e-10, distance=0.1, pixel_size=1e-6, delta_beta=100, padding=1 << 14)
        except MemoryError as error:
            print(error)"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc")
    given = subprocess.run([*interpreter(), "-c", script], capture_output=True, text=True, check=True).stdout
    assert given.startswith("bracewell: expected memory for ") and "found too little" in given


def test_outliers_become_medians(rng):
    sinogram = rng.normal(scale=0.01, size=(12, 9))
    hit = sinogram.copy()
    hit[5, 4] += 3
    expected = sinogram.copy()
    expected[5, 4] = np.median(hit[4:7, 3:6])
    assert np.array_equal(bracewell.remove_outliers(hit), expected)
    assert hit[5, 4] > 2  # the input stays as it is


def test_squares_of_pixels_are_averaged(rng):
    frames = rng.normal(size=(3, 7, 9))
    expected = frames[:, :6, :8].reshape(3, 3, 2, 4, 2).mean(axis=(2, 4))
    assert relative_error(bracewell.bin_frames(frames, 2), expected) < 1e-14
    with pytest.raises(ValueError, match="bin >= 1"):
        bracewell.bin_frames(frames, 0)


def test_a_turned_detector_stands_upright():
    """A plane is its own interpolation: value r + 2 c at row r and column c."""
    angle, rows, columns = 0.03, 21, 25
    r, c = np.mgrid[:rows, :columns] - np.array([10, 12])[:, None, None]
    turned_r, turned_c = np.cos(angle) * r - np.sin(angle) * c, np.sin(angle) * r + np.cos(angle) * c
    seen = (r + 2 * c).astype(float)  # by the turned detector
    found = bracewell.turn_detector(seen[:, None, :], angle, row=10, column=12)[:, 0, :]
    assert np.abs(found - (turned_r + 2 * turned_c))[3:-3, 3:-3].max() < 1e-12


def test_half_acquisition_sees_the_whole_object():
    """A disc wider than the detector, whose axis is near its end."""
    angles = np.arange(240) * 2 * np.pi / 240
    width, centre, radius = 64, 50.0, 40.0
    s = np.arange(width) - centre
    sinogram = np.tile(2 * np.sqrt(np.maximum(radius**2 - s**2, 0)), (240, 1))
    sinogram += 1.5 * np.exp(-(s - 12 * np.cos(angles)[:, None])**2 / 18)  # something that turns
    assert abs(bracewell.find_overlap(sinogram, angles) - centre) < 0.5
    wider, axis = bracewell.weigh_half_acquisition(sinogram, centre)
    assert wider.shape == (240, 101) and axis == centre
    beam = bracewell.Tomography(angles, 101, centre=axis)
    found = beam.backproject(bracewell.filter_projections(wider, "ramp", padding="zero"))
    y, x = np.mgrid[:101, :101] - 50
    inside = (np.hypot(x, y) < 30) & (np.hypot(x - 12, y) > 12)
    assert abs(found[inside].mean() - 1) < 0.03


@pytest.mark.parametrize("method", ["all", "wavelet"])
def test_stripes_of_every_method_go(method):
    columns, angles = np.arange(96), np.arange(90) * np.pi / 90
    sinogram = np.exp(-(columns - 48 - 10 * np.cos(angles)[:, None])**2 / 200)
    striped = sinogram + 0.5 * (columns == 50)
    found = bracewell.remove_stripes(striped, method)
    assert np.linalg.norm((found - sinogram)[:, 50]) < 0.5 * np.linalg.norm((striped - sinogram)[:, 50])
    with pytest.raises(ValueError, match="method: expected offset, sorting, all or wavelet, found fft"):
        bracewell.remove_stripes(striped, "fft")


def matrix_of(beam, n, values):
    """The projections of every pixel."""
    return np.stack([beam.project(image).ravel() for image in np.eye(n * n).reshape(-1, n, n)], axis=1).reshape(values, n * n)


def test_least_squares_are_those_of_the_matrix(rng):
    n, angles = 8, np.arange(13) * np.pi / 13
    beam = bracewell.Tomography(angles, n, method="line", units="line_integrals")
    sinograms, weights = rng.normal(size=(2, 13, n)), rng.uniform(0.5, 2, size=(2, 13, n))
    matrix = matrix_of(beam, n, 13 * n)
    solver = bracewell.LeastSquaresSolver(beam)
    found = solver.solve(sinograms, iterations=200, weights=weights)
    for k in (0, 1):
        root = np.sqrt(weights[k].ravel())
        expected = np.linalg.lstsq(root[:, None] * matrix, root * sinograms[k].ravel(), rcond=None)[0]
        residual = np.sum((root * (sinograms[k].ravel() - matrix @ expected))**2)
        assert abs(solver.residuals()[k] - residual) < 1e-8 * residual
        assert relative_error(root[:, None] * matrix @ found[k].ravel()[:, None], root[:, None] * matrix @ expected[:, None]) < 1e-5
    one = solver.solve(sinograms[1], weights=weights[1], iterations=200)
    assert one.shape == (n, n) and relative_error(one, found[1]) < 1e-10
    mask = np.zeros((n, n))
    mask[2:6, 2:6] = 1
    start = rng.normal(size=(n, n))
    inside = solver.solve(sinograms[0], start, mask=mask, iterations=3)
    assert np.array_equal(inside[mask == 0], start[mask == 0]) and not np.array_equal(inside, start)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-5), (np.float32, 2e-2)])
def test_iterations_leave_out_what_is_no_data(rng, dtype, tolerance):
    n, angles = 8, np.arange(17) * np.pi / 17
    beam = bracewell.Tomography(angles, n, method="line", units="line_integrals")
    raw, flat = rng.uniform(0.2, 1, size=(17, 1, n)), np.ones((1, n))
    raw[3, 0, 4], raw[::2, 0, 6], raw[9, 0, :3] = np.nan, 0, -1
    b, valid = bracewell.normalise_projections(raw.astype(dtype), None, flat.astype(dtype), return_valid=True)
    assert valid.sum() == raw.size - 1 - 9 - 3
    good = valid.ravel() > 0
    matrix = matrix_of(beam, n, 17 * n)[good]
    expected = np.linalg.lstsq(matrix, -np.log(raw[:, 0].ravel()[good]), rcond=None)[0]
    for values in (b, np.where(valid > 0, b, dtype(np.nan))):
        found = bracewell.LeastSquaresSolver(beam).solve(values, iterations=200, weights=valid)
        for kind in (bool, np.uint8, np.float32, np.float64):
            assert np.array_equal(bracewell.LeastSquaresSolver(beam).solve(values, iterations=200, weights=valid.astype(kind)), found)
        assert relative_error(matrix @ found.ravel(), matrix @ expected) < tolerance
    with pytest.raises(TypeError, match="weights: expected"):
        bracewell.LeastSquaresSolver(beam).solve(b, weights=valid.astype(complex))
    for method in ("conjugate_gradients", "sirt", "total_variation"):
        solver = bracewell.LeastSquaresSolver(beam, method=method)
        found = [solver.solve(np.where(valid > 0, b, dtype(garbage)), weights=valid) for garbage in (0, 1e4, np.nan)]
        assert np.isfinite(found).all() and np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


@pytest.mark.parametrize("method", ["sirt", "total_variation"])
def test_other_methods_lower_the_residual_and_keep_signs(rng, method):
    n, angles = 32, np.arange(20) * np.pi / 20
    beam = bracewell.Tomography(angles, n, units="line_integrals")
    y, x = np.mgrid[:n, :n] - n // 2
    truth = (np.hypot(x, y) < 10).astype(np.float32)
    sinogram = beam.project(truth)
    found = bracewell.LeastSquaresSolver(beam, method=method).solve(
        sinogram, iterations=30, nonnegative=True, **(dict(total_variation=0.01) if method == "total_variation" else {}))
    assert found.dtype == np.float32 and found.min() >= 0
    assert relative_error(found, truth) < 0.25


@pytest.mark.parametrize("method", ["conjugate_gradients", "total_variation"])
def test_iterations_by_the_normal_operator_are_those_by_the_pair(rng, method):
    angles, n = np.arange(12) * np.pi / 12, 17
    sinograms = rng.normal(size=(2, 12, n))
    options = dict(units="line_integrals", tolerance=1e-10)
    found, expected = (bracewell.LeastSquaresSolver(Pair(angles, n, **options), method=method).solve(sinograms, iterations=6)
                       for Pair in (bracewell.FourierNormal, bracewell.Tomography))
    assert relative_error(found, expected) < 1e-7
    weighted = bracewell.LeastSquaresSolver(bracewell.FourierNormal(angles, n, **options), method=method)
    assert relative_error(weighted.solve(sinograms, iterations=6, weights=np.ones_like(sinograms)), expected) < 1e-7


def test_a_tilted_axis_is_solved_as_one_problem(rng):
    beam = bracewell.Laminography(np.arange(6), 9, 8, 0.4, depth=6, units="line_integrals")
    volume = rng.normal(size=(6, 9, 9))
    solver = bracewell.LeastSquaresSolver(beam)
    sinograms = beam.project(volume)
    found = solver.solve(sinograms, iterations=60)
    assert len(solver.residuals()) == 1 and relative_error(beam.project(found), sinograms) < 1e-2


@pytest.mark.parametrize("method", ["sirt", "conjugate_gradients"])
def test_a_denoiser_of_the_user_works_between_iterations(rng, method):
    n, angles = 32, np.arange(20) * np.pi / 20
    beam = bracewell.Tomography(angles, n, units="line_integrals")
    y, x = np.mgrid[:n, :n] - n // 2
    truth = (np.hypot(x, y) < 10) * 1.0
    sinogram = beam.project(truth) + 2 * rng.normal(size=(20, n))
    solver = bracewell.LeastSquaresSolver(beam, method=method)
    shapes = []

    def median(images):
        shapes.append(images.shape)
        rows = np.pad(images, 1, mode="edge")
        return np.clip(np.median([rows[i:i + n, j:j + n] for i in range(3) for j in range(3)], axis=0), 0, 1)

    plain = solver.solve(sinogram, iterations=23)
    found = solver.solve(sinogram, iterations=23, denoise=median, denoise_every=5)
    assert shapes == 5 * [(n, n)]
    assert relative_error(found, truth) < 0.8 * relative_error(plain, truth)
    # It decides what comes back, but where the mask is 0; in place, too.
    mask, start = (np.hypot(x, y) < 12) * 1.0, rng.normal(size=(n, n))

    def ones(images):
        images[...] = 1
        return images

    found = solver.solve(sinogram, start, iterations=3, denoise=ones, mask=mask)
    assert np.array_equal(found, np.where(mask > 0, 1, start))
    if method == "sirt":  # which has no memory of the step before
        assert relative_error(solver.solve(sinogram, iterations=23, denoise=lambda images: images), plain) < 1e-12
    with pytest.raises(ValueError, match=r"denoise: expected images of shape \[32, 32\] from it, found \[16, 32\]"):
        solver.solve(sinogram, denoise=lambda images: images[::2])
    with pytest.raises(ValueError, match="denoise: expected images of shape .* found NoneType"):
        solver.solve(sinogram, denoise=lambda images: None)
    with pytest.raises(ValueError, match="denoise: expected none with total_variation"):
        bracewell.LeastSquaresSolver(beam, method="total_variation").solve(sinogram, denoise=median)


def test_counts_of_any_byte_order_are_taken(rng):
    counts = rng.integers(1, 60000, size=(3, 4, 8)).astype(np.uint16)
    real = counts.astype(np.float32)
    beam = bracewell.Tomography(np.arange(4), 8, method="line", units="line_integrals")
    tilted = bracewell.Laminography(np.arange(4), 8, 3, 0.3, depth=3)
    solver = bracewell.LeastSquaresSolver(beam)
    for take in (lambda x: bracewell.bin_frames(x, 2), lambda x: bracewell.turn_detector(x, 0.1), tilted.backproject,
                 bracewell.remove_outliers, lambda x: beam.project(x[:, :, :4].repeat(2, axis=1).repeat(2, axis=2)),
                 lambda x: solver.solve(x, iterations=2)):
        expected = take(real)
        assert expected.dtype == np.float32
        for given in (counts, counts.astype(">u2"), real.astype(">f4")):
            assert np.array_equal(take(given), expected)


def test_wrong_arguments_of_the_solver_are_told():
    beam = bracewell.Tomography([0, 1], 8)
    with pytest.raises(ValueError, match="method: expected conjugate_gradients, sirt or total_variation, found art"):
        bracewell.LeastSquaresSolver(beam, method="art").solve(np.ones((2, 8)))
    with pytest.raises(ValueError, match="without weights of angles"):
        bracewell.LeastSquaresSolver(bracewell.Tomography([0, 1], 8, weights=[1, 1]))
    with pytest.raises(ValueError, match="expected a call of solve"):
        bracewell.LeastSquaresSolver(beam).residuals()
    with pytest.raises(ValueError, match="total_variation: expected 0 with another method"):
        bracewell.LeastSquaresSolver(beam).solve(np.ones((2, 8)), total_variation=1)
