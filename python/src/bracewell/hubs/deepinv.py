# SPDX-License-Identifier: MIT
"""The linear pairs as physics of deepinv, whose solvers, losses and unfolded networks take them::

    from bracewell.hubs.deepinv import TomographyPhysics
    physics = TomographyPhysics(angles, 64)
    sinograms = physics(images)          # [batch, channels, 64, 64] to [batch, channels, angles, 64]
    images = physics.A_dagger(sinograms)

They are differentiable, on CPU and GPU.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
from deepinv.physics import LinearPhysics

from .. import torch as _torch
from ..tomography import filter_projections

__all__ = ["NonuniformPhysics", "TomographyPhysics"]


def _each(function, values, axes):
    """Of batches and channels as slices."""
    leading = values.shape[:values.dim() - axes]
    found = function(values.reshape(-1, *values.shape[values.dim() - axes:]).contiguous())
    return found.reshape(*leading, *found.shape[1:])


class TomographyPhysics(LinearPhysics):
    """`bracewell.Tomography`: images ``[batch, channels, n, n]`` to sinograms ``[batch, channels, angles, width]``.

    Args:
        angles, width: of `bracewell.Tomography`.
        units: line_integrals by default, what is measured.
        options: others of `bracewell.Tomography`; those of LinearPhysics in `physics`.
    """

    def __init__(self, angles: Any, width: int, *, units: str = "line_integrals", physics: Optional[dict] = None, **options: Any):
        side = int(options.get("image") or width)
        super().__init__(img_size=(1, side, side), **(physics or {}))
        self.pair = _torch.Tomography(angles, width, units=units, **options)

    def A(self, x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return _each(self.pair.project, x, 2)

    def A_adjoint(self, y: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return _each(lambda rows: self.pair._scaled(self.pair.backproject, rows, False), y, 2)

    def fbp(self, y: torch.Tensor, **options: Any) -> torch.Tensor:
        """Filtered back-projection: a start for iterations; options of `filter_projections`."""
        return _each(lambda rows: self.pair.backproject(filter_projections(rows.detach(), **options)), y, 2)


class NonuniformPhysics(LinearPhysics):
    """`bracewell.NonuniformFFT`: complex images ``[batch, channels, *shape]`` to samples ``[batch, channels, points]``.

    Args:
        points, shape: of `bracewell.NonuniformFFT`, in cycles per pixel.
        options: others of `bracewell.NonuniformFFT`; those of LinearPhysics in `physics`.
    """

    def __init__(self, points: Any, shape: Sequence[int], *, physics: Optional[dict] = None, **options: Any):
        super().__init__(img_size=(1, *shape), **(physics or {}))
        self.pair, self.axes = _torch.NonuniformFFT(points, shape, **options), len(shape)

    def A(self, x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return _each(self.pair.forward, x, self.axes)

    def A_adjoint(self, y: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return _each(self.pair.adjoint, y, 1)
