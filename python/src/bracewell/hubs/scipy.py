# SPDX-License-Identifier: MIT
"""The linear pairs as ``scipy.sparse.linalg.LinearOperator``, for SciPy's solvers::

    from bracewell.hubs.scipy import linear_operator
    beam = bracewell.Tomography(angles, 64, units="line_integrals")
    image = scipy.sparse.linalg.lsqr(linear_operator(beam), sinogram.ravel())[0].reshape(64, 64)

Vectors are raveled arrays of NumPy. ``rmatvec`` is the exact transpose.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence

import numpy
from scipy.sparse.linalg import LinearOperator

from ..gridding import NonuniformFFT, NonuniformSums, ToeplitzNormal
from ..projection import project, project_gradients
from ..tomography import Laminography, Tomography

__all__ = ["linear_operator", "projection_operator"]


class _Pair(LinearOperator):
    """forward and adjoint of arrays with a leading axis of vectors, or of one array."""

    def __init__(self, forward: Callable, adjoint: Callable, inner: Sequence[int], outer: Sequence[int], dtype: Any, batched: bool):
        self._forward, self._backward, self._inner, self._outer, self._batched = forward, adjoint, tuple(inner), tuple(outer), batched
        super().__init__(numpy.dtype(dtype), (math.prod(self._outer), math.prod(self._inner)))

    def _run(self, function, vectors, shape):
        arrays = numpy.ascontiguousarray(vectors.T, self.dtype).reshape(-1, *shape)
        found = function(arrays) if self._batched else numpy.stack([function(array) for array in arrays])
        return found.reshape(len(arrays), -1).T

    def _matmat(self, vectors):
        return self._run(self._forward, vectors, self._inner)

    def _rmatmat(self, vectors):
        return self._run(self._backward, vectors, self._outer)

    def _matvec(self, vector):
        return self._matmat(vector.reshape(-1, 1)).ravel()

    def _rmatvec(self, vector):
        return self._rmatmat(vector.reshape(-1, 1)).ravel()


def linear_operator(pair: Any, dtype: Any = None) -> LinearOperator:
    """A pair as a LinearOperator: images to samples, values to sums, images to sinograms, or a normal operator.

    Args:
        pair: NonuniformFFT, NonuniformSums, ToeplitzNormal, Tomography (FourierNormal and ViewSlopes, too) or Laminography.
        dtype: complex128 (of tomography float64) by default; single precision, or of ToeplitzNormal real numbers.

    Raises:
        TypeError: on other objects.
        ValueError: in units of line integrals, on weights that are not positive, and Laminography.
    """
    if isinstance(pair, NonuniformFFT):
        return _Pair(pair.forward, pair.adjoint, pair.shape, (len(pair.points),), dtype or "complex128", True)
    if isinstance(pair, NonuniformSums):
        return _Pair(pair.forward, pair.adjoint, (len(pair.points),), (len(pair.targets),), dtype or "complex128", True)
    if isinstance(pair, ToeplitzNormal):
        return _Pair(pair.execute, pair.execute, pair.shape, pair.shape, dtype or "complex128", True)
    if isinstance(pair, Laminography):
        if pair.units != "transpose":
            raise ValueError(f"bracewell.hubs.scipy.linear_operator: units: expected transpose of Laminography, found {pair.units}")
        return _Pair(pair.project, pair.backproject, (pair.depth, pair.image, pair.image), (pair.rows, len(pair.angles), pair.width),
                     dtype or "float64", False)
    if not isinstance(pair, Tomography):
        raise TypeError(f"bracewell.hubs.scipy.linear_operator: pair: expected one of bracewell's, found {type(pair).__name__}")
    adjoint = pair.backproject
    if pair.units == "line_integrals":  # rows are those of the transpose times a factor
        weights = numpy.array(pair.weights or [1.0] * len(pair.angles))
        if (weights <= 0).any():
            raise ValueError("bracewell.hubs.scipy.linear_operator: weights: expected positive ones in units of line integrals, found "
                             f"{weights.min():g}")
        factor = (len(pair.angles) / math.pi / weights)[:, None]

        def adjoint(rows):
            return pair.backproject((rows * factor).astype(rows.dtype))

    return _Pair(pair.project, adjoint, (pair.image, pair.image), (len(pair.angles), pair.width), dtype or "float64", True)


def projection_operator(matrices: Any, shape: Sequence[int], shifts: Optional[Any] = None, filters: Optional[Any] = None, *,
                        images: Optional[Sequence[int]] = None, **options: Any) -> LinearOperator:
    """`bracewell.project` at given poses. A projection takes values and their conjugates, so that vectors are the real numbers of
    half spectra, real and imaginary part in turn: ``spectrum.ravel().view(float)``.

    Args:
        matrices, shifts, filters: of one batch, as those of `project`; their precision is the operator's.
        shape: ((D,) H, W) of the reconstruction's box.
        images: (h, w) of the projections; the last sizes of `shape` by default.
        options: others of `project`.
    """
    options = {"width": int(shape[-1]), "shape": tuple(images if images is not None else shape[-2:]), **options}
    inner = (*shape[:-1], shape[-1] // 2 + 1)
    outer = (matrices.shape[1], *options["shape"][:-1], options["shape"][-1] // 2 + 1)
    real = numpy.dtype(matrices.dtype)
    kind = "complex64" if real == numpy.float32 else "complex128"
    like = numpy.zeros((1, *inner), kind)

    def forward(values):
        return project(values.view(kind).reshape(1, *inner), matrices, shifts, filters, **options).view(real)

    def adjoint(values):
        return project_gradients(like, matrices, values.view(kind).reshape(1, *outer), shifts, filters, wanted=("reconstruction",),
                                 **options).reconstruction.view(real)

    return _Pair(forward, adjoint, (*inner[:-1], 2 * inner[-1]), (*outer[:-1], 2 * outer[-1]), real, False)
