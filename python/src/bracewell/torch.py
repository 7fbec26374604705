# SPDX-License-Identifier: MIT
"""The operators as differentiable functions of PyTorch, on CPU and GPU, on the current stream.

They are custom operators (``torch.ops.bracewell``), which ``torch.compile`` takes as they are, with hand-written gradients:
exact derivatives with respect to every stored number. Gradients of gradients are refused, but for the linear pairs of
`NonuniformFFT` and `Tomography`, which have them.
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any, List, Optional, Sequence, Tuple
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from . import gridding as _gridding
from . import projection as _projection
from . import ptychography as _ptychography
from . import tomography as _tomography

__all__ = ["NonuniformFFT", "PtychographyLoss", "Tomography", "backproject", "insert", "project", "sample"]


def _ready(tensor: Optional[Tensor]) -> Optional[Tensor]:
    """A tensor as the operators read it."""
    return None if tensor is None else tensor.detach().resolve_conj().resolve_neg().contiguous()


def _like(gradient: Tensor, tensor: Tensor) -> Tensor:
    """The sum of a gradient over the axes that a tensor shares."""
    return gradient.sum_to_size(tensor.shape)


def _extent(axis: int, *tensors: Optional[Tensor]) -> int:
    return max(tensor.shape[axis] for tensor in tensors if tensor is not None)


def _refuse(name: str):
    """No second derivatives of an operator that is itself a gradient."""

    def backward(ctx, *gradients):
        raise NotImplementedError(f"bracewell.torch.{name}: expected one backward pass, found a gradient of a gradient, which is "
                                  "not implemented.")

    return backward


def _register(operator, fake, backward, save=None):
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=save)


# ---- Projection -----------------------------------------------------------------------------------------------------


@torch.library.custom_op("bracewell::project", mutates_args=())
def _project(reconstruction: Tensor, matrices: Tensor, shifts: Optional[Tensor], filters: Optional[Tensor], shape: List[int],
             width: int, interpolation: str, oversampling: Optional[float], radius: Optional[float],
             ewald_radius: Optional[float], skip_redundant: bool) -> Tensor:
    return _projection.project(_ready(reconstruction), _ready(matrices), _ready(shifts), _ready(filters), shape=shape, width=width,
                               interpolation=interpolation, oversampling=oversampling, radius=radius, ewald_radius=ewald_radius)


def _project_fake(reconstruction, matrices, shifts, filters, shape, *_):
    return reconstruction.new_empty((_extent(0, reconstruction, matrices, shifts, filters), _extent(1, matrices, shifts, filters),
                                     *shape[:-1], shape[-1] // 2 + 1))


@torch.library.custom_op("bracewell::project_gradients", mutates_args=())
def _project_gradients(cotangent: Tensor, reconstruction: Tensor, matrices: Tensor, shifts: Optional[Tensor],
                       filters: Optional[Tensor], wanted: str, shape: List[int], width: int, interpolation: str,
                       oversampling: Optional[float], radius: Optional[float], ewald_radius: Optional[float],
                       skip_redundant: bool) -> List[Tensor]:
    given = _projection.project_gradients(_ready(reconstruction), _ready(matrices), _ready(cotangent), _ready(shifts),
                                          _ready(filters), wanted=wanted.split(), shape=shape, width=width, interpolation=interpolation,
                                          oversampling=oversampling, radius=radius, ewald_radius=ewald_radius,
                                          skip_redundant=skip_redundant)
    return [getattr(given, name) for name in wanted.split()]


def _project_gradients_fake(cotangent, reconstruction, matrices, shifts, filters, wanted, *_):
    of = {"reconstruction": reconstruction, "matrices": matrices, "shifts": shifts}
    return [torch.empty_like(of[name], memory_format=torch.contiguous_format) for name in wanted.split()]


def _project_save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4])
    ctx.options = inputs[4:]


def _project_backward(ctx, cotangent):
    reconstruction, matrices, shifts, filters = ctx.saved_tensors
    names = ("reconstruction", "matrices", "shifts")
    wanted = [name for name, needed in zip(names, ctx.needs_input_grad) if needed]
    given = dict(zip(wanted, _project_gradients(cotangent, reconstruction, matrices, shifts, filters, " ".join(wanted),
                                                *ctx.options) if wanted else []))
    of_filters = None
    if ctx.needs_input_grad[3]:
        unfiltered = _project(reconstruction, matrices, shifts, None, *ctx.options)
        of_filters = _like((cotangent.conj() * unfiltered).real, filters)
    return (*(given.get(name) for name in names), of_filters, *[None] * len(ctx.options))


_register(_project, _project_fake, _project_backward, _project_save)
_register(_project_gradients, _project_gradients_fake, _refuse("project"))


def project(reconstruction: Tensor, matrices: Tensor, shifts: Optional[Tensor] = None, filters: Optional[Tensor] = None, *,
            shape: Optional[Sequence[int]] = None, width: Optional[int] = None, interpolation: str = "catmull_rom",
            oversampling: Optional[float] = None, radius: Optional[float] = None, ewald_radius: Optional[float] = None,
            skip_redundant: bool = False) -> Tensor:
    """`bracewell.project`, differentiable in reconstruction, matrices, shifts and filters.

    With skip_redundant, gradients leave out the samples on column 0 whose Friedel mate is stored too: the rule of the
    torch-projectors paper for losses on the full spectrum. By default they are exact.
    """
    volume = _projection._sizes("torch.project", "reconstruction", reconstruction, 1, width)
    return _project(reconstruction, matrices, shifts, filters, list(shape if shape is not None else volume[-2:]), volume[-1],
                    interpolation, oversampling, radius, ewald_radius, skip_redundant)


@torch.library.custom_op("bracewell::backproject", mutates_args=())
def _backproject(projections: Tensor, matrices: Tensor, shifts: Optional[Tensor], filters: Optional[Tensor],
                 weights: Optional[Tensor], shape: List[int], width: int, interpolation: str, oversampling: Optional[float],
                 radius: Optional[float], ewald_radius: Optional[float], kernel_weights: str) -> Tuple[Tensor, Tensor]:
    data, weight = _projection.backproject(_ready(projections), _ready(matrices), _ready(shifts), _ready(filters),
                                           weights=_ready(weights), shape=shape, width=width, interpolation=interpolation,
                                           oversampling=oversampling, radius=radius, ewald_radius=ewald_radius,
                                           kernel_weights=kernel_weights)
    return data, data.real.new_empty(0) if weight is None else weight


def _backproject_fake(projections, matrices, shifts, filters, weights, shape, *_):
    extents = (projections.shape[0], *shape[:-1], shape[-1] // 2 + 1)
    real = projections.dtype.to_real()
    return projections.new_empty(extents), projections.new_empty(0 if weights is None else extents, dtype=real)


@torch.library.custom_op("bracewell::backproject_gradients", mutates_args=())
def _backproject_gradients(data: Tensor, weight: Optional[Tensor], projections: Tensor, matrices: Tensor,
                           shifts: Optional[Tensor], filters: Optional[Tensor], weights: Optional[Tensor], wanted: str,
                           shape: List[int], width: int, interpolation: str, oversampling: Optional[float],
                           radius: Optional[float], ewald_radius: Optional[float], kernel_weights: str) -> List[Tensor]:
    given = _projection.backproject_gradients(_ready(projections), _ready(matrices), _ready(data), _ready(weight), _ready(shifts),
                                              _ready(filters), weights=_ready(weights), wanted=wanted.split(), shape=shape, width=width,
                                              interpolation=interpolation, oversampling=oversampling, radius=radius,
                                              ewald_radius=ewald_radius, kernel_weights=kernel_weights)
    return [getattr(given, name) for name in wanted.split()]


def _backproject_gradients_fake(data, weight, projections, matrices, shifts, filters, weights, wanted, *_):
    of = {"projections": projections, "matrices": matrices, "shifts": shifts}
    return [projections.new_empty(projections.shape, dtype=projections.dtype.to_real()) if name == "weights" else
            torch.empty_like(of[name], memory_format=torch.contiguous_format) for name in wanted.split()]


def _backproject_save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:5])
    ctx.options = inputs[5:]


def _backproject_backward(ctx, data, weight):
    projections, matrices, shifts, filters, weights = ctx.saved_tensors
    if weights is None:
        weight = None
    names = ("projections", "matrices", "shifts", "filters", "weights")
    needed = dict(zip(names, ctx.needs_input_grad))
    wanted = [name for name in ("projections", "matrices", "shifts", "weights") if needed[name]]
    given = dict(zip(wanted, _backproject_gradients(data, weight, projections, matrices, shifts, filters, weights,
                                                    " ".join(wanted), *ctx.options) if wanted else []))
    if needed["weights"]:
        given["weights"] = _like(given["weights"], weights)
    if needed["filters"]:
        inserted, = _backproject_gradients(data, weight, projections, matrices, shifts, None, weights, "projections",
                                           *ctx.options)
        given["filters"] = _like((inserted.conj() * projections).real, filters)
    return (*(given.get(name) for name in names), *[None] * len(ctx.options))


_register(_backproject, _backproject_fake, _backproject_backward, _backproject_save)
_register(_backproject_gradients, _backproject_gradients_fake, _refuse("backproject"))


def backproject(projections: Tensor, matrices: Tensor, shifts: Optional[Tensor] = None, filters: Optional[Tensor] = None, *,
                weights: Optional[Tensor] = None, shape: Optional[Sequence[int]] = None, width: Optional[int] = None,
                interpolation: str = "catmull_rom", oversampling: Optional[float] = None, radius: Optional[float] = None,
                ewald_radius: Optional[float] = None, kernel_weights: str = "signed") -> Tuple[Tensor, Optional[Tensor]]:
    """`bracewell.backproject`, differentiable in projections, matrices, shifts, filters and weights."""
    sizes = _projection._sizes("torch.backproject", "projections", projections, 2, width)
    if shape is None:
        shape = sizes if matrices.shape[-1] <= len(sizes) else (sizes[0],) + sizes
    data, weight = _backproject(projections, matrices, shifts, filters, weights, list(shape), sizes[-1], interpolation, oversampling,
                                radius, ewald_radius, kernel_weights)
    return data, None if weights is None else weight


# ---- Plans: operators know them by number ---------------------------------------------------------------------------

_numbers = count()
_plans: WeakValueDictionary = WeakValueDictionary()


class _Numbered:
    def _enter(self) -> None:
        self._number = next(_numbers)
        _plans[self._number] = self


@torch.library.custom_op("bracewell::linear", mutates_args=())
def _linear(values: Tensor, plan: int, adjoint: bool) -> Tensor:
    return _plans[plan]._apply(_ready(values), adjoint)


def _linear_fake(values, plan, adjoint):
    return values.new_empty(_plans[plan]._shape(values.shape, adjoint))


def _linear_save(ctx, inputs, output):
    _, ctx.plan, ctx.adjoint = inputs
    ctx.keep = _plans[ctx.plan]


def _linear_backward(ctx, cotangent):
    return ctx.keep._transposed(cotangent, ctx.adjoint), None, None


_register(_linear, _linear_fake, _linear_backward, _linear_save)


class NonuniformFFT(_Numbered):
    """`bracewell.NonuniformFFT`, differentiable in samples and images, as often as one likes; arguments as there."""

    def __init__(self, points: Any, shape: Sequence[int], **options):
        self._plan = _gridding.NonuniformFFT(points.detach() if isinstance(points, Tensor) else points, shape, **options)
        self._enter()

    def adjoint(self, samples: Tensor) -> Tensor:
        """Samples, complex ``[slices, points]`` or ``[points]``, to images."""
        return _linear(samples, self._number, True)

    def forward(self, images: Tensor) -> Tensor:
        """Images, complex ``[slices, (depth,) height, width]`` or without slices, to samples."""
        return _linear(images, self._number, False)

    def _apply(self, values, adjoint):
        return self._plan.adjoint(values) if adjoint else self._plan.forward(values)

    def _transposed(self, cotangent, adjoint):
        return _linear(cotangent, self._number, not adjoint)

    def _shape(self, shape, adjoint):
        sizes = self._plan.shape
        return (*shape[:-1], *sizes) if adjoint else (*shape[:len(shape) - len(sizes)], len(self._plan.points))


class Tomography(_Numbered):
    """`bracewell.Tomography`, differentiable in sinograms and images, as often as one likes; arguments as there."""

    def __init__(self, angles: Any, width: int, **options):
        self._plan = _tomography.Tomography(angles, width, **options)
        self._factor = None
        if options.get("units") == "line_integrals":
            weights = options.get("weights")
            weights = torch.ones(len(self._plan.angles)) if weights is None else torch.as_tensor(weights)
            if bool((weights <= 0).any()):
                raise ValueError("bracewell.torch.Tomography: weights: expected positive ones in units of line integrals, found others")
            self._factor = (len(self._plan.angles) / math.pi / weights.double())[:, None]
        self._enter()

    def backproject(self, sinograms: Tensor) -> Tensor:
        """Sinograms ``[slices, angles, width]`` to images ``[slices, n, n]``, or both without slices."""
        return _linear(sinograms, self._number, True)

    def project(self, images: Tensor) -> Tensor:
        """Images to sinograms."""
        return _linear(images, self._number, False)

    def _apply(self, values, adjoint):
        return self._plan.backproject(values) if adjoint else self._plan.project(values)

    def _transposed(self, cotangent, adjoint):
        factor = None if self._factor is None else self._factor.to(cotangent)
        if factor is not None and not adjoint:
            cotangent = cotangent * factor  # of project: line integrals are the transpose times this
        gradient = _linear(cotangent, self._number, not adjoint)
        return gradient / factor if factor is not None and adjoint else gradient

    def _shape(self, shape, adjoint):
        plan = self._plan
        return (*shape[:-2], plan.image, plan.image) if adjoint else (*shape[:-2], len(plan.angles), plan.width)


@torch.library.custom_op("bracewell::ptychography", mutates_args=())
def _ptychography_loss(object: Tensor, probe: Tensor, positions: Optional[Tensor], subset: Optional[Tensor], plan: int,
                       wanted: str) -> List[Tensor]:
    given = _plans[plan]._plan.evaluate(_ready(object), _ready(probe), _ready(positions), wanted=wanted.split(), subset=_ready(subset))
    return [given.loss, *(getattr(given, name) for name in wanted.split())]


def _ptychography_fake(object, probe, positions, subset, plan, wanted):
    real = object.dtype.to_real()
    of = {"object": lambda: torch.empty_like(object), "probe": lambda: torch.empty_like(probe),
          "positions": lambda: object.new_empty(positions.shape, dtype=real)}
    return [object.new_empty(1, dtype=torch.float64), *(of[name]() for name in wanted.split())]


def _ptychography_save(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.wanted = inputs[5].split()
    ctx.save_for_backward(*output[1:])
    ctx.types = [None if tensor is None else tensor.dtype for tensor in inputs[:3]]


def _ptychography_backward(ctx, gradients):
    slope = gradients[0]
    if any(gradient is not None for gradient in gradients[1:]):
        _refuse("PtychographyLoss")(ctx)
    if slope is None:
        return (None,) * 6
    given = dict(zip(ctx.wanted, ctx.saved_tensors))
    result = []
    for name, dtype in zip(("object", "probe", "positions"), ctx.types):
        result.append((given[name] * slope.to(given[name].real.dtype)).to(dtype) if name in given else None)
    return (*result, None, None, None)


_register(_ptychography_loss, _ptychography_fake, _ptychography_backward, _ptychography_save)


class PtychographyLoss(_Numbered):
    """`bracewell.PtychographyLoss` as a differentiable function; arguments as there."""

    def __init__(self, patterns: Tensor, positions: Any, object_shape: Sequence[int], probe_size: int, **options):
        self._plan = _ptychography.PtychographyLoss(_ready(patterns), positions, object_shape, probe_size, **options)
        self._enter()

    def __call__(self, object: Tensor, probe: Tensor, positions: Optional[Tensor] = None,
                 subset: Optional[Tensor] = None) -> Tensor:
        """The loss, a float64 tensor without axes, differentiable in object, probe and (where they are refined, float64)
        positions. Gradients are computed in the same pass, for those that require them."""
        wanted = [name for name, tensor in (("object", object), ("probe", probe), ("positions", positions))
                  if tensor is not None and tensor.requires_grad and torch.is_grad_enabled()]
        return _ptychography_loss(object, probe, positions, subset, self._number, " ".join(wanted))[0][0]


from ._torch_points import insert, sample  # noqa: E402 (takes what stands above)
