# SPDX-License-Identifier: MIT
"""All operators of projection against the NumPy reference's golden values, in both precisions."""

import bracewell
import numpy as np
import pytest
from conftest import relative_error

KERNELS = {"linear": "linear", "catmull_rom": "catmull_rom", "bspline3": "cubic_bspline"}


@pytest.mark.parametrize("real, tolerance", [(np.float64, 1e-11), (np.float32, 2e-5)])
def test_operators_have_the_values_of_the_reference(golden, real, tolerance):
    data = golden("projectors/projectors_A")
    assert len(data.cases) == 36
    for case in data.cases:
        complex_ = np.result_type(real, np.complex64)
        value = {name: data.arrays[key] for name, key in case["inputs"].items()}
        value = {name: np.ascontiguousarray(a, complex_ if np.iscomplexobj(a) else real)[None] for name, a in value.items()}
        expected = {name: data.arrays[key] for name, key in case["outputs"].items()}
        box, volume = tuple(case["box"]), tuple(case["reconstruction_box"])
        options = dict(interpolation=KERNELS[case["kernel"]], oversampling=case["oversampling"], radius=case["cutoff"])
        if case["cutoff"] is None:
            options["radius"] = min(min(box) / 2, min(volume) / (2 * case["oversampling"]))

        def check(found, name):
            assert found.dtype.itemsize == np.dtype(complex_ if np.iscomplexobj(found) else real).itemsize
            assert relative_error(found[0], expected[name]) < tolerance, (case["name"], name)

        poses = (value["matrices"], value["shifts"])
        check(bracewell.project(value["reconstruction"], *poses, shape=box, width=volume[-1], **options), "project")
        prepared_options = {name: option for name, option in options.items() if name != "interpolation"}
        prepared = bracewell.PreparedReference(value["reconstruction"], width=volume[-1],
                                               interpolation=options["interpolation"])
        check(prepared.project(*poses, shape=box, **prepared_options), "project")
        gradients = prepared.project_gradients(value["matrices"], value["cot_projections"], value["shifts"], shape=box,
                                               wanted=("matrices", "shifts"), **prepared_options)
        for name in ("matrices", "shifts"):
            check(getattr(gradients, name), f"grad_{name}")
        for skip, suffix in ((False, ""), (True, "_skip_redundant")):
            gradients = bracewell.project_gradients(
                value["reconstruction"], value["matrices"], value["cot_projections"], value["shifts"], shape=box,
                width=volume[-1], wanted=("reconstruction", "matrices", "shifts"), skip_redundant=skip, **options)
            for name in gradients._fields:
                check(getattr(gradients, name), f"grad_{name}{suffix}")
        for weights in ("absolute", "signed"):
            sums = bracewell.backproject(value["projections"], *poses, weights=value["weights"], shape=volume, width=box[-1],
                                         kernel_weights=weights, **options)
            check(sums[0], "data")
            check(sums[1], f"weight_{weights}")
            gradients = bracewell.backproject_gradients(
                value["projections"], value["matrices"], value["cot_data"], value["cot_weight"], value["shifts"],
                weights=value["weights"], wanted=("projections", "weights", "matrices", "shifts"), shape=volume, width=box[-1],
                kernel_weights=weights, **options)
            check(gradients.projections, "bp_grad_projections")
            check(gradients.shifts, "bp_grad_shifts")
            check(gradients.weights, f"bp_grad_weights_{weights}")
            check(gradients.matrices, f"bp_grad_matrices_{weights}")


def test_gradients_that_are_not_wanted_are_not_computed(rng):
    volume = np.fft.rfftn(rng.normal(size=(1, 8, 8, 8)), axes=(1, 2, 3))
    matrices = np.linalg.qr(rng.normal(size=(1, 2, 3, 3)))[0]
    cotangent = rng.normal(size=(1, 2, 8, 5)) + 0j
    found = bracewell.project_gradients(volume, matrices, cotangent, wanted=("matrices",))
    assert found.reconstruction is None and found.shifts is None and found.matrices.shape == matrices.shape


def test_filters_multiply_samples_and_shared_axes_broadcast(rng):
    volume = np.fft.rfftn(rng.normal(size=(2, 8, 8, 8)), axes=(1, 2, 3))
    matrices = np.linalg.qr(rng.normal(size=(1, 3, 3, 3)))[0]
    filters = rng.normal(size=(1, 1, 8, 5))
    plain = bracewell.project(volume, matrices)
    assert plain.shape == (2, 3, 8, 5)
    assert np.allclose(bracewell.project(volume, matrices, filters=filters), plain * filters, rtol=1e-13)


def test_an_ewald_sphere_bends_the_slice():
    volume = np.zeros((1, 8, 8, 5), np.complex128)
    volume[0, 1, 0, 2] = 5  # (x, y, z) = (2, 0, 1): z = (2^2 + 0^2) / (2 * 2)
    found = bracewell.project(volume, np.eye(3)[None, None], ewald_radius=2)
    assert found[0, 0, 0, 2] == 5


def test_backproject_adds_to_the_volumes_that_it_is_given(rng):
    images = rng.normal(size=(1, 2, 8, 5)) + 1j * rng.normal(size=(1, 2, 8, 5))
    matrices = np.linalg.qr(rng.normal(size=(1, 2, 3, 3)))[0]
    data, weight = bracewell.backproject(images, matrices)
    assert weight is None and data.shape == (1, 8, 8, 5)
    twice, _ = bracewell.backproject(images, matrices, data=data.copy())
    assert np.allclose(twice, 2 * data, rtol=1e-12, atol=1e-12)


def scoring_problem(rng, d, real=np.float64):
    """A prepared reference, images of 7 x 9 with filters and weights, poses, shifts, and their scores by definition."""
    complex_ = np.result_type(real, np.complex64)
    reconstruction = np.fft.rfftn(rng.normal(size=(1, *[10] * d)), axes=range(1, d + 1)).astype(complex_)
    matrices = np.linalg.qr(rng.normal(size=(6, d, d)))[0].astype(real)
    images = (rng.normal(size=(3, 7, 5)) + 1j * rng.normal(size=(3, 7, 5))).astype(complex_) * 20
    filters, weights = rng.normal(size=(3, 7, 5)).astype(real), rng.random((1, 7, 5)).astype(real)
    shifts = rng.normal(size=(4, 2)).astype(real)
    return reconstruction, matrices, images, filters, weights, shifts


@pytest.mark.parametrize("score", ["squared_difference", "correlation"])
@pytest.mark.parametrize("d, real, half, tolerance", [(3, np.float64, False, 1e-12), (2, np.float32, False, 1e-5),
                                                      (3, np.float32, True, 2e-3)])
def test_scores_are_sums_over_projections(rng, score, d, real, half, tolerance):
    reconstruction, matrices, images, filters, weights, shifts = scoring_problem(rng, d, real)
    options = dict(oversampling=10 / 8, radius=3.2)
    scoring = bracewell.PoseScoring(images, shifts, filters=filters, weights=weights, width=9, score=score, best=2, **options)
    reference = bracewell.PreparedReference(reconstruction, interpolation="linear", half=half)
    found = scoring.score(reference, matrices, wanted=("all", "best"))

    y, x = np.meshgrid(np.fft.fftfreq(7) * 7, np.arange(5), indexing="ij")
    multiplicity = np.where((x == 0), 1, 2) * (x**2 + y**2 <= 3.2**2) * weights  # no Nyquist column: the width is odd
    poses = [np.ascontiguousarray(a.astype(np.float64)) for a in (np.repeat(matrices, 4, axis=0), np.tile(shifts, (6, 1)))]
    projections = bracewell.project(reconstruction.astype(np.complex128), poses[0][None], poses[1][None], shape=(7, 9),
                                    interpolation="linear", **options)
    projections = filters[:, None] * projections[0].reshape(1, 24, 7, 5)
    powers = [(multiplicity * abs(values)**2).sum((-1, -2)) for values in (images[:, None], projections)]
    overlap = (multiplicity * (images[:, None].conj() * projections).real).sum((-1, -2))
    expected = overlap / np.sqrt(powers[0] * powers[1]) if score == "correlation" else powers[0] + powers[1] - 2 * overlap
    assert found.all.dtype == real and relative_error(found.all, expected) < tolerance

    assert found.best.shape == found.poses.shape == found.shifts.shape == (3, 2)
    by_pose = -found.all.max(2) if score == "correlation" else found.all.min(2)
    np.testing.assert_array_equal(found.poses, np.argsort(by_pose, axis=1)[:, :2])
    rows = np.arange(3)[:, None]
    np.testing.assert_array_equal(found.best, found.all[rows, found.poses, found.shifts])


def test_scoring_takes_other_images_and_shifts(rng):
    reconstruction, matrices, images, filters, weights, shifts = scoring_problem(rng, 3)
    reference = bracewell.PreparedReference(reconstruction)
    options = dict(width=9, oversampling=10 / 8)
    scoring = bracewell.PoseScoring(images, shifts, **options)
    assert scoring.memory_bytes > 0
    scoring.set_images(images[1:], filters[1:], weights)
    scoring.set_shifts(np.zeros((1, 2)))
    found = scoring.score(reference, matrices)
    assert found.best is None and found.all.shape == (2, 6, 1)
    again = bracewell.PoseScoring(images[1:], filters=filters[1:], weights=weights, best=9, **options)
    np.testing.assert_array_equal(again.score(reference, matrices, wanted=["all"]).all, found.all)
    ranked = again.score(reference, matrices[:2])
    assert ranked.all is None and (ranked.poses[:, 2:] == -1).all() and np.isnan(ranked.best[:, 2:]).all()


@pytest.mark.parametrize("real, tolerance", [(np.float64, 1e-11), (np.float32, 1e-5)])
def test_an_expectation_is_what_sums_over_candidates_give(rng, real, tolerance):
    reconstruction, matrices, images, filters, _, shifts = scoring_problem(rng, 3, real)
    references = np.concatenate((reconstruction, reconstruction[:, ::-1].copy()))
    noise, priors = (200 + 100 * rng.random((1, 5))).astype(real), rng.random((2, 6)).astype(real)
    options = dict(oversampling=10 / 8, radius=3.2)
    step = bracewell.Expectation(images, noise, shifts, filters=filters, width=9, best=2, reproducible=True, **options)
    reference = bracewell.PreparedReference(references, interpolation="linear")
    found = step.run(reference, matrices, priors=priors, share=1,
                     wanted=("log_evidence", "class_shares", "best", "volumes", "candidates", "shares", "shift_sums", "shell_sums"))

    y, x = np.meshgrid(np.fft.fftfreq(7) * 7, np.arange(5), indexing="ij")
    inside = x**2 + y**2 <= 3.2**2
    multiplicity = np.where((x == 0), 1, 2) * inside
    shells = np.floor(np.hypot(x, y * 9 / 7) + 0.5).astype(int)
    variance = np.where(inside, noise[0].astype(np.float64)[np.minimum(shells, 4)], 1)
    poses = [np.ascontiguousarray(a.astype(np.float64)) for a in (np.repeat(matrices, 4, axis=0), np.tile(shifts, (6, 1)))]
    projections = np.stack([bracewell.project(one[None].astype(np.complex128), poses[0][None], poses[1][None], shape=(7, 9),
                                              interpolation="linear", **options)[0] for one in references])
    difference = images[:, None, None] - filters[:, None, None] * projections  # [N, K, P S, h, w/2+1]
    logs = -(multiplicity * (abs(difference)**2 / (2 * variance) + np.log(2 * np.pi * variance))).sum((-1, -2)) / 2
    logs += np.log(np.repeat(priors, 4, axis=1))
    largest = logs.max((1, 2), keepdims=True)
    evidence = (largest + np.log(np.exp(logs - largest).sum((1, 2), keepdims=True)))[:, 0, 0]
    posteriors = np.exp(logs - evidence[:, None, None])
    np.testing.assert_allclose(found.log_evidence, evidence, rtol=0, atol=tolerance * 100)
    np.testing.assert_allclose(found.class_shares, posteriors.sum(2), rtol=0, atol=10 * tolerance)
    order = np.argsort(-posteriors.reshape(3, -1), axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(found.classes, order // 24)
    np.testing.assert_array_equal(found.poses, order // 4 % 6)
    np.testing.assert_array_equal(found.shifts, order % 4)
    np.testing.assert_allclose(found.shares, 1, rtol=0, atol=10 * tolerance)
    by_shift = posteriors.reshape(3, 2, 6, 4).sum((1, 2))
    moments = np.stack((by_shift @ shifts[:, 0], by_shift @ shifts[:, 1], by_shift @ (shifts**2).sum(1)), 1)
    assert relative_error(found.shift_sums, moments) < 10 * tolerance
    assert step.shell_sizes.sum() == multiplicity.sum()
    residual = found.shell_sums @ np.array([1, -2, 1])
    expected = np.einsum("nkp,nkpyx->nyx", posteriors, abs(difference)**2) * multiplicity
    expected = np.stack([expected[:, shells == s].sum(1) for s in range(len(step.shell_sizes))], 1)
    assert relative_error(residual, expected) < 10 * tolerance

    # The volumes: of all images and candidates one by one.
    for k in range(2):
        factor = posteriors[:, k, :, None, None] * (filters / variance)[:, None]
        images_of = np.ascontiguousarray((factor * images[:, None]).reshape(1, 72, 7, 5).astype(np.complex128))
        weights_of = np.ascontiguousarray((factor * filters[:, None]).reshape(1, 72, 7, 5).astype(np.float64))
        data, weight = bracewell.backproject(images_of, np.tile(poses[0], (3, 1, 1))[None], np.tile(poses[1], (3, 1))[None],
                                             weights=weights_of, shape=(10, 10, 10), width=9, interpolation="linear", **options)
        assert relative_error(found.data[k], data[0]) < 10 * tolerance
        assert relative_error(found.weight[k], weight[0]) < 10 * tolerance

    # Lists: each image has two of the poses.
    some = step.run(reference, matrices, first=[0, 2, 4, 6], share=1)
    assert (some.poses // 2 == np.arange(3)[:, None]).all() and some.data is None
    with pytest.raises(ValueError, match="poses.first: expected 4 numbers of 3 images, found 2"):
        step.run(reference, matrices, first=[0, 6])
    with pytest.raises(ValueError, match="wanted: expected log_evidence"):
        step.run(reference, matrices, wanted=["worst"])
    with pytest.raises(ValueError, match="images.noise: expected finite values above zero, found 0 at element 0"):
        step.set_images(images, np.zeros((1, 5), real))


@pytest.mark.parametrize("real, tolerance", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_two_passes_are_an_expectation_at_the_poses_that_the_first_has(rng, real, tolerance):
    reconstruction, matrices, images, filters, _, shifts = scoring_problem(rng, 3, real)
    noise, priors = (200 + 100 * rng.random((1, 5))).astype(real), rng.random((1, 6)).astype(real)
    reference = bracewell.PreparedReference(reconstruction, interpolation="linear")
    given = dict(filters=filters, width=9, oversampling=10 / 8)
    coarse = bracewell.Expectation(images, noise, shifts, best=24, radius=2, **given)
    fine = bracewell.Expectation(images, noise, shifts[:2] / 4, best=1, radius=3.2, **given)
    turns = (np.eye(3) + 0.1 * rng.standard_normal((2, 3, 3))).astype(real)
    found, finer, first = fine.run_passes(coarse, reference, matrices, turns, priors=priors, share=1, most=2,
                                          wanted=("log_evidence", "best"))
    # The first pass by its candidates.
    all_of = coarse.run(reference, matrices, priors=priors)
    totals = np.zeros((3, 6))
    for i in range(3):
        np.add.at(totals[i], all_of.poses[i], all_of.posteriors[i])
    kept = np.sort(np.argsort(-totals, axis=1)[:, :2], axis=1)
    expected = np.einsum("npij,qjk->npqik", matrices[kept].astype(np.float64), turns).reshape(-1, 3, 3)
    np.testing.assert_allclose(finer, expected, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(first, [0, 4, 8, 12])
    means = np.einsum("nb,nbk->nk", all_of.posteriors, shifts[all_of.shifts])
    again = bracewell.Expectation(images, noise, shifts[:2] / 4, origins=means.astype(real), radius=3.2, **given)
    right = again.run(reference, finer, first=first, priors=np.repeat(priors[:, kept.ravel()], 2, axis=1))
    np.testing.assert_allclose(found.log_evidence, right.log_evidence, rtol=0, atol=100 * tolerance)
    np.testing.assert_array_equal(found.poses, right.poses)
    np.testing.assert_array_equal(fine.run(reference, matrices).log_evidence,  # origins are as before
                                  bracewell.Expectation(images, noise, shifts[:2] / 4, radius=3.2, **given)
                                  .run(reference, matrices).log_evidence)


def test_wrong_arguments_of_scoring_are_told_in_one_sentence(rng):
    reconstruction, matrices, images, _, weights, shifts = scoring_problem(rng, 3)
    options = dict(width=9, oversampling=10 / 8)
    scoring = bracewell.PoseScoring(images, shifts, **options)
    reference = bracewell.PreparedReference(reconstruction)
    single = bracewell.PreparedReference(reconstruction.astype(np.complex64))
    for call, error, words in (
            (lambda: scoring.score(single, matrices), TypeError, "reference: expected one for float64 in host memory, as the plan"),
            (lambda: scoring.score(reconstruction, matrices), TypeError, "reference: expected a PreparedReference, found ndarray"),
            (lambda: scoring.score(reference, matrices[0]), ValueError, "matrices: expected .* found"),
            (lambda: scoring.score(reference, matrices, wanted=["worst"]), ValueError, "wanted: expected all and best, found worst"),
            (lambda: scoring.score(reference, matrices, wanted=["best"]), ValueError, "scores.best: expected sizes.best > 0"),
            (lambda: scoring.set_images(np.repeat(images, 2, 0)), ValueError, "images.spectra: expected at most 3 images"),
            (lambda: scoring.set_shifts(shifts[:, :1].copy()), ValueError, "shifts: expected .* found"),
            (lambda: bracewell.PoseScoring(images[0], **options), ValueError, r"images: expected \[N, h, w/2\+1\], found 2 axes"),
            (lambda: bracewell.PoseScoring(images, weights=weights[:, :5].copy(), **options), ValueError, "images.weights: expected"),
            (lambda: bracewell.PoseScoring(images, score="phase", **options), ValueError, "score: expected squared_difference")):
        with pytest.raises(error, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert scoring.score(reference, matrices).all.shape == (3, 6, 4)


def test_a_grid_of_rotations_leaves_none_far_away(rng):
    grid = bracewell.rotation_grid(25)
    assert np.allclose(grid @ grid.transpose(0, 2, 1), np.eye(3)) and np.allclose(np.linalg.det(grid), 1)
    turns, _ = np.linalg.qr(rng.normal(size=(200, 3, 3)))
    turns *= np.sign(np.linalg.det(turns))[:, None, None]
    cosines = (np.einsum("aij,bij->ab", turns, grid).max(axis=1) - 1) / 2
    assert np.degrees(np.arccos(cosines.min())) < 25
    with pytest.raises(ValueError, match="degrees: expected"):
        bracewell.rotation_grid(0)


def test_a_forgotten_width_is_refused(rng):
    matrices = np.linalg.qr(rng.normal(size=(1, 5, 3, 3)))[0]
    odd = np.fft.rfftn(rng.normal(size=(1, 15, 15, 15)), axes=(1, 2, 3))
    with pytest.raises(ValueError, match="expected width= where boxes are odd, found rows of 15 and 8 columns"):
        bracewell.project(odd, matrices)
    views = bracewell.project(odd, matrices, width=15)
    with pytest.raises(ValueError, match="backproject: projections: expected width="):
        bracewell.backproject(views, matrices)
    full = np.fft.fftn(rng.normal(size=(1, 12, 12, 12)), axes=(1, 2, 3))
    with pytest.raises(ValueError, match="expected the half spectrum of rfftn, 7 columns, found the 12"):
        bracewell.project(full, matrices)


def test_jax_outputs_are_refused(rng):
    jax = pytest.importorskip("jax")
    volume = np.fft.rfftn(rng.normal(size=(1, 8, 8, 8)), axes=(1, 2, 3)).astype(np.complex64)
    with pytest.raises(TypeError, match="project: out: expected an array that can be written, found JAX's"):
        bracewell.project(volume, np.eye(3, dtype=np.float32)[None, None], out=jax.numpy.zeros((1, 1, 8, 5), "complex64"))
