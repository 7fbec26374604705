# SPDX-License-Identifier: MIT
"""Lists of points, and lines in real space, for `bracewell.torch`, which imports this."""

from __future__ import annotations

from typing import List, Optional, Sequence

import torch
from torch import Tensor

from . import lines as _lines
from . import points as _points
from .torch import _ready, _refuse, _register


@torch.library.custom_op("bracewell::sample", mutates_args=())
def _sample(grid: Tensor, points: Tensor, width: Optional[int], interpolation: str, mates: str) -> Tensor:
    return _points.sample(_ready(grid), _ready(points), width=width, interpolation=interpolation, mates=mates)


def _sample_fake(grid, points, *_):
    return grid.new_empty((max(grid.shape[0], points.shape[0]), points.shape[1]))


@torch.library.custom_op("bracewell::sample_gradients", mutates_args=())
def _sample_gradients(cotangent: Tensor, grid: Tensor, points: Tensor, wanted: str, width: Optional[int],
                      interpolation: str, mates: str) -> List[Tensor]:
    given = _points.sample_gradients(_ready(grid), _ready(points), _ready(cotangent), wanted=wanted.split(), width=width,
                                     interpolation=interpolation, mates=mates)
    return [getattr(given, name) for name in wanted.split()]


def _sample_gradients_fake(cotangent, grid, points, wanted, *_):
    of = {"grid": grid, "points": points}
    return [torch.empty_like(of[name], memory_format=torch.contiguous_format) for name in wanted.split()]


@torch.library.custom_op("bracewell::insert", mutates_args=())
def _insert(values: Tensor, points: Tensor, shape: List[int], batches: int, interpolation: str, mates: str) -> Tensor:
    return _points.insert(_ready(values), _ready(points), shape=shape, batches=batches, interpolation=interpolation, mates=mates)


def _insert_fake(values, points, shape, batches, *_):
    last = shape[-1] // 2 + 1 if values.is_complex() else shape[-1]
    return values.new_empty((batches, *shape[:-1], last))


@torch.library.custom_op("bracewell::insert_gradients", mutates_args=())
def _insert_gradients(cotangent: Tensor, values: Tensor, points: Tensor, wanted: str, width: Optional[int],
                      interpolation: str, mates: str) -> List[Tensor]:
    given = _points.insert_gradients(_ready(values), _ready(points), _ready(cotangent), wanted=wanted.split(), width=width,
                                     interpolation=interpolation, mates=mates)
    return [getattr(given, name) for name in wanted.split()]


def _insert_gradients_fake(cotangent, values, points, wanted, *_):
    of = {"values": values, "points": points}
    return [torch.empty_like(of[name], memory_format=torch.contiguous_format) for name in wanted.split()]


@torch.library.custom_op("bracewell::project_lines", mutates_args=())
def _project_lines(volume: Tensor, matrices: Tensor, shifts: Optional[Tensor], shape: List[int]) -> Tensor:
    return _lines.project_lines(_ready(volume), _ready(matrices), shifts=None if shifts is None else _ready(shifts), shape=shape)


def _project_lines_fake(volume, matrices, shifts, shape):
    moves = (1, 1) if shifts is None else shifts.shape
    return volume.new_empty((max(volume.shape[0], matrices.shape[0], moves[0]), max(matrices.shape[1], moves[1]), *shape))


@torch.library.custom_op("bracewell::project_lines_gradients", mutates_args=())
def _project_lines_gradients(cotangent: Tensor, volume: Tensor, matrices: Tensor, shifts: Optional[Tensor],
                             wanted: str) -> List[Tensor]:
    given = _lines.project_lines_gradients(_ready(volume), _ready(matrices), _ready(cotangent),
                                           shifts=None if shifts is None else _ready(shifts), wanted=wanted.split())
    return [getattr(given, name) for name in wanted.split()]


def _project_lines_gradients_fake(cotangent, volume, matrices, shifts, wanted):
    of = {"volume": volume, "matrices": matrices, "shifts": shifts}
    return [torch.empty_like(of[name], memory_format=torch.contiguous_format) for name in wanted.split()]


def _save_lines(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3])


def _project_lines_backward(ctx, cotangent):
    names = ("volume", "matrices", "shifts")
    wanted = [name for name, needed in zip(names, ctx.needs_input_grad) if needed]
    given = dict(zip(wanted, _project_lines_gradients(cotangent, *ctx.saved_tensors, " ".join(wanted)) if wanted else []))
    return (*(given.get(name) for name in names), None)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.options = inputs[2:]


def _gradients(ctx, names, gradients, *options):
    wanted = [name for name, needed in zip(names, ctx.needs_input_grad) if needed]
    given = dict(zip(wanted, gradients(*ctx.saved_tensors, " ".join(wanted), *options) if wanted else []))
    return (*(given.get(name) for name in names), *[None] * len(ctx.options))


def _sample_backward(ctx, cotangent):
    return _gradients(ctx, ("grid", "points"), lambda *arguments: _sample_gradients(cotangent, *arguments), *ctx.options)


def _insert_backward(ctx, cotangent):
    shape, _, interpolation, mates = ctx.options
    width = shape[-1] if cotangent.is_complex() else None
    return _gradients(ctx, ("values", "points"), lambda *arguments: _insert_gradients(cotangent, *arguments), width,
                      interpolation, mates)


_register(_project_lines, _project_lines_fake, _project_lines_backward, _save_lines)
_register(_project_lines_gradients, _project_lines_gradients_fake, _refuse("project_lines"))
_register(_sample, _sample_fake, _sample_backward, _save)
_register(_sample_gradients, _sample_gradients_fake, _refuse("sample"))
_register(_insert, _insert_fake, _insert_backward, _save)
_register(_insert_gradients, _insert_gradients_fake, _refuse("insert"))


def sample(grid: Tensor, points: Tensor, *, width: Optional[int] = None, interpolation: str = "catmull_rom",
           mates: str = "single") -> Tensor:
    """`bracewell.sample`, differentiable in grid and points. The backward pass takes one pass over the points."""
    return _sample(grid, points, width, interpolation, mates)


def insert(values: Tensor, points: Tensor, *, shape: Sequence[int], batches: Optional[int] = None,
           interpolation: str = "catmull_rom", mates: str = "single") -> Tensor:
    """`bracewell.insert` into zeros, differentiable in values and points."""
    return _insert(values, points, list(shape), values.shape[0] if batches is None else batches, interpolation, mates)


def project_lines(volume: Tensor, matrices: Tensor, *, shifts: Optional[Tensor] = None,
                  shape: Optional[Sequence[int]] = None) -> Tensor:
    """`bracewell.project_lines`, differentiable in volume, matrices and shifts."""
    return _project_lines(volume, matrices, shifts, list(volume.shape[2:] if shape is None else shape))
