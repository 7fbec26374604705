# SPDX-License-Identifier: MIT
"""Non-uniform fast Fourier transforms, and their normal operators."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _core
from ._arrays import (Array, Planned, as_complex, as_like, as_real, copied, current_stream, empty, expect_shape, is_complex,
                      number, place, real, real_type, result, wholes)


class _PlannedForSlices(Planned):
    """Has a compiled plan for every precision and device, made at the first call, and again for more slices. A plan takes other
    points at its next call."""

    def __init__(self, name, tolerance, oversampling):
        self._name, self._options, self._plans = name, (real("tolerance", tolerance), number("oversampling", oversampling)), {}
        self._points_set = 0  # how often

    tolerance = property(lambda self: self._options[0])
    oversampling = property(lambda self: self._options[1])

    def _batch(self, function, name, array, *sizes):
        shape = expect_shape(f"{self._name}.{function}", name, array, *sizes)
        return array.reshape(1, *shape) if len(shape) == len(sizes) else array

    def _plan(self, batch, stream, *kind):
        key, slices = (*place(batch), *kind), batch.shape[0]
        known, plan, points_set = self._plans.get(key, (0, None, 0))
        if plan is None or slices > known:
            known, plan = slices, self._make(empty(batch, (1,), "real"), batch, slices, stream)
        elif points_set != self._points_set:
            del self._plans[key]  # points that it refuses leave it without any
            plan.set_points(*self._places(batch), stream)
        else:
            return plan
        self._plans[key] = known, plan, self._points_set
        return plan


class NonuniformFFT(_PlannedForSlices):
    """Transforms between samples at any frequencies x_j and images, 1D to 3D (Dutt and Rokhlin, SIAM J. Sci. Comput. 14, 1993)::

        adjoint  image(X) = sum_j sample_j exp(+2 pi i x_j . X)     "type 1"
        forward  sample_j = sum_X image(X) exp(-2 pi i x_j . X)     "type 2"

    with pixels X = index - size // 2 along every axis. Exact transposes of each other; not scaled.

    The points are sorted at the first call for a precision and device, and again after `set_points` and where a call has more
    slices than all before.

    Args:
        points: ``[points, axes]``, cycles per pixel, any (the period is 1); column 0 is x, the last axis of images.
        shape: (((depth,) height,) width) of images.
        tolerance: relative error (L2): 1e-2 to 1e-6 in float, to 1e-12 in double.
        oversampling: grid over image size, 1.2 to 8; by default 1.5 or 2, the faster.

    Raises:
        ValueError: on options out of range and points that are not finite (at the first call).
    """

    def __init__(self, points: Any, shape: Sequence[int], *, tolerance: float = 1e-4,
                 oversampling: Optional[float] = None):
        super().__init__("NonuniformFFT", tolerance, oversampling)
        self.points, self.shape = copied(points), wholes("shape", shape)

    _shown = ("points", "shape", "tolerance", "oversampling")

    def set_points(self, points: Any) -> None:
        """Takes other points, any number of them. For as many as before, grids, kernels and Fourier transforms are used again."""
        before, self.points, self._points_set = self.points, copied(points), self._points_set + 1
        if tuple(before.shape) != tuple(self.points.shape):
            self._plans = {}

    def adjoint(self, samples: Array, *, stream: Optional[int] = None) -> Array:
        """Samples, complex ``[slices, points]`` or ``[points]``, to images, complex ``[slices, ((depth,) height,) width]`` or
        without the axis of slices."""
        batch = self._batch("adjoint", "samples", as_complex(samples), len(self.points))
        images = empty(batch, (batch.shape[0], *self.shape), "complex")
        stream = current_stream(samples, stream)
        self._plan(batch, stream).adjoint(batch, images, stream)
        return result(images if len(samples.shape) == 2 else images[0], samples)

    def forward(self, images: Array, *, stream: Optional[int] = None) -> Array:
        """The transpose of `adjoint`: images to samples."""
        batch = self._batch("forward", "images", as_complex(images), *self.shape)
        samples = empty(batch, (batch.shape[0], len(self.points)), "complex")
        stream = current_stream(images, stream)
        self._plan(batch, stream).forward(batch, samples, stream)
        return result(samples if len(images.shape) > len(self.shape) else samples[0], images)

    def point_gradients(self, images: Array, samples: Array, *, stream: Optional[int] = None) -> Array:
        """Gradients with respect to the points of a real loss that is computed from either transform::

            gradients(j, d) = Re sum over slices of conj(sample_j) sum_X (-2 pi i X_d) image(X) exp(-2 pi i x_j . X)

        Of `forward`, images are its input and samples the derivative of the loss with respect to its output; of `adjoint`,
        samples are its input and images that derivative.

        Returns:
            Real ``[points, axes]``, per cycle per pixel; column 0 is x.
        """
        batch = self._batch("point_gradients", "images", images, *self.shape)
        values = self._batch("point_gradients", "samples", samples, len(self.points))
        gradients = empty(images, (len(self.points), len(self.shape)), "real")
        stream = current_stream(images, stream)
        self._plan(batch, stream).point_gradients(batch, values, gradients, empty(values, values.shape, "complex"), stream)
        return result(gradients, images)

    def _places(self, batch):
        return (as_like(self.points, batch, "float64"),)

    def _make(self, like, batch, slices, stream):
        return _core.NonuniformPlan.make(like, *self._places(batch), list(self.shape), slices, *self._options, stream)


class ToeplitzNormal(_PlannedForSlices):
    """``adjoint(weights * forward(image))`` of `NonuniformFFT` without the samples, a convolution (Wajer and Pruessmann, Proc.
    ISMRM 9, 2001; Fessler et al., IEEE Trans. Signal Process. 53, 2005)::

        result(X) = sum_X' image(X') sum_j weight_j exp(+2 pi i x_j . (X - X'))

    That is two FFTs of about twice the image's size along every axis, however many samples there are; of real images, of whose
    result the real part is taken, at half the price.

    The plan is made at the first call for a precision, device and kind of images, and again where one has more slices than all
    before.

    Args:
        points: ``[points, axes]``, two or three axes, as those of `NonuniformFFT`.
        shape: ((depth,) height, width) of images.
        weights: real ``[points]``, of any sign; 1 by default.
        tolerance: relative error (L2) of the convolution's kernel: 1e-2 to 1e-6 in float, to 1e-12 in double.
        oversampling: grid over image size while the convolution's kernel is computed, 1.2 to 8; by default 1.5 or 2.

    Raises:
        ValueError: as `NonuniformFFT`, and on weights of another shape (at the first call).
    """

    def __init__(self, points: Any, shape: Sequence[int], weights: Optional[Any] = None, *, tolerance: float = 1e-4,
                 oversampling: Optional[float] = None):
        super().__init__("ToeplitzNormal", tolerance, oversampling)
        self.points, self.shape = copied(points), wholes("shape", shape)
        self.weights = None if weights is None else copied(weights)

    _shown = ("points", "shape", "weights", "tolerance", "oversampling")

    def set_points(self, points: Any, weights: Optional[Any] = None) -> None:
        """Takes other points, any number of them, and their weights."""
        self.points, self.weights, self._plans = copied(points), None if weights is None else copied(weights), {}

    def execute(self, images: Array, *, stream: Optional[int] = None) -> Array:
        """Images, real or complex ``[slices, (depth,) height, width]`` or without the axis of slices, to results alike."""
        batch = self._batch("execute", "images", as_real(images), *self.shape)
        kind = is_complex(batch)
        found = empty(batch, batch.shape, "complex" if kind else "real")
        stream = current_stream(images, stream)
        self._plan(batch, stream, kind).execute(batch, found, kind, stream)
        return result(found if len(images.shape) > len(self.shape) else found[0], images)

    def _make(self, like, batch, slices, stream):
        weights = None if self.weights is None else as_like(self.weights, batch, real_type(like))
        return _core.ToeplitzPlan.make(like, as_like(self.points, batch, "float64"), weights, is_complex(batch), list(self.shape),
                                       slices, *self._options, stream)


class NonuniformSums(_PlannedForSlices):
    """Sums between points x_j and targets s_k, both anywhere, 1D to 3D (Lee and Greengard, J. Comput. Phys. 206, 2005)::

        forward  sum_k = sum_j value_j exp(+2 pi i s_k . x_j)       "type 3"
        adjoint  value_j = sum_k sum_k exp(-2 pi i s_k . x_j)

    Exact transposes of each other; not scaled. Work and memory grow with the product, over the axes, of the lengths of the
    boxes that points and targets lie in.

    Args:
        points: ``[points, axes]``, in pixels.
        targets: ``[targets, axes]``, in cycles per pixel, or in other units whose product with those of points is cycles.
        tolerance: relative error (L2): 1e-2 to 1e-6 in float, to 1e-12 in double.
        oversampling: of both grids, 1.25 to 8; by default 2 for that of the points, 1.5 or 2 for that of the targets.

    Raises:
        ValueError: on options out of range, and on points and targets that are not finite or whose boxes' lengths have a
            product along an axis of more than about 14,000 (in 1D 3e7) cycles (at the first call).
    """

    def __init__(self, points: Any, targets: Any, *, tolerance: float = 1e-4,
                 oversampling: Optional[float] = None):
        super().__init__("NonuniformSums", tolerance, oversampling)
        self.points, self.targets = copied(points), copied(targets)

    _shown = ("points", "targets", "tolerance", "oversampling")

    def set_points(self, points: Any, targets: Any) -> None:
        """Takes other points and targets, any number of them. For as many as before in boxes that are no larger, grids, kernels
        and Fourier transforms are used again."""
        before, self.points, self.targets = self.points, copied(points), copied(targets)
        self._points_set += 1
        if tuple(before.shape[1:]) != tuple(self.points.shape[1:]):
            self._plans = {}

    def forward(self, values: Array, *, stream: Optional[int] = None) -> Array:
        """Values, complex ``[slices, points]`` or ``[points]``, to sums, complex ``[slices, targets]`` or ``[targets]``."""
        return self._between("values", values, len(self.points), len(self.targets), "forward", stream)

    def adjoint(self, sums: Array, *, stream: Optional[int] = None) -> Array:
        """The transpose of `forward`: sums to values."""
        return self._between("sums", sums, len(self.targets), len(self.points), "adjoint", stream)

    def _between(self, name, array, given, size, direction, stream):
        batch = self._batch(direction, name, as_complex(array), given)
        found = empty(batch, (batch.shape[0], size), "complex")
        stream = current_stream(array, stream)
        getattr(self._plan(batch, stream), direction)(batch, found, stream)
        return result(found if len(array.shape) == 2 else found[0], array)

    def _places(self, batch):
        return as_like(self.points, batch, "float64"), as_like(self.targets, batch, "float64")

    def _make(self, like, batch, slices, stream):
        return _core.SumsPlan.make(like, *self._places(batch), slices, *self._options, stream)
