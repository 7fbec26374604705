# SPDX-License-Identifier: MIT
"""The operators as differentiable functions of JAX (reverse mode, ``jax.custom_vjp``), under ``jax.jit`` too, on hosts: JAX calls
back into NumPy's functions (``jax.pure_callback``).

Gradients follow JAX: of complex inputs they are dL/dRe - i dL/dIm. Forward mode is refused by JAX.
"""

from __future__ import annotations

from typing import Any, Sequence

import jax
import jax.numpy
import numpy

from . import gridding as _gridding
from . import projection as _projection
from . import tomography as _tomography

__all__ = ["NonuniformFFT", "Tomography", "project"]


def _call(function, shape, dtype, *arrays):
    def work(*given):
        return numpy.asarray(function(*(numpy.ascontiguousarray(array) for array in given)), dtype)

    return jax.pure_callback(work, jax.ShapeDtypeStruct(tuple(shape), dtype), *arrays, vmap_method="sequential")


def _linear(forward, backward, shape_of):
    """A linear function with its transpose, as JAX wants it: without the conjugate of the adjoint."""

    @jax.custom_vjp
    def function(values):
        return _call(forward, shape_of(values.shape), values.dtype, values)

    def start(values):
        return function(values), values

    def end(values, cotangent):
        return (_call(lambda array: numpy.conj(backward(numpy.conj(array))), values.shape, values.dtype, cotangent),)

    function.defvjp(start, end)
    return function


class NonuniformFFT:
    """`bracewell.NonuniformFFT`; arguments as there."""

    def __init__(self, points: Any, shape: Sequence[int], **options: Any):
        plan = _gridding.NonuniformFFT(numpy.asarray(points), shape, **options)
        axes, count = len(plan.shape), len(plan.points)
        self.adjoint = _linear(plan.adjoint, plan.forward, lambda given: (*given[:-1], *plan.shape))
        self.forward = _linear(plan.forward, plan.adjoint, lambda given: (*given[:len(given) - axes], count))


class Tomography:
    """`bracewell.Tomography`, of positive weights of angles; arguments as there."""

    def __init__(self, angles: Any, width: int, **options: Any):
        plan = _tomography.Tomography(numpy.asarray(angles), width, **options)
        factor = numpy.ones(len(plan.angles))
        if plan.units == "line_integrals":
            factor = len(plan.angles) / numpy.pi / numpy.array(plan.weights or factor)
            if not (numpy.isfinite(factor) & (factor > 0)).all():
                raise ValueError("bracewell.jax.Tomography: weights: expected positive ones in units of line integrals, found others")

        def scaled(rows, factors):
            return (rows * factors[:, None]).astype(rows.dtype)

        self.project = _linear(plan.project, lambda rows: plan.backproject(scaled(rows, factor)),
                               lambda given: (*given[:-2], len(plan.angles), plan.width))
        self.backproject = _linear(plan.backproject, lambda images: scaled(plan.project(images), 1 / factor),
                                   lambda given: (*given[:-2], plan.image, plan.image))


def project(reconstruction: Any, matrices: Any, shifts: Any, filters: Any = None, **options: Any) -> Any:
    """`bracewell.project`, differentiable in reconstruction, matrices, shifts and filters; other arguments as there."""
    volume = _projection._sizes("jax.project", "reconstruction", reconstruction, 1, options.get("width"))
    sizes = tuple(options.get("shape") or volume[-2:])
    options = {**options, "shape": sizes, "width": volume[-1]}
    shape = (max(reconstruction.shape[0], matrices.shape[0]), matrices.shape[1], *sizes[:-1], sizes[-1] // 2 + 1)

    def values(*given):
        return _call(lambda *arrays: _projection.project(*arrays, **options), shape, reconstruction.dtype, *given)

    @jax.custom_vjp
    def function(*given):
        return values(*given)

    def start(*given):
        return values(*given), given

    def gradients(cotangent, *given):
        cotangent, *given = (numpy.ascontiguousarray(array) for array in (cotangent, *given))
        found = _projection.project_gradients(*given[:2], cotangent.conj(), *given[2:], **options,
                                              wanted=("reconstruction", "matrices", "shifts"))
        return found.reconstruction.conj(), found.matrices, found.shifts

    def end(given, cotangent):
        shapes = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in given[:3])
        found = jax.pure_callback(gradients, shapes, cotangent, *given, vmap_method="sequential")
        if len(given) == 3:
            return found
        whole = (cotangent * values(*given[:3])).real
        shared = tuple(axis for axis, extent in enumerate(given[3].shape) if extent != whole.shape[axis])
        return (*found, whole.sum(axis=shared, keepdims=True).astype(given[3].dtype))

    function.defvjp(start, end)
    return function(reconstruction, matrices, shifts, *(() if filters is None else (filters,)))
