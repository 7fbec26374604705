# SPDX-License-Identifier: MIT
"""Adapters to other packages, by the checks of those packages where they are installed."""

import bracewell
import numpy as np
import pytest
from conftest import relative_error

ANGLES = np.arange(9) * np.pi / 9


def operators(rng):
    from bracewell.hubs.scipy import linear_operator, projection_operator

    points = rng.uniform(-0.5, 0.5, (30, 2))
    for units, weights in (("transpose", None), ("line_integrals", rng.uniform(0.5, 1.5, 9))):
        for method in ("fourier", "line"):
            yield linear_operator(bracewell.Tomography(ANGLES, 9, method=method, units=units, weights=weights))
    yield linear_operator(bracewell.FourierNormal(ANGLES, 8))
    yield linear_operator(bracewell.Laminography(ANGLES, 8, 6, 0.3))
    yield linear_operator(bracewell.NonuniformFFT(points, (6, 7), tolerance=1e-10))
    yield linear_operator(bracewell.NonuniformSums(points, points[:20] * 5, tolerance=1e-10))
    yield linear_operator(bracewell.ToeplitzNormal(points, (6, 7), rng.random(30), tolerance=1e-10))
    matrices = np.linalg.qr(rng.normal(size=(1, 3, 3, 3)))[0]
    for n in (6, 7):
        yield projection_operator(matrices, (n, n, n), rng.normal(size=(1, 3, 2)), rng.random((1, 3, n, n // 2 + 1)))


def test_pairs_are_linear_operators_of_scipy(rng):
    pytest.importorskip("scipy", reason="SciPy is not installed")
    for operator in operators(rng):
        def random(size):
            return (rng.normal(size=size) + 1j * rng.normal(size=size)).astype(operator.dtype) if operator.dtype.kind == "c" else \
                rng.normal(size=size)  # noqa: B023

        x, y = random(operator.shape[1]), random(operator.shape[0])
        one, other = np.vdot(y, operator @ x), np.vdot(operator.H @ y, x)
        assert abs(one - other) < 1e-9 * np.linalg.norm(y) * np.linalg.norm(operator @ x)
        both = operator @ np.stack([x, 2 * x], axis=1)
        assert relative_error(both, np.stack([operator @ x, 2 * (operator @ x)], axis=1)) < 1e-12


def test_a_solver_of_scipy_finds_an_image(rng):
    linalg = pytest.importorskip("scipy.sparse.linalg", reason="SciPy is not installed")
    from bracewell.hubs.scipy import linear_operator

    beam = bracewell.Tomography(np.arange(60) * np.pi / 60, 17, units="line_integrals", tolerance=1e-9)
    y, x = np.mgrid[:17, :17] - 8
    image = np.exp(-((x - 2)**2 + (y + 1)**2) / 8)
    found = linalg.lsqr(linear_operator(beam), beam.project(image).ravel(), iter_lim=60)[0].reshape(17, 17)
    assert relative_error(found, image) < 0.02
    with pytest.raises(TypeError, match="pair: expected one of bracewell's, found int"):
        linear_operator(3)


def test_physics_of_deepinv_pass_its_check(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("deepinv", reason="deepinv is not installed")
    from bracewell.hubs.deepinv import NonuniformPhysics, TomographyPhysics

    points = rng.uniform(-0.5, 0.5, (30, 2))
    for physics, x in ((TomographyPhysics(ANGLES, 9, weights=[0.5] * 4 + [1.4] * 5), torch.rand(2, 3, 9, 9)),
                       (NonuniformPhysics(points, (6, 7)), torch.rand(2, 1, 6, 7, dtype=torch.complex64))):
        y = physics.A(x)
        assert y.shape[:2] == x.shape[:2]
        assert abs(physics.adjointness_test(x)) < 1e-3 * float(y.abs().square().sum())
    physics = TomographyPhysics(np.arange(30) * np.pi / 30, 16)
    x = torch.zeros(1, 1, 16, 16)
    x[..., 6:11, 5:9] = 1
    y = physics(x)
    assert (physics.A_dagger(y) - x).norm() < 0.5 * x.norm() and physics.fbp(y).shape == x.shape


def test_a_back_end_of_mri_nufft_is_its_transform(rng):
    mrinufft = pytest.importorskip("mrinufft", reason="MRI-NUFFT is not installed")
    import bracewell.hubs.mrinufft  # noqa: F401

    samples = rng.uniform(-0.5, 0.5, (40, 2)).astype(np.float32)
    maps = (rng.normal(size=(3, 8, 10)) + 1j * rng.normal(size=(3, 8, 10))).astype(np.complex64)
    for coils, smaps in ((1, None), (3, maps), (3, None)):
        operator = mrinufft.get_operator("bracewell")(samples, (8, 10), n_coils=coils, smaps=smaps, eps=1e-5)
        exact = mrinufft.get_operator("numpy")(samples, (8, 10), n_coils=coils, smaps=smaps)
        image = rng.normal(size=(8, 10) if coils == 1 or smaps is not None else (3, 8, 10)).astype(np.complex64)
        data = operator.op(image)
        assert relative_error(data, exact.op(image)) < 1e-4
        assert relative_error(operator.adj_op(data), exact.adj_op(data)) < 1e-4
    operator = mrinufft.get_operator("bracewell")(samples, (8, 10), eps=1e-5)
    assert relative_error(operator.gram(image[0]), operator.adj_op(operator.op(image[0]))) < 1e-4
