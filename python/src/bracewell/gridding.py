# SPDX-License-Identifier: MIT
"""Non-uniform fast Fourier transforms."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _core
from ._arrays import Array, as_like, current_stream, empty, place, result, shape_of


class NonuniformFFT:
    """Transforms between samples at any frequencies x_j and images, 2D or 3D (Dutt and Rokhlin, SIAM J. Sci. Comput. 14, 1993)::

        adjoint  image(X) = sum_j sample_j exp(+2 pi i x_j . X)     "type 1"
        forward  sample_j = sum_X image(X) exp(-2 pi i x_j . X)     "type 2"

    with pixels X = index - size // 2 along every axis. Exact transposes of each other; not scaled.

    The points are sorted at the first call for a precision and device, and again where one has more slices than all before.

    Args:
        points: ``[points, 2]`` or ``[points, 3]``, cycles per pixel, any (the period is 1); column 0 is x, the last axis of
            images.
        shape: ((depth,) height, width) of images.
        tolerance: relative error (L2): 1e-2 to 1e-6 in float, to 1e-12 in double.
        kernel: kaiser_bessel, exponential_of_semicircle or gaussian.
        oversampling: grid over image size, 1.2 to 8; by default 1.5 or 2, the faster.

    Raises:
        ValueError: on options out of range and points that are not finite (at the first call).
    """

    def __init__(self, points: Any, shape: Sequence[int], *, tolerance: float = 1e-4, kernel: str = "kaiser_bessel",
                 oversampling: Optional[float] = None):
        self.points, self.shape = points, tuple(int(size) for size in shape)
        self._options = (float(tolerance), kernel, oversampling)
        self._plans: dict = {}

    def adjoint(self, samples: Array, *, stream: Optional[int] = None) -> Array:
        """Samples, complex ``[slices, points]`` or ``[points]``, to images, complex ``[slices, (depth,) height, width]`` or without
        the axis of slices."""
        batch = self._batch("samples", samples, 1)
        images = empty(samples, (batch.shape[0], *self.shape), "complex")
        stream = current_stream(samples, stream)
        self._plan(batch, stream).adjoint(batch, images, stream)
        return result(images if batch is samples else images[0], samples)

    def forward(self, images: Array, *, stream: Optional[int] = None) -> Array:
        """The transpose of `adjoint`: images to samples."""
        batch = self._batch("images", images, len(self.shape))
        samples = empty(images, (batch.shape[0], len(self.points)), "complex")
        stream = current_stream(images, stream)
        self._plan(batch, stream).forward(batch, samples, stream)
        return result(samples if batch is images else samples[0], images)

    @staticmethod
    def _batch(name, array, axes):
        shape = shape_of("NonuniformFFT", name, array)
        return array.reshape(1, *shape) if len(shape) == axes else array

    def _plan(self, batch, stream):
        key, slices = place(batch), batch.shape[0]
        known, plan = self._plans.get(key, (0, None))
        if plan is None or slices > known:
            points = as_like(self.points, batch, "float64")
            tolerance, kernel, oversampling = self._options
            plan = _core.NonuniformPlan.make(empty(batch, (1,), "real"), points, list(self.shape), slices, tolerance, kernel,
                                             oversampling, stream)
            self._plans[key] = (slices, plan)
        return plan
