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


def test_steps_go_along_the_gradients_by_adam(rng):
    _, probe, patterns = example(rng, modes=2)
    amplitude, phase = rng.uniform(0.5, 1, size=SIZE), rng.normal(size=SIZE)
    positions = WHOLE + 0.25
    loss = bracewell.PtychographyLoss(patterns, positions, SIZE, M, modes=2)
    values = [amplitude.copy(), phase.copy(), probe.copy()]
    adam = bracewell.Adam(values, [0.02, 0.02, 0.003])
    losses = []
    for _ in range(4):
        found = loss.evaluate(values[0] * np.exp(1j * values[1]), values[2])
        losses.append(found.loss[0])
        turned = found.object * np.exp(-1j * values[1])
        adam.step([turned.real.copy(), values[0] * turned.imag, found.probe])
    solver = bracewell.PtychographySolver(loss, probe, amplitude, phase, object_rate=0.02, probe_rate=0.003)
    for _ in range(4):
        solver.step()
    for found, expected in zip((solver.amplitude, solver.phase, solver.probe, solver.losses()), (*values, losses)):
        assert relative_error(found, expected) < 1e-10
    assert solver.displacements is None and solver.memory_bytes > 0
    with pytest.raises(RuntimeError, match="took it over"):
        loss.evaluate(values[0] + 0j, probe)


def test_a_step_of_one_pattern_is_that_of_epie(rng):
    object_, probe, patterns = example(rng, n=M)
    probe, (row, column) = probe[0], (6, 7)
    loss = bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M, scale="none")
    solver = bracewell.PtychographySolver(loss, probe, abs(object_), np.angle(object_), steps="projections", object_rate=0.7,
                                          probe_rate=0.6)
    solver.step(np.array([2], np.int32))
    window = object_[row:row + M, column:column + M]
    spectrum = np.fft.fft2(window * probe)
    change = np.fft.ifft2(np.sqrt(patterns[2]) * np.exp(1j * np.angle(spectrum))) - window * probe
    expected = object_.copy()
    expected[row:row + M, column:column + M] += 0.7 * probe.conj() * change / abs(probe).max()**2
    assert relative_error(solver.amplitude * np.exp(1j * solver.phase), expected) < 1e-10
    assert relative_error(solver.probe[0], probe + 0.6 * window.conj() * change / abs(window).max()**2) < 1e-10


def test_positions_move_back_where_they_belong(rng):
    y, x = np.mgrid[:40, :40]
    object_ = np.exp(1j * rng.normal(size=(40, 40)).cumsum(axis=0).cumsum(axis=1) / 20).astype(np.complex64)
    probe = np.exp(-((y[:16, :16] - 8)**2 + (x[:16, :16] - 8)**2) / 18).astype(np.complex64)
    whole = np.array([(r, c) for r in range(1, 23, 4) for c in range(1, 23, 4)], float)
    patterns = np.stack([abs(np.fft.fft2(object_[int(r):int(r) + 16, int(c):int(c) + 16] * probe))**2 for r, c in whole])
    wrong = whole + rng.uniform(-0.5, 0.5, size=whole.shape)
    loss = bracewell.PtychographyLoss(patterns.astype(np.float32), wrong, (40, 40), 16, refine_positions=True)
    solver = bracewell.PtychographySolver(loss, probe, abs(object_), np.angle(object_), object_rate=0, probe_rate=0,
                                          position_rate=0.02)
    for _ in range(60):
        solver.step()
    common = np.column_stack([np.ones(len(whole)), whole])
    off = [error - common @ np.linalg.lstsq(common, error, rcond=None)[0] for error in (wrong - whole, wrong + solver.displacements - whole)]
    assert np.linalg.norm(off[1]) < 0.3 * np.linalg.norm(off[0])
    assert solver.losses()[-1] < 0.3 * solver.losses()[0]


def scan_of_blobs(rng, m=32, side=7, step=5):
    """Counts of a smooth object under a defocused probe, the probe, whole positions and the object."""
    size = (side - 1) * step + m
    k = np.fft.fftfreq(size)
    blur = np.exp(-60 * (k[:, None]**2 + k**2))
    smooth = np.fft.ifft2(np.fft.fft2(rng.normal(size=(2, size, size))) * blur).real
    object_ = np.exp(0.15j * smooth[0] / smooth[0].std()) * np.exp(0.05 * smooth[1] / smooth[1].std())
    f = np.fft.fftfreq(m, 1 / m)
    radius = np.hypot(f[:, None], f)
    lens = lambda defocus: np.fft.fftshift(np.fft.ifft2((radius < 6) * np.exp(1j * np.pi * defocus * radius**2 / m)))
    positions = np.stack(np.meshgrid(range(side), range(side), indexing="ij"), -1).reshape(-1, 2) * float(step)
    positions += np.round(rng.uniform(-1.5, 1.5, positions.shape))
    positions -= positions.min(0)
    size = int(positions.max()) + m
    object_ = np.pad(object_, ((0, 8), (0, 8)), mode="wrap")[:size, :size]
    patterns = np.array([abs(np.fft.fft2(object_[int(r):int(r) + m, int(c):int(c) + m] * lens(1.3)))**2 for r, c in positions])
    return rng.poisson(patterns * 1e5 / patterns[0].sum()), lens(1.5), positions, object_


def test_the_schedule_reaches_counting_noise(rng):
    counts, probe, positions, object_ = scan_of_blobs(rng)
    good = np.ones(counts.shape[1:], bool)
    good[3, 4:6] = False
    loss = bracewell.PtychographyLoss(counts.astype(np.uint16), positions, object_.shape, 32, scale="none", weights=good)
    schedule = bracewell.PtychographySchedule.of(loss.count)
    assert (schedule.passes, schedule.batches, schedule.projection_passes) == (60, 3, 10)
    assert len(schedule.rate_factors) == 60 and schedule.rate_factors[0] == 1 and schedule.rate_factors[-1] < 0.05
    solver = bracewell.PtychographySolver(loss, probe.astype(np.complex64), schedule=schedule)
    losses = solver.run()
    # A count of a bright pixel is off by a quarter, of its root; of dark ones by less.
    mean = counts.mean(0)
    assert len(losses) == 60 and losses[-1] < 0.25 and losses[-1] < 0.1 * losses[0]
    assert mean.max() > 30


def lens_in_numpy(values, m, n, wavelength, pixel, angle, unit):
    """The probe of AberratedProbe by its equations."""
    k = np.fft.fftfreq(n, pixel)
    row, column = np.meshgrid(k, k, indexing="ij")
    k, theta, k_max = np.hypot(row, column), np.arctan2(column, row), angle / wavelength
    chi = np.pi * wavelength * k**2 * (values[0] + values[2] * np.cos(2 * (theta - values[3]))) + np.pi / 2 * wavelength**3 * values[1] * unit * k**4
    wave = np.fft.ifft2(np.exp(1j * chi) / (1 + np.exp(-(k_max - k) / (k_max * (abs(values[4]) + 0.01)))))
    wave = np.fft.fftshift(wave / np.linalg.norm(wave))
    first = n // 2 - m // 2
    return wave[first:first + m, first:first + m]


@pytest.mark.parametrize("m, n", [(12, 20), (13, 21), (16, 16)])
def test_a_lens_makes_a_probe_with_gradients(rng, m, n):
    optics = dict(wavelength=0.02, pixel_size=0.2, convergence_angle=0.025, cs_to_length=1e3)
    lens = bracewell.AberratedProbe(m, n, **optics)
    values = np.array([40.0, 0.02, 15.0, 0.4, 0.07])
    probe = lens.evaluate(values)
    make = lambda at: lens_in_numpy(at, m, n, 0.02, 0.2, 0.025, 1e3)
    assert probe.dtype == np.complex128 and relative_error(probe, make(values)) < 1e-12
    assert relative_error(lens.evaluate(values.astype(np.float32)), make(values)) < 1e-4
    direction = rng.normal(size=(m, m)) + 1j * rng.normal(size=(m, m))
    gradient = lens.gradients(values, direction)
    for c, step in enumerate((1e-4, 1e-6, 1e-4, 1e-5, 1e-6)):
        ends = [np.vdot(direction, make(values + sign * step * np.eye(5)[c])).real for sign in (1, -1)]
        assert abs(gradient[c] - (ends[0] - ends[1]) / (2 * step)) < 1e-6 * abs(gradient[c]) + 1e-8
    assert relative_error(lens.gradients(values, direction[None]), gradient) < 1e-15
    assert "convergence_angle=0.025" in repr(lens)
    with pytest.raises(ValueError, match="parameters"):
        lens.evaluate(values[:4])
    with pytest.raises(ValueError, match="optics.wavelength"):
        bracewell.AberratedProbe(m, n, **{**optics, "wavelength": 0}).evaluate(values)


def test_few_counts_are_compared_by_poisson(rng):
    counts, probe, positions, object_ = scan_of_blobs(rng)
    few = rng.poisson(counts * (100 / counts[0].sum()))
    light = np.zeros(object_.shape)
    for row, column in positions.astype(int):
        light[row:row + 32, column:column + 32] += abs(probe)**2
    lit = light > 0.1 * light.max()

    def found(loss):
        solver = bracewell.PtychographySolver(loss, probe.astype(np.complex64), schedule=bracewell.PtychographySchedule.of(loss.count))
        solver.run()
        own, true = (solver.amplitude * np.exp(1j * solver.phase))[lit], object_[lit]
        return np.linalg.norm(own * np.vdot(own, true) / np.vdot(own, own) - true) / np.linalg.norm(true)

    make = lambda patterns, **more: bracewell.PtychographyLoss(patterns, positions, object_.shape, 32, **{"scale": "none", **more})
    chosen = make(few.astype(np.uint16))
    assert chosen.loss == "poisson"
    assert found(chosen) < 0.9 * found(make(few.astype(np.uint16), loss="amplitude"))
    assert make(counts.astype(np.uint16)).loss == "amplitude"
    assert make(few.astype(np.float32) / 7).loss == "amplitude"  # no counts
    assert make(few.astype(np.uint16), scale="pattern").loss == "amplitude"


def test_what_is_known_of_the_object_and_the_probe_holds(rng):
    object_, probe, patterns = example(rng)
    make = lambda **more: bracewell.PtychographySolver(bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M), probe,
                                                       **{"object_rate": 0.2, "probe_rate": 0.1, **more})
    support = np.zeros(SIZE, bool)
    support[3:9, 4:11] = True
    for beyond in (1, 0):
        solver = make(object_support=support, beyond_support=beyond, amplitude_limits=(0, 1.05), probe_support=2.5)
        for _ in range(3):
            solver.step()
        assert (solver.amplitude[~support] == beyond).all() and (solver.phase[~support] == 0).all()
        assert (solver.phase[support] != 0).all() and solver.amplitude.max() <= 1.05
        y, x = np.mgrid[:M, :M] - M // 2
        assert ((solver.probe[0] == 0) == (np.hypot(y, x) > 2.5)).all()
    rough, smooth = make(), make(total_variation=0.5)
    for solver in (rough, smooth):
        solver.step()
    variation = lambda values: abs(np.diff(values, axis=0)).sum() + abs(np.diff(values, axis=1)).sum()
    assert variation(smooth.phase) < 0.7 * variation(rough.phase)
    for options, words in (({"amplitude_limits": (1, 0)}, "amplitude_limits: expected two numbers"),
                           ({"amplitude_limits": (1,)}, "amplitude_limits: expected two numbers, found 1"),
                           ({"object_support": support.T}, "support: expected"),
                           ({"total_variation": -1}, "total_variation: expected"),
                           ({"position_moves": "some"}, "position_moves: expected single, affine or both")):
        with pytest.raises(ValueError, match=words):
            make(**options)


def test_a_scale_of_the_scan_is_found_behind_a_known_probe(rng):
    y, x = np.mgrid[:44, :44]
    object_ = np.exp(1j * np.cos(0.5 * y) * np.sin(0.43 * x))
    k = np.fft.fftfreq(16)
    probe = np.exp(-((y[:16, :16] - 8)**2 + (x[:16, :16] - 8)**2) * (1 / 18 - 0.06j))
    written = np.array([(r, c) for r in range(3, 25, 5) for c in range(3, 25, 5)], float)
    true = written + (written - written.mean(0)) @ np.array([[0.025, 0.01], [-0.02, -0.03]])
    patterns = []
    for place in true:
        row, column = np.floor(place + 0.5).astype(int)
        f = place - (row, column)
        moved = np.fft.ifft2(np.fft.fft2(probe) * np.exp(-2j * np.pi * (k[:, None] * f[0] + k * f[1])))
        patterns.append(abs(np.fft.fft2(object_[row:row + 16, column:column + 16] * moved))**2)
    loss = bracewell.PtychographyLoss(np.array(patterns), written, object_.shape, 16, scale="none", refine_positions=True)
    solver = bracewell.PtychographySolver(loss, probe, abs(object_), np.angle(object_), object_rate=0, probe_rate=0,
                                          position_rate=0.05, position_moves="affine")
    for step in range(150):
        solver.set_rate_factor(min(1, 2 - step / 75))
        solver.step()
    assert abs(true - written).max() > 0.4
    assert abs(written + solver.displacements - true).max() < 0.03


def test_the_beam_moves_between_the_slices_of_a_tilted_specimen(rng):
    slices = np.exp(1j * rng.normal(size=(2, *SIZE)))
    probe = rng.normal(size=(M, M)) + 1j * rng.normal(size=(M, M))
    patterns = []
    for row, column in WHOLE.astype(int):
        one, two = slices[:, row:row + M, column:column + M]
        patterns.append(abs(np.fft.fft2(two * np.roll(one * probe, (2, -1), (0, 1))))**2)  # no way but a move
    make = lambda **more: bracewell.PtychographyLoss(np.array(patterns), WHOLE, SIZE, M, scale="none",
                                                     slice_fresnel_numbers=[1e15], **more)
    assert make(slice_shifts=[(2, -1)]).evaluate(slices, probe, wanted=()).loss[0] < 1e-18
    assert make().evaluate(slices, probe, wanted=()).loss[0] > 0.1
    with pytest.raises(ValueError, match="slice_shifts: expected none or 1 pairs"):
        make(slice_shifts=[(2, -1), (0, 0)])
    loss, at, step = make(refine_slice_shifts=True), np.array([[0.4, 0.3]]), 1e-5
    assert loss.evaluate(slices, probe, slice_shifts=np.array([[2.0, -1]]), wanted=()).loss[0] < 1e-18
    found = loss.evaluate(slices, probe, slice_shifts=at, wanted=("slice_shifts",)).slice_shifts
    for axis in (0, 1):
        up, down = (loss.evaluate(slices, probe, slice_shifts=at + sign * step * np.eye(2)[axis], wanted=()).loss[0]
                    for sign in (1, -1))
        assert abs((up - down) / (2 * step) / found[0, axis] - 1) < 1e-6


def test_patterns_may_keep_their_counts_and_the_reduced_grid_is_exact(rng):
    n = 24  # reduced to 16
    object_, probe, patterns = example(rng, n)
    patterns *= np.arange(1, len(WHOLE) + 1)[:, None, None]  # bright ones weigh more
    make = lambda **more: bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M, loss="least_squares", **more)
    model = np.array([abs(np.fft.fft2(object_[row:row + M, column:column + M] * probe[0], (n, n)))**2
                      for row, column in WHOLE.astype(int)])
    model *= (patterns.mean((1, 2)) / model.mean((1, 2)))[:, None, None]
    expected = ((model - patterns)**2).mean()
    full, reduced = (make(counts=0, reduced_grid=small).evaluate(object_, probe[0]) for small in (False, True))
    for found in (full, reduced):
        assert abs(found.loss[0] / expected - 1) < 1e-11
        assert relative_error(found.object, full.object) < 1e-11 and relative_error(found.probe, full.probe) < 1e-11
    with pytest.raises(ValueError, match="options.reduced_grid: expected least squares"):
        make(scale="none", reduced_grid=True)


def test_object_and_probe_are_changed_between_steps(rng):
    object_, probe, patterns = example(rng)
    solver = bracewell.PtychographySolver(bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M), probe, object_rate=0)
    solver.amplitude, solver.phase, solver.probe = abs(object_), np.angle(object_), 2 * probe
    assert relative_error(solver.amplitude * np.exp(1j * solver.phase), object_) < 1e-12
    assert relative_error(solver.probe, 2 * np.reshape(probe, solver.probe.shape)) < 1e-12
    solver.set_rate_factor(0)
    solver.step()
    assert relative_error(solver.probe, 2 * np.reshape(probe, solver.probe.shape)) < 1e-12
    with pytest.raises(ValueError, match="schedule: expected one"):
        solver.run()
    with pytest.raises(ValueError, match="patterns: expected at least 1, found 0"):
        bracewell.PtychographySchedule.of(0)


def test_slices_relaxation_factors_and_background_are_their_formula_and_are_found(rng):
    size, m, slices, modes = (22, 23), 12, 2, 1
    positions = np.array([(i, j) for i in range(0, 11, 2) for j in range(0, 12, 2)])
    count, fresnel = len(positions), 6.0
    k = np.fft.fftfreq(m, 1 / m)
    free = np.exp(-1j * np.pi * (k[:, None]**2 + k**2) / fresnel)
    y = np.arange(m) - m / 2
    probe = 2 * np.exp(-(y[:, None]**2 + y**2) / 14 + 0.2j * (y[:, None]**2 + 0.8 * y**2))[None]
    object_ = np.exp(0.4j * rng.normal(size=(slices, *size)))
    relaxation = probe * (y / m)[None, None, :]
    coefficients = 0.6 * rng.normal(size=(count, modes)) + 0j
    factors = rng.uniform(0.8, 1.25, size=count)
    background = rng.uniform(2, 4, size=(m, m))

    def pattern(j):
        (r, c), wave = positions[j], probe[0] + np.tensordot(coefficients[j], relaxation, 1)
        wave = np.fft.ifft2(free * np.fft.fft2(wave * object_[0, r:r + m, c:c + m])) * object_[1, r:r + m, c:c + m]
        return factors[j] * abs(np.fft.fft2(wave))**2 + background

    patterns = np.array([pattern(j) for j in range(count)])
    given = dict(factors=factors, background=background, coefficients=coefficients, relaxation=relaxation)

    def make():
        return bracewell.PtychographyLoss(patterns, positions, size, m, scale="none", slice_fresnel_numbers=[fresnel], relaxation=modes,
                                          pattern_factors=True, detector_background=True)

    found = make().evaluate(object_, probe, wanted=("object", *given), **given)
    assert found.loss[0] < 1e-20 * patterns.mean() and found.object.shape == object_.shape and found.probe is None
    assert found.coefficients.shape == (count, modes) and found.background.shape == (m, m)
    off = dict(given, factors=1.1 * factors)
    expected = ((np.sqrt(1.1 * (patterns - background) + background) - np.sqrt(patterns))**2).mean()
    assert abs(make().evaluate(object_, probe, wanted=(), **off).loss[0] - expected) < 1e-10 * expected
    with pytest.raises(ValueError, match="factors: expected"):
        make().evaluate(object_, probe, wanted=())
    with pytest.raises(ValueError, match="wanted: expected some of object, probe"):
        make().evaluate(object_, probe, wanted=("objects",), **given)

    solver = bracewell.PtychographySolver(make(), probe, object_rate=0.03, probe_rate=0, relaxation_rate=0.03, background_rate=0.03)
    assert solver.amplitude.shape == (slices, *size) and np.allclose(solver.factors, 1) and abs(solver.relaxation).max() > 0
    for step in range(300):
        solver.set_rate_factor(min(1, 2 - step / 150))
        solver.step()
    losses = solver.losses()
    assert losses[-1] < 0.02 * losses[0]
    # Behind a known object and known probes, which could take a part of them, both are found.
    known = bracewell.PtychographySolver(make(), probe, abs(object_), np.angle(object_), object_rate=0, probe_rate=0, coefficient_rate=0,
                                         relaxation_rate=0, background_rate=0.03)
    known.coefficients, known.relaxation, known.background = coefficients, relaxation, np.ones((m, m))
    for step in range(300):
        known.set_rate_factor(min(1, 2 - step / 150))
        known.step()
    assert relative_error(known.background, background) < 0.02 and relative_error(known.factors, factors) < 0.01
    # A thin model of one probe stays far from these patterns.
    thin = bracewell.PtychographySolver(bracewell.PtychographyLoss(patterns, positions, size, m, scale="none"), probe, object_rate=0.03,
                                        probe_rate=0)
    for _ in range(300):
        thin.step()
    assert thin.losses()[-1] > 4 * losses[-1] and thin.factors is None and thin.background is None and thin.relaxation is None
    solver.phase = 0 * solver.phase + 0.5
    solver.background, solver.coefficients, solver.factors = background, coefficients, factors
    solver.relaxation = relaxation
    assert np.allclose(solver.phase, 0.5) and np.allclose(solver.background, background)
    assert np.allclose(solver.coefficients, coefficients) and np.allclose(solver.factors, factors)
    with pytest.raises(ValueError, match="background: expected values >= 0"):
        solver.background = -background


def test_wrong_arguments_of_the_solver_are_told(rng):
    _, probe, patterns = example(rng)
    with pytest.raises(ValueError, match="steps: expected adam, projections or least_squares, found newton"):
        bracewell.PtychographySolver(bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M), probe, steps="newton")
    with pytest.raises(ValueError, match="options.steps: expected"):
        bracewell.PtychographySolver(bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M), probe, steps="projections")
    with pytest.raises(ValueError, match="amplitude: expected the shape"):
        bracewell.PtychographySolver(bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M), probe, np.ones((3, 3)))
    with pytest.raises(TypeError, match="probe: expected float64"):
        bracewell.PtychographySolver(bracewell.PtychographyLoss(patterns, WHOLE, SIZE, M), probe.astype(np.complex64))


@pytest.mark.parametrize("subset, found", [([4], "found 4"), ([-1], "found -1"), ([0, 2, 2], "found 2 again"), ([2**31 - 1], "found 21")])
def test_subsets_out_of_range_are_refused(rng, subset, found):
    loss = bracewell.PtychographyLoss(rng.random((4, 10, 10)), WHOLE, SIZE, M)
    probe = np.ones((M, M), complex)
    subset = np.array(subset, np.int32)
    with pytest.raises(ValueError, match=f"PtychographyLoss.evaluate: subset: .*{found}"):
        loss.evaluate(np.ones(SIZE, complex), probe, subset=subset)
    solver = bracewell.PtychographySolver(loss, probe)
    with pytest.raises(ValueError, match=f"PtychographySolver.step: subset: .*{found}"):
        solver.step(subset)
