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
