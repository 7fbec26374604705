# SPDX-License-Identifier: MIT
"""Lines in real space against sums and transposes in NumPy, and PyTorch's gradcheck."""

import numpy as np
import pytest

import bracewell


def problem(rng, batches=2, poses=3):
    volume = rng.normal(size=(batches, 5, 6, 7))
    matrices = np.linalg.qr(rng.normal(size=(batches, poses, 3, 3)))[0]
    shifts = rng.normal(size=(batches, poses, 2))
    return volume, matrices, shifts


def test_the_unit_matrix_sums_along_z(rng):
    volume, _, _ = problem(rng)
    images = bracewell.project_lines(volume, np.eye(3)[None, None])
    np.testing.assert_allclose(images[:, 0], volume.sum(1), atol=1e-13)
    moved = bracewell.project_lines(volume, np.eye(3)[None, None], shifts=np.array([[[1.0, -2.0]]]), shape=(6, 7))
    np.testing.assert_allclose(moved[:, 0, 1:, :-2], volume.sum(1)[:, :-1, 2:], atol=1e-13)


def test_backprojection_is_the_transpose(rng):
    volume, matrices, shifts = problem(rng)
    images = bracewell.project_lines(volume, matrices, shifts=shifts, shape=(8, 4))
    other = rng.normal(size=images.shape)
    sum_ = bracewell.backproject_lines(other, matrices, shifts=shifts, shape=volume.shape[1:])
    assert abs(np.vdot(images, other) - np.vdot(volume, sum_)) < 1e-11
    given = bracewell.project_lines_gradients(volume, matrices, other, shifts=shifts, wanted=("volume", "shifts"))
    np.testing.assert_allclose(given.volume, sum_, atol=1e-13)
    assert given.matrices is None
    one = bracewell.backproject_lines(other, matrices, shifts=shifts, shape=volume.shape[1:], batches=1)
    np.testing.assert_allclose(one[0], sum_.sum(0), atol=1e-12)


def test_arguments_that_do_not_fit_are_said_in_one_sentence(rng):
    volume, matrices, shifts = problem(rng)
    images = bracewell.project_lines(volume, matrices)
    for call, sentence in [
        (lambda: bracewell.project_lines(volume[0], matrices), "volume: expected"),
        (lambda: bracewell.project_lines(volume, matrices[0]), "matrices: expected"),
        (lambda: bracewell.project_lines(volume, matrices, shifts=shifts[..., :1].copy()), "shifts: expected"),
        (lambda: bracewell.backproject_lines(images, matrices), "shape: expected"),
        (lambda: bracewell.project_lines_gradients(volume, matrices, images, wanted=("images",)), "wanted: expected"),
        (lambda: bracewell.project_lines_gradients(volume, matrices, images, wanted=("shifts",)), "wanted: expected shifts"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()


def test_torch_functions_have_exact_gradients(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from bracewell.torch import project_lines

    volume, matrices, shifts = (torch.tensor(part).requires_grad_() for part in problem(rng, 1, 2))
    assert torch.autograd.gradcheck(lambda v, m, s: project_lines(v, m, shifts=s, shape=(3, 4)), (volume, matrices, shifts),
                                    eps=1e-7, atol=1e-5)
