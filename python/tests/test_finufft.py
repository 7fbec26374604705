# SPDX-License-Identifier: MIT
"""FINUFFT's and cuFINUFFT's functions against their sums."""

import pickle

import numpy as np
import pytest

import bracewell
from bracewell import cufinufft, finufft


def exponentials(points, modes, sign):
    """exp(sign i k . x_j) as [point, *modes], k from -(n // 2)."""
    phase = np.zeros((len(points[0]), *modes))
    for axis, (x, size) in enumerate(zip(points, modes)):
        k = (np.arange(size) - size // 2).reshape([-1 if a == axis else 1 for a in range(len(modes))])
        phase = phase + x.reshape(-1, *[1] * len(modes)) * k
    return np.exp(sign * 1j * phase)


@pytest.mark.parametrize("modes", [(9,), (8, 7), (6, 5, 7)])
@pytest.mark.parametrize("sign", [1, -1])
def test_functions_are_their_sums(modes, sign):
    random = np.random.default_rng(3)
    dim = len(modes)
    points = random.uniform(-7, 7, (dim, 40))  # several periods
    c = random.normal(size=(2, 40, 2)).view(complex)[..., 0]
    f = random.normal(size=(2, *modes, 2)).view(complex)[..., 0]
    waves = exponentials(points, modes, sign)
    found = getattr(finufft, f"nufft{dim}d1")(*points, c, modes, eps=1e-9, isign=sign)
    assert np.linalg.norm(found - np.tensordot(c, waves, 1)) < 1e-8 * np.linalg.norm(found)
    found = getattr(finufft, f"nufft{dim}d2")(*points, f[0], eps=1e-9, isign=sign)
    assert np.linalg.norm(found - np.tensordot(waves, f[0], dim)) < 1e-8 * np.linalg.norm(found)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_type_3_is_its_sum(dim, sign):
    random = np.random.default_rng(5)
    points, targets = random.uniform(-7, 9, (dim, 40)), random.uniform(-2, 5, (dim, 30))
    c = random.normal(size=(2, 40, 2)).view(complex)[..., 0]
    waves = np.exp(sign * 1j * points.T @ targets)
    found = getattr(finufft, f"nufft{dim}d3")(*points, c, *targets, eps=1e-9, isign=sign)
    assert np.linalg.norm(found - c @ waves) < 1e-9 * np.linalg.norm(found)
    plan = finufft.Plan(3, dim, n_trans=2, eps=1e-9, isign=sign)
    plan.setpts(*points, *[None] * (3 - dim), *targets)
    out = np.empty((2, 40), complex)
    assert plan.execute_adjoint(found, out=out) is out
    assert np.linalg.norm(out - found @ waves.conj().T) < 1e-9 * np.linalg.norm(out)


def test_plans_keep_order_and_sign():
    random = np.random.default_rng(4)
    points = random.uniform(-np.pi, np.pi, (2, 30)).astype(np.float32)
    c = random.normal(size=(30, 2)).astype(np.float32).view(np.complex64)[:, 0]
    plan = finufft.Plan(1, (8, 9), dtype="complex64", modeord=1, isign=-1, eps=1e-5)
    plan.setpts(*points)
    out = np.empty((8, 9), np.complex64)
    assert plan.execute(c, out=out) is out
    waves = exponentials(points.astype(float), (8, 9), -1)
    want = np.fft.ifftshift(np.tensordot(c, waves, 1))
    assert np.linalg.norm(out - want) < 1e-4 * np.linalg.norm(want)
    back = plan.execute_adjoint(out)
    want = np.tensordot(waves.conj(), np.fft.fftshift(out), 2)
    assert np.linalg.norm(back - want) < 1e-4 * np.linalg.norm(want)


@pytest.mark.parametrize("call, words", [
    (lambda: finufft.Plan(4, (4, 4)), "nufft_type: expected 1, 2 or 3, found 4"),
    (lambda: finufft.Plan(3, (4, 4)), "n_modes: expected 1 to 3 axes"),
    (lambda: finufft.nufft1d3(np.zeros(3), np.zeros(3), None), "expected 1 vectors of one length"),
    (lambda: finufft.Plan(1, (4.5,)), "n_modes: expected 1 to 3 sizes"),
    (lambda: finufft.Plan(1, (4,), dtype="float32"), "dtype: expected complex64 or complex128"),
    (lambda: finufft.Plan(1, 4).execute(np.ones(3)), "expected points"),
    (lambda: finufft.nufft2d1(np.zeros(3), np.zeros(4), np.zeros(3), 4), "expected 2 vectors of one length"),
    (lambda: finufft.nufft1d1(np.zeros(3), np.zeros(3)), "expected n_modes or out, found neither"),
    (lambda: finufft.nufft1d1(np.zeros(3), np.zeros(2), 4), r"c: expected shape \(3,\), found \(2,\)"),
])
def test_mistakes_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def libraries():
    """Functions that make arrays of each library that is here, and arrays of NumPy of them."""
    yield "numpy", np.asarray, np.asarray
    try:
        import torch

        yield "torch", lambda array: torch.as_tensor(np.ascontiguousarray(array)), lambda tensor: tensor.cpu().numpy()
        if torch.cuda.is_available() and bracewell.device_backend:
            yield "torch on a GPU", lambda array: torch.as_tensor(np.ascontiguousarray(array)).cuda(), lambda tensor: tensor.cpu().numpy()
    except ImportError:
        pass
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() and bracewell.device_backend:
            yield "cupy", cupy.asarray, cupy.asnumpy
    except Exception:  # noqa: BLE001 (CuPy without a GPU)
        pass


@pytest.mark.parametrize("name, make, back", [*libraries()], ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("modes", [(9,), (8, 7), (6, 5, 7)])
def test_functions_of_cufinufft_are_their_sums(name, make, back, modes):
    random = np.random.default_rng(3)
    dim = len(modes)
    points, targets = random.uniform(-7, 7, (dim, 40)), random.uniform(-2, 5, (dim, 30))
    c = random.normal(size=(2, 40, 2)).view(complex)[..., 0]
    f = random.normal(size=(2, *modes, 2)).view(complex)[..., 0]
    there = [make(axis) for axis in points]
    for sign in (1, -1):
        waves = exponentials(points, modes, sign)
        plain = dict(eps=1e-9, isign=sign, gpu_method=2, upsampfac=2.0)
        found = getattr(cufinufft, f"nufft{dim}d1")(*there, make(c), modes, **plain)
        assert type(found) is type(there[0])
        assert np.linalg.norm(back(found) - np.tensordot(c, waves, 1)) < 1e-8 * np.linalg.norm(back(found))
        out = make(np.zeros(40, complex))
        assert getattr(cufinufft, f"nufft{dim}d2")(*there, make(f[0]), out=out, **plain) is out
        assert np.linalg.norm(back(out) - np.tensordot(waves, f[0], dim)) < 1e-8 * np.linalg.norm(back(out))
        waves = np.exp(sign * 1j * points.T @ targets)
        found = getattr(cufinufft, f"nufft{dim}d3")(*there, make(c), *[make(axis) for axis in targets], eps=1e-9, isign=sign)
        assert np.linalg.norm(back(found) - c @ waves) < 1e-8 * np.linalg.norm(back(found))


@pytest.mark.parametrize("name, make, back", [*libraries()], ids=lambda value: value if isinstance(value, str) else "")
def test_plans_of_cufinufft_keep_order_precision_and_library(name, make, back):
    random = np.random.default_rng(4)
    points = random.uniform(-np.pi, np.pi, (2, 30)).astype(np.float32)
    c = random.normal(size=(3, 30, 2)).astype(np.float32).view(np.complex64)[..., 0]
    plan = cufinufft.Plan(1, (8, 9), 3, modeord=1, isign=-1, eps=1e-5)
    assert plan.dtype == np.complex64 and (plan.type, plan.dim, plan.n_modes, plan.n_trans) == (1, 2, (8, 9), 3)
    plan.setpts(*map(make, points))
    out = make(np.empty((3, 8, 9), np.complex64))
    assert plan.execute(make(c), out=out) is out
    waves = exponentials(points.astype(float), (8, 9), -1)
    want = np.fft.ifftshift(np.tensordot(c, waves, 1), axes=(1, 2))
    assert np.linalg.norm(back(out) - want) < 1e-4 * np.linalg.norm(want)
    again = pickle.loads(pickle.dumps(plan)).execute(make(c))
    np.testing.assert_array_equal(back(again), back(out))
    adjoint = plan.execute_adjoint(out)
    want = np.tensordot(np.fft.fftshift(want, axes=(1, 2)), waves.conj(), ((1, 2), (1, 2)))
    assert np.linalg.norm(back(adjoint) - want) < 1e-4 * np.linalg.norm(want)
    assert repr(plan).startswith("bracewell.cufinufft.Plan(1, (8, 9), n_trans=3")


@pytest.mark.parametrize("error, call, words", [
    (TypeError, lambda: cufinufft.Plan(1, (4, 4), gpu_methods=1), "options: expected some of cuFINUFFT's, found gpu_methods"),
    (ValueError, lambda: cufinufft.Plan(1, (4, 4), gpu_spreadinterponly=1), "gpu_spreadinterponly: expected 0"),
    (ValueError, lambda: cufinufft.Plan(4, (4, 4)), "bracewell.cufinufft.Plan: nufft_type: expected 1, 2 or 3, found 4"),
    (ValueError, lambda: cufinufft.Plan(1, 4).execute(np.ones(3)), "cufinufft.Plan.execute: expected points"),
    (ValueError, lambda: cufinufft.nufft1d1(np.zeros(3), np.zeros(3)), "cufinufft.nufft1d1: expected n_modes or out"),
    (ValueError, lambda: cufinufft.nufft1d1(np.zeros(3), np.zeros(2), 4), r"c: expected shape \(3,\), found \(2,\)"),
])
def test_mistakes_with_cufinufft_are_one_sentence(error, call, words):
    with pytest.raises(error, match=words):
        call()
