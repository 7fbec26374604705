# SPDX-License-Identifier: MIT
"""Lists of points for `bracewell.torch`, which imports this."""

from __future__ import annotations

from typing import List, Optional, Sequence

import torch
from torch import Tensor

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
