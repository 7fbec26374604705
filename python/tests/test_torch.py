# SPDX-License-Identifier: MIT
"""bracewell.torch: derivatives against finite differences, torch.compile, and what is refused."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import bracewell  # noqa: E402
import bracewell.torch as operators  # noqa: E402
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

ANGLES = [0.1, 0.7, 1.9]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def real(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def waves(*shape):
    return torch.randn(*shape, dtype=torch.complex128, requires_grad=True)


def problem(d, m, n, N):
    """Volume, matrices, shifts, filters, and the options of project."""
    half = (*[n] * (m - 1), n // 2 + 1)
    matrices = torch.linalg.qr(torch.randn(1, 2, d, d, dtype=torch.float64))[0].contiguous().requires_grad_()
    options = dict(oversampling=N / n, radius=n / 2 - 0.4)
    return waves(1, *[N] * (d - 1), N // 2 + 1), matrices, real(1, 2, m), real(1, 1, *half), half, options


@pytest.mark.parametrize("d, m, n, N", [(3, 2, 6, 8), (2, 2, 7, 8), (3, 3, 4, 5)])
def test_projection_has_exact_gradients(d, m, n, N):
    volume, matrices, shifts, filters, half, options = problem(d, m, n, N)
    assert gradcheck(lambda *inputs: operators.project(*inputs, shape=(n,) * m, width=N, **options),
                     (volume, matrices, shifts, filters))
    assert gradcheck(lambda images, M, s, f, w: operators.backproject(images, M, s, f, weights=w, shape=(N,) * d, width=n, **options),
                     (waves(1, 2, *half), matrices, shifts, filters, real(1, 2, *half)))


def test_only_the_gradients_that_are_needed_are_computed():
    volume, matrices, shifts, _, _, options = problem(3, 2, 6, 8)
    operators.project(volume.detach(), matrices, shifts.detach(), shape=(6, 6), **options).abs().sum().backward()
    assert volume.grad is None and shifts.grad is None and matrices.grad.abs().sum() > 0


def test_gradients_of_gradients_are_refused():
    volume, matrices, _, _, _, options = problem(3, 2, 6, 8)
    loss = operators.project(volume, matrices, shape=(6, 6), **options).abs().pow(2).sum()
    gradient, = torch.autograd.grad(loss, volume, create_graph=True)
    with pytest.raises(NotImplementedError, match="bracewell.torch.project: expected one backward pass"):
        gradient.abs().sum().backward()


@pytest.mark.parametrize("options", [{}, dict(method="line", units="line_integrals", weights=[1, 0.5, 1.5])])
def test_tomography_is_a_linear_pair(options):
    beam = operators.Tomography(ANGLES, 8, **options)
    for operator, values in ((beam.project, real(2, 8, 8)), (beam.backproject, real(2, 3, 8))):
        assert gradcheck(operator, (values,)) and gradgradcheck(operator, (values,))


def test_nonuniform_transforms_are_a_linear_pair():
    plan = operators.NonuniformFFT(torch.rand(7, 2), (6, 5), tolerance=1e-10)
    assert gradcheck(plan.adjoint, (waves(2, 7),))
    assert gradcheck(plan.forward, (waves(6, 5),))


def test_the_ptychographic_loss_has_exact_gradients():
    positions = torch.tensor([[0, 0], [1, 2], [2.3, 1.2]], dtype=torch.float64)
    patterns = torch.rand(3, 8, 8, dtype=torch.float64)
    loss = operators.PtychographyLoss(patterns, positions, (9, 9), 6, modes=2, refine_positions=True)
    inputs = (waves(9, 9), waves(2, 6, 6), (positions + 0.1).requires_grad_())
    assert gradcheck(loss, inputs)
    gradient, = torch.autograd.grad(loss(*inputs), inputs[0], create_graph=True)
    with pytest.raises(NotImplementedError, match="PtychographyLoss: expected one backward pass"):
        gradient.abs().sum().backward()


def test_compiled_functions_give_the_same():
    volume, matrices, shifts, _, _, options = problem(3, 2, 6, 8)
    beam = operators.Tomography(ANGLES, 8)

    def work(volume, matrices, image):
        return operators.project(volume, matrices, shape=(6, 6), **options).abs().sum() + beam.project(image).square().sum()

    image = real(8, 8)
    expected = work(volume, matrices, image)
    expected_gradients = torch.autograd.grad(expected, (volume, matrices, image))
    found = torch.compile(work, fullgraph=True, backend="aot_eager")(volume, matrices, image)
    gradients = torch.autograd.grad(found, (volume, matrices, image))
    assert torch.allclose(found, expected, rtol=1e-13)
    for one, other in zip(gradients, expected_gradients):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)


def test_custom_operators_are_registered_as_torch_wants_them():
    volume, matrices, shifts, filters, half, _ = problem(3, 2, 6, 6)
    torch.library.opcheck(torch.ops.bracewell.project.default,
                          (volume, matrices, shifts, filters, [6, 6], 6, "linear", None, None, None, False))
    torch.library.opcheck(torch.ops.bracewell.backproject.default,
                          (waves(1, 2, *half), matrices, shifts, None, None, [6, 6, 6], 6, "linear", None, None, None, "signed"))


def test_tensors_that_need_gradients_are_told_where_to_go():
    volume, matrices, _, _, _, _ = problem(3, 2, 6, 6)
    with pytest.raises(TypeError, match="reconstruction: expected an array that needs no gradient"):
        bracewell.project(volume, matrices)


def test_conjugate_views_are_refused():
    volume, matrices, _, _, _, _ = problem(3, 2, 6, 6)
    with pytest.raises(TypeError, match="reconstruction: expected values as they are in memory"):
        bracewell.project(volume.detach().conj(), matrices.detach())


def test_torch_projectors_functions_are_those_of_the_package():
    peer = pytest.importorskip("bracewell.torch_projectors")
    volume = torch.fft.rfftn(torch.randn(8, 8, 8))
    turned = peer.project_3d_to_2d_forw(volume, torch.eye(3))
    assert turned.shape == (1, 1, 8, 5)
    inside = torch.fft.fftfreq(8)[:, None]**2 + torch.fft.rfftfreq(8)[None, :]**2 < 0.24
    assert torch.allclose(turned[0, 0][inside], volume[0][inside])
    data, weight = peer.backproject_2d_to_3d_forw(turned, torch.eye(3), weights=torch.ones(1, 1, 8, 5), oversampling=2)
    assert data.shape == weight.shape == (1, 16, 16, 9)
    with pytest.raises(ValueError, match="must be even"):
        peer.project_2d_forw(torch.zeros(7, 5, dtype=torch.complex64), torch.eye(2))
