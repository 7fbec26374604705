# SPDX-License-Identifier: MIT
"""The linear pairs as physics of deepinv, whose solvers, losses and unfolded networks take them::

    from bracewell.hubs.deepinv import TomographyPhysics
    physics = TomographyPhysics(angles, 64)
    sinograms = physics(images)          # [batch, channels, 64, 64] to [batch, channels, angles, 64]
    images = physics.A_dagger(sinograms)

They are differentiable, on CPU and GPU. The data fidelity of deepinv's own ptychography is in one pass the loss and its gradient::

    from bracewell.hubs.deepinv import PtychographyFidelity
    fidelity = PtychographyFidelity("amplitude")   # in place of deepinv.optim.AmplitudeLoss
    slope = fidelity.grad(x, y, deepinv.physics.Ptychography((1, 128, 128), probe, shifts))
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
from deepinv.optim import DataFidelity
from deepinv.physics import LinearPhysics, Ptychography

from .. import torch as _torch
from .._arrays import word
from ..tomography import filter_projections

__all__ = ["NonuniformPhysics", "PtychographyFidelity", "TomographyPhysics"]


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


class PtychographyFidelity(DataFidelity):
    """Objects ``[batch, 1, H, W]`` against patterns ``[batch, N, n, n]`` of deepinv's `Ptychography`, by `bracewell.PtychographyLoss`:
    per batch the sum of (I - y)^2 / 2 (least_squares, deepinv's L2) or of (sqrt I - sqrt y)^2 (amplitude, its AmplitudeLoss). Plans
    are made at the first call for patterns and physics, and anew where these are others or were changed.

    Args:
        loss: least_squares or amplitude.

    Raises:
        ValueError: on another loss, probes that are not square, and patterns that are negative (at the first call).
        TypeError: on another physics.
    """

    def __init__(self, loss: str = "least_squares"):
        super().__init__()
        self._loss = word("hubs.deepinv.PtychographyFidelity", "loss", loss, "least_squares", "amplitude")
        self._known: tuple = (None, None, None)
        self._losses: list = []

    def fn(self, x: torch.Tensor, y: torch.Tensor, physics: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """The fidelity of every object of the batch, ``[batch]``, differentiable in x."""
        linear = getattr(physics, "B", None)
        if not isinstance(physics, Ptychography):
            raise TypeError("bracewell.hubs.deepinv.PtychographyFidelity: physics: expected deepinv's Ptychography, found "
                            f"{type(physics).__name__}")
        (rows, columns), side = x.shape[-2:], linear.init_probe.shape[-1]
        if linear.init_probe.shape[-2] != side:
            raise ValueError("bracewell.hubs.deepinv.PtychographyFidelity: physics: expected a square probe, found "
                             f"{list(linear.init_probe.shape)}")
        # Windows begin at floor((H - n) / 2) + shift. Where they leave the object, deepinv has zeros.
        first = linear.shifts.cpu().long() + torch.tensor([(rows - side) // 2, (columns - side) // 2])
        before = (-first).clamp(min=0).amax(0)
        after = (first + side - torch.tensor([rows, columns])).clamp(min=0).amax(0)
        padded = torch.nn.functional.pad(x[:, 0], (before[1], after[1], before[0], after[0]))
        if self._known[0] is not y or self._known[1:] != (y._version, physics):
            self._losses = [_torch.PtychographyLoss(patterns, (first + before).double().numpy(), padded.shape[1:], side, loss=self._loss,
                                                    scale="none") for patterns in y]
            self._known = y, y._version, physics
        # deepinv's transforms are unitary; the mean over patterns and pixels becomes its sum.
        probe = (linear.init_probe[0] / linear.get_overlap_img(linear.shifts).mean().sqrt() / side).to(x.dtype).contiguous()
        factor = y[0].numel() * (0.5 if self._loss == "least_squares" else 1)
        return torch.stack([loss(one.contiguous(), probe) for loss, one in zip(self._losses, padded)]).to(y.dtype) * factor

    def grad(self, x: torch.Tensor, y: torch.Tensor, physics: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """The gradient, like x: dL/dRe + i dL/dIm."""
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            return torch.autograd.grad(self.fn(inner, y, physics).sum(), inner)[0]
