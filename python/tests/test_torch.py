# SPDX-License-Identifier: MIT
"""bracewell.torch: derivatives against finite differences, torch.compile, and what is refused."""

import pickle

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
    # Atomic additions of many threads differ in their last bits.
    assert gradcheck(lambda *inputs: operators.project(*inputs, shape=(n,) * m, width=N, **options),
                     (volume, matrices, shifts, filters), nondet_tol=1e-12)
    assert gradcheck(lambda images, M, s, f, w: operators.backproject(images, M, s, f, weights=w, shape=(N,) * d, width=n, **options),
                     (waves(1, 2, *half), matrices, shifts, filters, real(1, 2, *half)), nondet_tol=1e-12)


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


def lens_of(optics, m, n, wavelength, pixel, angle):
    """The probe of AberratedProbe by its equations (Cs in the unit of lengths), in torch."""
    k = torch.fft.fftfreq(n, pixel, dtype=torch.float64)
    row, column = torch.meshgrid(k, k, indexing="ij")
    k, theta, k_max = torch.hypot(row, column), torch.atan2(column, row), angle / wavelength
    chi = torch.pi * wavelength * k**2 * (optics[0] + optics[2] * torch.cos(2 * (theta - optics[3])))
    chi = chi + torch.pi / 2 * wavelength**3 * optics[1] * k**4
    wave = torch.fft.ifft2(torch.exp(1j * chi) / (1 + torch.exp(-(k_max - k) / (k_max * (optics[4].abs() + 0.01)))))
    first = n // 2 - m // 2
    return torch.fft.fftshift(wave / torch.linalg.norm(wave))[first:first + m, first:first + m]


@pytest.mark.parametrize("m, n", [(12, 20), (13, 21)])
def test_a_lens_has_gradients_of_its_aberrations(m, n):
    optics = dict(wavelength=0.02, pixel_size=0.2, convergence_angle=0.025)
    lens = operators.AberratedProbe(m, n, cs_to_length=1, **optics)
    values = torch.tensor([40.0, 20.0, 15.0, 0.4, 0.07], dtype=torch.float64, requires_grad=True)
    plain = lambda given: lens_of(given, m, n, 0.02, 0.2, 0.025)
    torch.testing.assert_close(lens(values), plain(values))
    # The loss of a scan, whose gradients lead through the probe to the lens: against torch's own derivatives of the equations.
    patterns, positions = torch.rand(3, n, n, dtype=torch.float64), [[0, 1.5], [2, 0], [3, 3]]
    loss = operators.PtychographyLoss(patterns, positions, (m + 4, m + 4), m)
    object_ = waves(m + 4, m + 4)
    found = torch.autograd.grad(loss(object_, lens(values)), (values, object_))
    expected = torch.autograd.grad(loss(object_, plain(values)), (values, object_))
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-14)
    # Scaled so that a step of finite differences is small in every unit.
    units = torch.tensor([1.0, 1.0, 1.0, 0.1, 0.01], dtype=torch.float64)
    assert gradcheck(lambda given: lens(given * units), (values.detach() / units).requires_grad_(), atol=1e-6)
    torch.testing.assert_close(torch.compile(lens, backend="aot_eager")(values), plain(values))
    both = torch.func.vmap(lens)(torch.stack([values.detach(), values.detach() * 1.1]))
    torch.testing.assert_close(both[1], plain(values.detach() * 1.1))
    with pytest.raises(NotImplementedError, match="AberratedProbe"):
        torch.func.jvp(lens, (values.detach(),), (torch.ones(5, dtype=torch.float64),))
    with pytest.raises(NotImplementedError, match="gradient of a gradient"):
        first, = torch.autograd.grad(lens(values).abs().sum(), values, create_graph=True)
        first.sum().backward()
    copy = pickle.loads(pickle.dumps(lens))
    assert torch.equal(copy(values), lens(values)) and repr(copy).startswith("bracewell.torch.AberratedProbe(probe_size=")


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


def test_projections_are_not_kept_for_backward_passes():
    volume, matrices, _, _, _, _ = problem(3, 2, 6, 6)
    projections = operators.project(volume, matrices)
    assert projections.data_ptr() not in [kept.data_ptr() for kept in projections.grad_fn.saved_tensors if kept is not None]


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


one_step = pytest.mark.skipif(not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="PyTorch has no table of C functions")


@one_step
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("sizes, shape", [((8, 8), (8, 8)), ((6, 8, 10), (6, 8)), ((9, 9, 9), (7, 9)), ((8, 8, 8), (6, 6, 6))])
def test_one_step_gives_what_the_functions_give(sizes, shape, dtype):
    real_type, dimensions, tolerance = dtype.to_real(), len(sizes), 1e-5 if dtype == torch.complex64 else 1e-13
    generator = torch.Generator().manual_seed(7)

    def numbers(*extents, dtype=real_type):
        return torch.randn(*extents, dtype=dtype, generator=generator)

    half, image = (*sizes[:-1], sizes[-1] // 2 + 1), (*shape[:-1], shape[-1] // 2 + 1)
    options = [list(shape), sizes[-1], "linear", 1.0, None, None, False]
    to_volume = [list(sizes), shape[-1], "catmull_rom", 1.0, None, None, "absolute"]
    for batches, shared, poses, shifted, filtered in ((1, 1, 1, 0, 0), (2, 1, 3, 1, 1), (2, 2, 3, 3, 3)):
        volume, matrices = numbers(batches, *half, dtype=dtype), numbers(shared, poses, dimensions, dimensions)
        shifts = numbers(shared, shifted, len(shape)) if shifted else None
        filters = numbers(shared, filtered, *image) if filtered else None
        keywords = dict(interpolation="linear", oversampling=1.0)
        projections = bracewell.project(volume, matrices, shifts, filters, shape=shape, width=sizes[-1], **keywords)
        assert torch.equal(bracewell._core.project_tensors(volume, matrices, shifts, filters, *options), projections)
        cotangent = numbers(*projections.shape, dtype=dtype)
        needed = (True, True, shifts is not None)
        wanted = [name for name, want in zip(("reconstruction", "matrices", "shifts"), needed) if want]
        expected = bracewell.project_gradients(volume, matrices, cotangent, shifts, filters, wanted=wanted, shape=shape, width=sizes[-1], **keywords)
        found = bracewell._core.project_gradients_tensors(cotangent, volume, matrices, shifts, filters, *needed, *options)
        weights = numbers(shared, poses, *image).abs()
        keywords = dict(shape=sizes, width=shape[-1], interpolation="catmull_rom", oversampling=1.0, kernel_weights="absolute")
        sums = bracewell.backproject(cotangent, matrices, shifts, filters, weights=weights, **keywords)
        pairs = [*zip(expected, found), *zip(sums, bracewell._core.backproject_tensors(cotangent, matrices, shifts, filters, weights, *to_volume))]
        slopes, weight_slopes = numbers(*sums[0].shape, dtype=dtype), numbers(*sums[0].shape)
        needed = (True, True, True, shifts is not None)
        wanted = [name for name, want in zip(("projections", "weights", "matrices", "shifts"), needed) if want]
        expected = bracewell.backproject_gradients(cotangent, matrices, slopes, weight_slopes, shifts, filters, weights=weights, wanted=wanted, **keywords)
        pairs += zip(expected, bracewell._core.backproject_gradients_tensors(slopes, weight_slopes, cotangent, matrices, shifts, filters, weights,
                                                                             *needed, *to_volume))
        for one, other in pairs:
            assert one is None and other is None or torch.allclose(one, other, rtol=tolerance, atol=10 * tolerance)


@one_step
def test_one_step_leaves_unusual_calls_to_the_functions():
    volume, matrices = torch.randn(1, 8, 8, 5, dtype=torch.complex64), torch.eye(3).reshape(1, 1, 3, 3)
    shifts, options = torch.zeros(1, 1, 2), [[8, 8], 8, "linear", None, None, None, False]

    def tried(volume=volume, matrices=matrices, shifts=shifts, options=options):
        return operators._quick(bracewell._core.project_tensors, volume, matrices, shifts, None, *options)

    class Own(torch.Tensor):
        pass

    assert tried(shifts=torch.zeros(3, 1, 2)).shape == (3, 1, 8, 5)  # one volume is shared
    assert tried() is not None and tried(shifts=None) is not None and tried(torch.nn.Parameter(volume)) is not None
    for unusual in (dict(volume=volume.conj()), dict(volume=volume.to(torch.complex128)), dict(volume=volume.transpose(1, 2)), dict(volume=volume[0]),
                    dict(volume=volume.real.contiguous()), dict(volume=volume.as_subclass(Own)), dict(volume=volume.numpy()), dict(volume=None),
                    dict(volume=volume[:0]), dict(volume=volume.to("meta")), dict(matrices=matrices[:, :, :2, :2].contiguous()), dict(matrices=None),
                    dict(matrices=torch.cat([matrices, matrices], 3)[..., ::2]), dict(matrices=matrices.to(torch.float16)),
                    dict(shifts=torch.zeros(1, 1, 3)), dict(shifts=torch.zeros(1, 1, 2, dtype=torch.complex64).conj().imag),
                    dict(options=[[8], 8, *options[2:]]), dict(options=[[8, -8], 8, *options[2:]]), dict(options=[[8, 8], 11, *options[2:]])):
        assert tried(**unusual) is None, unusual
    with pytest.raises(ValueError, match="oversampling: expected"):
        tried(options=[[6, 6], 8, *options[2:]])
    with pytest.raises(ValueError, match="kernel_weights: expected signed or absolute"):
        operators.backproject(volume[None], matrices, kernel_weights="squared")
    with pytest.raises(TypeError, match="radius: expected a number"):
        operators.project(volume, matrices, radius="far")


def test_tensors_that_nothing_follows_need_no_dispatcher():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.append(str(function))
            return function(*args, **(kwargs or {}))

    peer = pytest.importorskip("bracewell.torch_projectors")
    volume, matrices = torch.randn(1, 8, 8, 5, dtype=torch.complex64), torch.eye(3).reshape(1, 1, 3, 3)
    with torch.profiler.profile() as profile:
        expected = peer.project_3d_to_2d_forw(volume, matrices)
        with_gradient = peer.project_3d_to_2d_forw(volume.clone().requires_grad_(), matrices)
    assert not [event.name for event in profile.events() if event.name.startswith("bracewell::")]
    assert torch.equal(expected, with_gradient) and with_gradient.requires_grad
    with Names() as names:  # a mode sees the operator, and so do tensors without data
        assert torch.equal(peer.project_3d_to_2d_forw(volume, matrices), expected)
    assert any("bracewell.project" in name for name in names.seen)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = peer.project_3d_to_2d_forw(mode.from_tensor(volume), mode.from_tensor(matrices))
    assert fake.shape == expected.shape and fake.dtype == expected.dtype


def test_wrong_calls_are_wrong_every_time():
    peer = pytest.importorskip("bracewell.torch_projectors")
    volume, matrices = torch.randn(1, 8, 8, 5, dtype=torch.complex64), torch.eye(3).reshape(1, 1, 3, 3)
    for _ in range(2):
        peer.project_3d_to_2d_forw(volume, matrices)
        with pytest.raises(ValueError, match="expected a square"):
            peer.project_3d_to_2d_forw(volume, matrices, output_shape=(8, 6))
        with pytest.raises(ValueError, match="shifts: expected"):
            peer.project_3d_to_2d_forw(volume, matrices, shifts=torch.zeros(1, 1, 3))
        with pytest.raises(ValueError, match="linear or cubic"):
            peer.project_3d_to_2d_forw(volume, matrices, interpolation="nearest")
        with pytest.raises(TypeError, match="matrices: expected an array"):
            bracewell.project(volume, [[1, 0], [0, 1]])
        with pytest.raises(TypeError, match="width: expected a whole number"):
            bracewell.project(volume, matrices, width=[8])


def test_the_drop_in_compiles():
    peer = pytest.importorskip("bracewell.torch_projectors")
    volume, matrices = torch.randn(1, 8, 8, 5, dtype=torch.complex64), torch.eye(3).reshape(1, 1, 3, 3)

    def work(volume, matrices):
        return peer.project_3d_to_2d_forw(volume, matrices, output_shape=(6, 6)).abs().sum()

    leaves = [volume.clone().requires_grad_(), volume.clone().requires_grad_()]
    for leaf, function in zip(leaves, (work, torch.compile(work, fullgraph=True, backend="aot_eager"))):
        function(leaf, matrices).backward()
    assert torch.allclose(leaves[0].grad, leaves[1].grad)


def test_dual_numbers_have_tangents_without_transforms():
    from torch.autograd import forward_ad

    volume, matrices, shifts, _, _, _ = (value.detach() if isinstance(value, torch.Tensor) else value for value in problem(3, 2, 6, 6))
    direction = torch.randn_like(volume)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(operators.project(forward_ad.make_dual(volume, direction), matrices, shifts)).tangent
    assert torch.allclose(found, operators.project(direction, matrices, shifts))


# ---- Forward mode, gradients of gradients, vmap, and gradients of where samples are ------------------------------------


def differences(function, inputs, directions, step=1e-6):
    moved = [[value if direction is None else value + sign * step * direction for value, direction in zip(inputs, directions)]
             for sign in (1, -1)]
    return (function(*moved[0]) - function(*moved[1])) / (2 * step)


@pytest.mark.parametrize("n", [6, 7])
def test_projection_has_forward_mode(n):
    volume, matrices, shifts, filters, half, _ = (tensor.detach() if isinstance(tensor, torch.Tensor) else tensor
                                                  for tensor in problem(3, 2, n, n))
    inputs = volume, shifts, filters

    def function(volume, shifts, filters):
        return operators.project(volume, matrices, shifts, filters, width=n)

    directions = [torch.randn_like(value) for value in inputs]
    found = torch.func.jvp(function, inputs, tuple(directions))[1]
    assert torch.allclose(found, differences(function, inputs, directions), rtol=1e-6, atol=1e-7)
    with pytest.raises(NotImplementedError, match="project: expected no forward-mode derivative of matrices"):
        torch.func.jvp(lambda m: operators.project(volume, m, width=n), (matrices,), (matrices,))

    images, weights = torch.randn(1, 2, *half, dtype=torch.complex128), torch.rand(1, 2, *half, dtype=torch.float64)
    for part in (0, 1):
        def insert(images, filters, weights):
            return operators.backproject(images, matrices, shifts, filters, weights=weights, width=n)[part]  # noqa: B023
        directions = [torch.randn_like(value) for value in (images, filters, weights)]
        found = torch.func.jvp(insert, (images, filters, weights), tuple(directions))[1]
        assert torch.allclose(found, differences(insert, (images, filters, weights), directions), rtol=1e-6, atol=1e-6)


def test_spectra_have_second_derivatives_and_vmap():
    volume, matrices, shifts, filters, half, options = (value.detach() if isinstance(value, torch.Tensor) else value
                                                        for value in problem(3, 2, 4, 4))

    def project(volume):
        return operators.project(volume, matrices, shifts, filters, **options)

    def insert(images):
        return operators.backproject(images, matrices, shifts, filters, **options)[0]

    images = waves(1, 2, *half)
    assert gradgradcheck(project, (volume.requires_grad_(),), fast_mode=True, nondet_tol=1e-10) and gradgradcheck(insert, (images,), fast_mode=True, nondet_tol=1e-10)
    volumes = torch.randn(3, *volume.shape, dtype=torch.complex128)
    assert torch.allclose(torch.func.vmap(project)(volumes), torch.stack([project(one) for one in volumes]))

    def loss(volume):
        return project(volume).abs().square().sum()

    direction = torch.randn_like(volumes[0])  # Hessian times a vector, by forward over reverse: 2 A^H A is linear
    found = torch.func.jvp(torch.func.grad(loss), (volumes[0],), (direction,))[1]
    assert torch.allclose(found, torch.func.grad(loss)(direction))


@pytest.mark.parametrize("shape", [(5,), (3, 4)])
def test_nonuniform_points_have_derivatives(shape):
    points, samples = (torch.rand(6, len(shape), dtype=torch.float64) - 0.5).requires_grad_(), waves(2, 6)
    images, options = waves(2, *shape), dict(tolerance=1e-12)

    def adjoint(values, points):
        return operators.NonuniformFFT(points, shape, **options).adjoint(values)

    def forward(values, points):
        return operators.NonuniformFFT(points, shape, **options).forward(values)

    for function, values in ((adjoint, samples), (forward, images)):
        assert gradcheck(function, (values, points), check_forward_ad=True, atol=1e-4, fast_mode=True, nondet_tol=1e-10)
        inputs = values.detach(), points.detach()
        directions = [torch.randn_like(value) for value in inputs]
        found = torch.func.jvp(function, inputs, tuple(directions))[1]
        assert torch.allclose(found, differences(function, inputs, directions, 1e-5), rtol=1e-5, atol=1e-5)
        batch = torch.stack([inputs[0], 2 * inputs[0]], 1)
        assert torch.allclose(torch.func.vmap(function, (1, None))(batch, inputs[1])[1], 2 * function(*inputs))
    if len(shape) == 1:
        assert gradgradcheck(adjoint, (samples, points), atol=1e-4, fast_mode=True, nondet_tol=1e-10)
        assert gradgradcheck(forward, (images, points), atol=1e-4, fast_mode=True, nondet_tol=1e-10)


@pytest.mark.parametrize("units", ["transpose", "line_integrals"])
def test_angles_shifts_and_centre_have_gradients(units):
    angles, shifts = torch.tensor(ANGLES, dtype=torch.float64).requires_grad_(), real(3)
    centre = torch.tensor(3.7, dtype=torch.float64, requires_grad=True)

    def beam(angles, shifts, centre):
        return operators.Tomography(angles, 7, shifts=shifts, centre=centre, units=units, tolerance=1e-12)

    def project(images, *where):
        return beam(*where).project(images)

    def backproject(sinograms, *where):
        return beam(*where).backproject(sinograms)

    images, sinograms = real(7, 7), real(3, 7)
    for function, values in ((project, images), (backproject, sinograms)):
        assert gradcheck(function, (values, angles, shifts, centre), fast_mode=True, nondet_tol=1e-10)
    inputs = images.detach(), angles.detach(), shifts.detach(), centre.detach()
    directions = [torch.randn_like(value) for value in inputs]
    found = torch.func.jvp(project, inputs, tuple(directions))[1]
    assert torch.allclose(found, differences(project, inputs, directions), rtol=1e-6, atol=1e-7)
    with pytest.raises(NotImplementedError, match="forward-mode derivative of angles"):
        torch.func.jvp(lambda a: beam(a, inputs[2], 3.7).backproject(sinograms.detach()), (inputs[1],), (directions[1],))
    with pytest.raises(ValueError, match="method: expected fourier"):
        operators.Tomography(angles, 7, method="line")


def test_linear_pairs_have_forward_mode_and_vmap():
    beam = operators.Tomography(ANGLES, 8, units="line_integrals")
    images = torch.randn(3, 2, 8, 8, dtype=torch.float64)
    assert torch.allclose(torch.func.vmap(beam.project)(images), torch.stack([beam.project(one) for one in images]))
    rows = beam.project(images[0])
    assert torch.allclose(torch.func.jvp(beam.project, (images[1],), (images[0],))[1], rows)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(rows, rows)
        tangent = torch.autograd.forward_ad.unpack_dual(beam.backproject(dual)).tangent
        assert torch.allclose(tangent, beam.backproject(rows))
    assert torch.func.jacfwd(beam.project)(images[0, 0]).shape == (3, 8, 8, 8)


def test_contrast_and_ptychography_in_other_modes():
    defocus = torch.tensor([9000.0, 12000.0], dtype=torch.float64, requires_grad=True)
    contrast, voltage = torch.tensor(0.1, dtype=torch.float64, requires_grad=True), 200

    def ctf(defocus, contrast):
        optics = bracewell.CTFParameters(defocus, defocus - 500, 20, voltage, 2.7, contrast)
        return operators.evaluate_ctf(optics, (7, 7), 2.0, torch.zeros(1, dtype=torch.float64))

    assert gradcheck(ctf, (defocus, contrast), eps=1e-3, atol=1e-6)
    with pytest.raises(TypeError, match="expected values that need no gradient"):
        bracewell.evaluate_ctf(bracewell.CTFParameters(defocus, defocus), (6, 6), 2.0, torch.zeros(1))

    positions = torch.tensor([[0, 0], [1, 2], [2.3, 1.2]], dtype=torch.float64)
    loss = operators.PtychographyLoss(torch.rand(3, 8, 8, dtype=torch.float64), positions, (9, 9), 6, refine_positions=True)
    inputs = waves(9, 9).detach(), waves(6, 6).detach(), positions + 0.1
    directions = [torch.randn_like(value) for value in inputs]
    found = torch.func.jvp(loss, inputs, tuple(directions))[1]
    assert torch.allclose(found, differences(loss, inputs, directions, 1e-7), rtol=1e-5)
    assert torch.allclose(torch.func.grad(lambda o: loss(o, *inputs[1:]))(inputs[0]),
                          torch.view_as_complex(torch.autograd.functional.jacobian(
                              lambda o: loss(torch.view_as_complex(o), *inputs[1:]), torch.view_as_real(inputs[0]))))


def test_differentiable_plans_are_saved(tmp_path):
    beam, plan = operators.Tomography(ANGLES, 8, units="line_integrals"), operators.NonuniformFFT(torch.rand(7, 2), (6, 5))
    torch.save((beam, plan), tmp_path / "plans.pt")
    other_beam, other_plan = torch.load(tmp_path / "plans.pt", weights_only=False)
    image, values = torch.rand(8, 8), torch.rand(6, 5, dtype=torch.complex64)
    assert torch.equal(other_beam.project(image), beam.project(image)) and torch.equal(other_plan.forward(values), plan.forward(values))
    assert repr(plan).startswith("bracewell.torch.NonuniformFFT(points=float32[7, 2]") and repr(beam).startswith("bracewell.torch.Tomography(")


class Numbers(torch.utils.data.Dataset):
    beam = bracewell.Tomography(ANGLES, 8)

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.beam.project(torch.full((8, 8), float(i)))


def test_workers_that_are_forked_after_use_say_so():
    Numbers()[0]
    with pytest.raises(RuntimeError, match="forked before the first call"):
        list(torch.utils.data.DataLoader(Numbers(), num_workers=1, multiprocessing_context="fork"))
