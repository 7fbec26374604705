# SPDX-License-Identifier: MIT
"""The functions of torch-projectors (https://github.com/warpem/torch-projectors), computed by Bracewell: change one import.

Signatures, shapes and defaults are theirs: ``linear`` or ``cubic`` (Catmull-Rom) interpolation, absolute kernel weights,
samples up to half the box of the projections, and gradients of projections that leave out the samples whose Friedel mate is
stored too. docs/torch-projectors.md lists what differs on purpose.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, Optional, Tuple, cast

from torch import Tensor, compiler

from .. import projection as _projection
from .. import torch as _operators

__all__ = ["backproject_2d_forw", "backproject_2d_to_3d_back", "backproject_2d_to_3d_forw", "project_2d_back", "project_2d_forw",
           "project_3d_to_2d_back", "project_3d_to_2d_forw"]

_KERNELS = {"linear": "linear", "cubic": "catmull_rom"}


def _kernel(interpolation: str) -> str:
    if interpolation not in _KERNELS:
        raise ValueError(f"bracewell.torch_projectors: interpolation: expected linear or cubic, found {interpolation}")
    return _KERNELS[interpolation]


def _with_axes(tensor: Optional[Tensor], axes: int) -> Optional[Tensor]:
    """Axes of extent 1 in front, up to that many."""
    while tensor is not None and tensor.dim() < axes:
        tensor = tensor.unsqueeze(0)
    return tensor


def _check_box(function: str, name: str, spectrum: Tensor, leading: int, dimensions: int) -> int:
    """The side of a square or cubic half spectrum."""
    axes = leading + dimensions
    if spectrum.dim() != axes:
        raise ValueError(f"bracewell.torch_projectors.{function}: {name}: expected {axes} axes, found {spectrum.dim()}")
    *sides, columns = spectrum.shape[-dimensions:]
    side = sides[-1]
    start = f"bracewell.torch_projectors.{function}: {name}: "
    if side % 2 != 0:
        raise ValueError(f"{start}Boxsize {side} must be even")
    if any(other != side for other in sides) or side != 2 * (columns - 1):
        raise ValueError(f"{start}expected boxsize {side} to match all sides and {side // 2 + 1} columns, found "
                         f"{tuple(spectrum.shape[-dimensions:])}")
    return side


def _check_batch(function: str, rotations: Tensor, other: Tensor) -> None:
    if rotations.shape[0] not in (1, other.shape[0]):
        raise ValueError(f"bracewell.torch_projectors.{function}: Batch size of rotations must be 1 or match, expected "
                         f"{other.shape[0]}, found {rotations.shape[0]}")


class _Shape(NamedTuple):
    """What checks read of a tensor."""

    shape: Tuple[int, ...]

    def dim(self) -> int:
        return len(self.shape)


@lru_cache(maxsize=256)
def _project_options(function, dimensions, reconstruction, rotations, output_shape, interpolation, oversampling, cutoff):
    """Options of `bracewell.torch.project` for a call that is right, of shapes, with which calls are checked once, or tensors."""
    if isinstance(reconstruction, tuple):
        reconstruction, rotations = _Shape(reconstruction), _Shape(rotations)
    side = _check_box(function, "reconstruction", reconstruction, 1, dimensions)
    shape = (side, side) if output_shape is None else output_shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"bracewell.torch_projectors.{function}: output_shape: expected a square, found {shape}")
    if shape[0] % 2 != 0:
        raise ValueError(f"bracewell.torch_projectors.{function}: output_shape: expected even sides, found {shape}")
    _check_batch(function, rotations, reconstruction)
    volume = _projection._sizes("torch.project", "reconstruction", reconstruction, 1, None)
    return [list(shape), volume[-1], _kernel(interpolation), float(oversampling),
            shape[0] / 2 if cutoff is None else float(cutoff), None, True]


def _project(function, dimensions, reconstruction, rotations, shifts, output_shape, interpolation, oversampling, cutoff):
    if reconstruction.dim() < dimensions:
        raise ValueError(f"bracewell.torch_projectors.{function}: reconstruction: expected at least {dimensions} axes, found "
                         f"{reconstruction.dim()}")
    reconstruction = _with_axes(reconstruction, dimensions + 1)
    rotations, shifts = _with_axes(rotations, 4), _with_axes(shifts, 3)
    shape = None if output_shape is None else tuple(output_shape)
    if compiler.is_compiling():
        options = _project_options.__wrapped__(function, dimensions, reconstruction, rotations, shape, interpolation, oversampling,
                                               cutoff)
    else:
        options = _project_options(function, dimensions, reconstruction.shape, rotations.shape, shape, interpolation,
                                   oversampling, cutoff)
    return _operators._project_at(reconstruction, rotations, shifts, None, options)


@lru_cache(maxsize=256)
def _backproject_options(function, dimensions, projections, rotations, weights, interpolation, oversampling, cutoff):
    """Options of `bracewell.torch.backproject` for a call that is right, of shapes, with which calls are checked once, or tensors."""
    if isinstance(projections, tuple):
        projections, rotations = _Shape(projections), _Shape(rotations)
        weights = None if weights is None else _Shape(weights)
    if projections.dim() != 4:
        raise ValueError(f"bracewell.torch_projectors.{function}: Projections must be a 4D tensor [B, P, h, w/2+1], found "
                         f"{projections.dim()} axes")
    side = _check_box(function, "projections", projections, 2, 2)
    if weights is not None and weights.shape != projections.shape:
        raise ValueError(f"bracewell.torch_projectors.{function}: Weights shape {tuple(weights.shape)} must match projections "
                         f"shape {tuple(projections.shape)}")
    _check_batch(function, rotations, projections)
    padded = 2 * math.ceil(math.ceil(side * oversampling) / 2)
    return [[padded] * dimensions, side, _kernel(interpolation), float(oversampling), side / 2 if cutoff is None else float(cutoff), None,
            "absolute"]


def _backproject(function, dimensions, projections, rotations, weights, shifts, interpolation, oversampling, cutoff):
    rotations, shifts = _with_axes(rotations, 4), _with_axes(shifts, 3)
    if compiler.is_compiling():
        options = _backproject_options.__wrapped__(function, dimensions, projections, rotations, weights, interpolation, oversampling,
                                                   cutoff)
    else:
        options = _backproject_options(function, dimensions, projections.shape, rotations.shape,
                                       None if weights is None else weights.shape, interpolation, oversampling, cutoff)
    if weights is not None and not weights.is_floating_point():
        raise ValueError(f"bracewell.torch_projectors.{function}: weights: must be real-valued, found {weights.dtype}")
    return _operators._backproject_at(projections, rotations, shifts, None, weights, options)


def _project_back(projections, reconstruction, rotations, shifts, interpolation, oversampling):
    side = projections.shape[-2]
    return _projection.project_gradients(_operators._ready(reconstruction), _operators._ready(_with_axes(rotations, 4)),
                                         _operators._ready(projections), _operators._ready(_with_axes(shifts, 3)),
                                         wanted=("reconstruction",), interpolation=_kernel(interpolation),
                                         oversampling=float(oversampling), radius=side / 2, skip_redundant=True).reconstruction


def project_2d_forw(reconstruction: Tensor, rotations: Tensor, shifts: Optional[Tensor] = None,
                    output_shape: Optional[Tuple[int, ...]] = None, interpolation: str = "linear", oversampling: float = 1.0,
                    fourier_radius_cutoff: Optional[float] = None) -> Tensor:
    """Projections ``[B, P, h, w/2+1]`` of images ``[B, H, W/2+1]`` turned by ``[B, P, 2, 2]``."""
    return _project("project_2d_forw", 2, reconstruction, rotations, shifts, output_shape, interpolation, oversampling,
                    fourier_radius_cutoff)


def project_3d_to_2d_forw(reconstruction: Tensor, rotations: Tensor, shifts: Optional[Tensor] = None,
                          output_shape: Optional[Tuple[int, ...]] = None, interpolation: str = "linear", oversampling: float = 1.0,
                          fourier_radius_cutoff: Optional[float] = None) -> Tensor:
    """Projections ``[B, P, h, w/2+1]`` of volumes ``[B, D, H, W/2+1]`` in the poses ``[B, P, 3, 3]``."""
    return _project("project_3d_to_2d_forw", 3, reconstruction, rotations, shifts, output_shape, interpolation, oversampling,
                    fourier_radius_cutoff)


def project_2d_back(projections: Tensor, reconstruction: Tensor, rotations: Tensor, shifts: Optional[Tensor] = None,
                    interpolation: str = "linear", oversampling: float = 1.0) -> Tensor:
    """The gradient of the reconstruction alone, for a cotangent `projections` of `project_2d_forw`."""
    return _project_back(projections, reconstruction, rotations, shifts, interpolation, oversampling)


def project_3d_to_2d_back(projections: Tensor, reconstruction: Tensor, rotations: Tensor, shifts: Optional[Tensor] = None,
                          interpolation: str = "linear", oversampling: float = 1.0) -> Tensor:
    """The gradient of the reconstruction alone, for a cotangent `projections` of `project_3d_to_2d_forw`."""
    return _project_back(projections, reconstruction, rotations, shifts, interpolation, oversampling)


def backproject_2d_forw(projections: Tensor, rotations: Tensor, weights: Optional[Tensor] = None, shifts: Optional[Tensor] = None,
                        interpolation: str = "linear", oversampling: float = 1.0,
                        fourier_radius_cutoff: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    """Sums of projections and of weights, images ``[B, H, W/2+1]`` of oversampling times their box; the second is empty without weights."""
    return _backproject("backproject_2d_forw", 2, projections, rotations, weights, shifts, interpolation, oversampling,
                        fourier_radius_cutoff)


def backproject_2d_to_3d_forw(projections: Tensor, rotations: Tensor, weights: Optional[Tensor] = None,
                              shifts: Optional[Tensor] = None, interpolation: str = "linear", oversampling: float = 1.0,
                              fourier_radius_cutoff: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    """Sums of projections and of weights, volumes ``[B, H, H, W/2+1]`` of oversampling times their box; the second is empty without weights."""
    return _backproject("backproject_2d_to_3d_forw", 3, projections, rotations, weights, shifts, interpolation, oversampling,
                        fourier_radius_cutoff)


def backproject_2d_to_3d_back(reconstruction: Tensor, projections: Tensor, rotations: Tensor, shifts: Optional[Tensor] = None,
                              interpolation: str = "linear", oversampling: float = 1.0) -> Tensor:
    """The gradient of the projections alone, for a cotangent `reconstruction` of `backproject_2d_to_3d_forw`."""
    side = projections.shape[-2]
    gradients = _projection.backproject_gradients(
        _operators._ready(projections), _operators._ready(_with_axes(rotations, 4)), _operators._ready(reconstruction), None,
        _operators._ready(_with_axes(shifts, 3)), interpolation=_kernel(interpolation), oversampling=float(oversampling),
        radius=side / 2)
    return cast(Tensor, gradients.projections)
