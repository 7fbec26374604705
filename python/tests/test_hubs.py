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


@pytest.mark.parametrize("side", [9, 20])  # a probe on a larger object, whose windows may leave it, and one of the object's size
def test_a_fidelity_for_deepinvs_ptychography_is_its_own(side):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    deepinv = pytest.importorskip("deepinv", reason="deepinv is not installed")
    from bracewell.hubs.deepinv import PtychographyFidelity

    torch.manual_seed(1)
    n = 20
    def wave(*shape):
        return torch.randn(*shape, dtype=torch.complex128)

    physics = deepinv.physics.Ptychography((1, n, n), wave(1, side, side), torch.randint(-7, 8, (6, 2)))
    x = wave(2, 1, n, n)
    y = physics.A(wave(2, 1, n, n))
    for loss, theirs in (("least_squares", deepinv.optim.L2()), ("amplitude", deepinv.optim.AmplitudeLoss())):
        ours = PtychographyFidelity(loss)
        for patterns in (y, y * 2, y.mul_(1.5)):  # others, and changed in place
            assert torch.allclose(ours.fn(x, patterns, physics), theirs.fn(x, patterns, physics), rtol=1e-6)
            slope = theirs.grad(x, patterns, physics)
            assert (ours.grad(x, patterns, physics) - slope).norm() < 1e-6 * slope.norm()
        along = wave(2, 1, n, n)
        ahead, back = (ours.fn(x + step * along, y, physics) for step in (1e-5, -1e-5))
        slopes = (ours.grad(x, y, physics).conj() * along).real.sum((1, 2, 3))
        assert torch.allclose((ahead - back) / 2e-5, slopes, rtol=1e-5)
    with pytest.raises(TypeError, match="physics: expected deepinv's Ptychography, found LinearPhysics"):
        ours.fn(x, y, deepinv.physics.LinearPhysics())


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


class Container:
    """What an operator of CIL meets of its data."""

    def __init__(self, shape):
        self.values = np.empty(shape, np.float32)

    def as_array(self):
        return self.values

    def fill(self, values):
        assert values.shape == self.values.shape
        self.values[...] = values


class LinearOperator:
    def __init__(self, domain_geometry, range_geometry):
        self.domain_geometry, self.range_geometry = lambda: domain_geometry, lambda: range_geometry


def geometries(angles, labels, side, width, rows, size, axis):
    """CIL's descriptions of an image and a parallel scan."""
    from types import SimpleNamespace as Names

    extents = {"angle": len(angles), "horizontal": width, "vertical": rows}
    shape, pad = tuple(extents[label] for label in labels), [0.0] * (len(labels) - 2)
    system = Names(ray=Names(direction=[0.0, 1.0, *pad]), detector=Names(position=[0.0, 0.0, *pad], direction_x=[1.0, 0.0, *pad],
                                                                          direction_y=[0.0, 0.0, 1.0]),
                   rotation_axis=Names(position=[axis, 0.0, *pad], direction=[0.0, 0.0, 1.0]))
    config = Names(system=system, panel=Names(origin="bottom-left", num_pixels=[width, rows], pixel_size=[size, size]),
                   angles=Names(angle_data=angles, initial_angle=10.0, angle_unit="degree"))
    image = (rows, side, side)[3 - len(labels):]
    return (Names(voxel_num_x=side, voxel_num_y=side, voxel_num_z=rows, voxel_size_x=size, voxel_size_y=size, center_x=0, center_y=0,
                  shape=image, allocate=lambda value: Container(image)),
            Names(shape=shape, dimension_labels=labels, geom_type="parallel", config=config, allocate=lambda value: Container(shape)))


@pytest.mark.parametrize("labels", [("angle", "horizontal"), ("vertical", "angle", "horizontal"), ("angle", "vertical", "horizontal")])
@pytest.mark.parametrize("side, width", [(24, 30), (25, 29)])
def test_an_operator_for_cil_sees_line_integrals(rng, monkeypatch, labels, side, width):
    import sys
    from types import SimpleNamespace as Names

    monkeypatch.delitem(sys.modules, "bracewell.hubs.cil", raising=False)
    monkeypatch.setitem(sys.modules, "cil", Names())
    monkeypatch.setitem(sys.modules, "cil.optimisation", Names())
    monkeypatch.setitem(sys.modules, "cil.optimisation.operators", Names(LinearOperator=LinearOperator))
    from bracewell.hubs.cil import ProjectionOperator

    size, axis, angles = 0.5, 0.8, np.arange(0, 180, 25.0)
    image_geometry, scan = geometries(angles, labels, side, width, 3, size, axis)
    operator = ProjectionOperator(image_geometry, scan, tolerance=1e-6)
    blobs = [(2.0, -1.5, 1.0), (-1.2, 0.8, 2.0)]  # x, y from the middle, and the height, of Gaussians of width 0.9
    at = (np.arange(side) - (side - 1) / 2) * size
    image = sum(height * np.exp(-((at - x)**2 + (at[:, None] - y)**2) / (2 * 0.9**2)) for x, y, height in blobs)
    x = Container(image_geometry.shape)
    x.values[...] = image
    theta, s = np.radians(angles + 10)[:, None], (np.arange(width) - (width - 1) / 2) * size - axis
    exact = sum(height * 0.9 * np.sqrt(2 * np.pi) * np.exp(-(s - a * np.cos(theta) + b * np.sin(theta))**2 / (2 * 0.9**2))
                for a, b, height in blobs)
    exact = exact[:, None] if labels[1] == "vertical" else exact
    found = operator.direct(x)
    assert relative_error(found.values, np.broadcast_to(exact, scan.shape)) < 2e-3
    y, out = Container(scan.shape), Container(image_geometry.shape)
    x.values[...], y.values[...] = rng.normal(size=x.values.shape), rng.normal(size=y.values.shape)
    assert operator.adjoint(y, out=out) is out
    one, other = np.vdot(operator.direct(x).values, y.values), np.vdot(x.values, out.values)
    assert abs(one - other) < 1e-5 * np.linalg.norm(operator.direct(x).values) * np.linalg.norm(y.values)
    scan.config.panel.origin = "top-left"
    with pytest.raises(ValueError, match="origin of the panel: expected bottom-left, found top-left"):
        ProjectionOperator(image_geometry, scan)
