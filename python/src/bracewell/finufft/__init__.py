# SPDX-License-Identifier: MIT
"""The functions of FINUFFT's Python package of types 1 and 2, on NumPy arrays in host memory::

    import bracewell.finufft as finufft

One, two and three dimensions, complex64 and complex128, points in radians. It computes with `bracewell.NonuniformFFT`, which
takes arrays of any library and on GPUs. Mistakes are ValueErrors with sentences of their own; `docs/finufft.md` lists the
differences.
"""

from __future__ import annotations

from typing import Optional, Sequence, Union

import numpy

from ..gridding import NonuniformFFT

__all__ = ["Plan", "nufft1d1", "nufft1d2", "nufft2d1", "nufft2d2", "nufft3d1", "nufft3d2"]


class Plan:
    """Transforms at given points::

        type 1  f[k] = sum_j c[j] exp(isign i k . x_j)
        type 2  c[j] = sum_k f[k] exp(isign i k . x_j)

    with k = -(n // 2), ..., (n - 1) // 2 along every axis, x along the first.

    Args:
        nufft_type: 1 or 2.
        n_modes: the size of f along every axis.
        n_trans: how many vectors a call takes.
        eps: relative error (L2): 1e-2 to 1e-6 in single precision, to 1e-12 in double.
        isign: sign of the exponent, by default + for type 1 and - for type 2.
        dtype: complex64 or complex128.
        modeord: 0: k ascends; 1: k begins with 0, in the order of numpy.fft.

    Raises:
        ValueError: on a type, a size or an option that is not one of these.
    """

    def __init__(self, nufft_type: int, n_modes: Sequence[int], n_trans: int = 1, eps: float = 1e-6,
                 isign: Optional[int] = None, dtype="complex128", *, modeord: int = 0):
        if nufft_type not in (1, 2):
            raise ValueError(f"bracewell.finufft.Plan: nufft_type: expected 1 or 2, found {nufft_type}")
        modes = tuple(n_modes)
        if not 1 <= len(modes) <= 3 or not all(isinstance(size, (int, numpy.integer)) and size > 0 for size in modes):
            raise ValueError(f"bracewell.finufft.Plan: n_modes: expected 1 to 3 sizes, found {n_modes}")
        if numpy.dtype(dtype) not in (numpy.complex64, numpy.complex128):
            raise ValueError(f"bracewell.finufft.Plan: dtype: expected complex64 or complex128, found {dtype}")
        if modeord not in (0, 1):
            raise ValueError(f"bracewell.finufft.Plan: modeord: expected 0 or 1, found {modeord}")
        self._type, self._modes, self._trans = nufft_type, modes, int(n_trans)
        self._dtype, self._eps, self._modeord = numpy.dtype(dtype), float(eps), modeord
        # One plan of NonuniformFFT has + in type 1 and - in type 2: other signs are those of the points.
        natural = 1 if nufft_type == 1 else -1
        self._sign = 1 if isign is None or isign * natural > 0 else -1
        self._transform: Optional[NonuniformFFT] = None

    type = property(lambda self: self._type)
    n_modes = property(lambda self: self._modes)
    dim = property(lambda self: len(self._modes))
    n_trans = property(lambda self: self._trans)
    dtype = property(lambda self: self._dtype)

    def setpts(self, x, y=None, z=None) -> None:
        """The points, radians, a vector for every axis; they replace those of before."""
        vectors = [numpy.asarray(vector, numpy.float64) for vector in (x, y, z) if vector is not None]
        if len(vectors) != self.dim or any(vector.ndim != 1 or len(vector) != len(vectors[0]) for vector in vectors):
            raise ValueError(f"bracewell.finufft.Plan.setpts: expected {self.dim} vectors of one length, found shapes "
                             f"{[vector.shape for vector in vectors]}")
        if self.dim == 1:  # an image of one row
            vectors.insert(0, numpy.zeros(len(vectors[0])))
        points = numpy.stack(vectors[::-1], axis=-1) * (self._sign / (2 * numpy.pi))
        self._transform = NonuniformFFT(points, (1, *self._modes) if self.dim == 1 else self._modes, tolerance=self._eps)

    def execute(self, data, out=None):
        """c ``[n_trans, points]`` to f ``[n_trans, *n_modes]`` (type 1), or f to c (type 2); without the first axis where
        n_trans is 1. Returns the result, which is `out` where that is given."""
        return self._run("execute", self._type, data, out)

    def execute_adjoint(self, data, out=None):
        """The adjoint of `execute`: type 2 with the other sign where that is type 1, and the reverse."""
        return self._run("execute_adjoint", 3 - self._type, data, out)

    def _run(self, function, kind, data, out):
        where = f"bracewell.finufft.Plan.{function}"
        if self._transform is None:
            raise ValueError(f"{where}: expected points, which setpts gives, found none")
        points = len(self._transform.points)
        shapes = {"c": (points,), "f": self._modes}
        source, target = ("c", "f") if kind == 1 else ("f", "c")
        data = numpy.asarray(data)
        axes = len(shapes[source])
        batch = (self._trans,) if self._trans > 1 or data.ndim > axes else ()
        if data.shape != batch + shapes[source]:
            raise ValueError(f"{where}: {source}: expected shape {batch + shapes[source]}, found {data.shape}")
        data = numpy.ascontiguousarray(data, self._dtype).reshape(-1, *shapes[source])
        if out is not None and (out.shape != batch + shapes[target] or out.dtype != self._dtype):
            raise ValueError(f"{where}: out: expected {self._dtype} of shape {batch + shapes[target]}, found {out.dtype} of "
                             f"{out.shape}")
        spatial = tuple(range(1, 1 + self.dim))
        grid = (len(data), *self._transform.shape)
        if kind == 1:
            result = self._transform.adjoint(data).reshape(-1, *self._modes)
            if self._modeord == 1:
                result = numpy.fft.ifftshift(result, spatial)
        else:
            if self._modeord == 1:
                data = numpy.ascontiguousarray(numpy.fft.fftshift(data, spatial))
            result = self._transform.forward(data.reshape(grid))
        result = result.reshape(batch + shapes[target])
        if out is None:
            return result
        out[...] = result
        return out


def _simple(kind, coordinates, data, n_modes, out, eps, isign, options):
    dim, data = len(coordinates), numpy.asarray(data)
    single = numpy.asarray(coordinates[0]).dtype == numpy.float32
    if kind == 1:
        if n_modes is None:
            if out is None:
                raise ValueError(f"bracewell.finufft.nufft{dim}d1: expected n_modes or out, found neither")
            n_modes = out.shape[-dim:]
        modes = (n_modes,) * dim if isinstance(n_modes, (int, numpy.integer)) else tuple(n_modes)
        batched = data.ndim > 1
    else:
        modes, batched = data.shape[-dim:], data.ndim > dim
    plan = Plan(kind, modes, data.shape[0] if batched else 1, eps, isign, "complex64" if single else "complex128", **options)
    plan.setpts(*coordinates)
    return plan.execute(data, out)


Modes = Union[int, Sequence[int], None]


def nufft1d1(x, c, n_modes: Modes = None, out=None, eps=1e-6, isign=1, **options):
    """f[k] = sum_j c[j] exp(isign i k x_j); c ``[points]`` or ``[vectors, points]``; a single size stands for every axis; the
    precision is that of x. Options are those of `Plan`."""
    return _simple(1, (x,), c, n_modes, out, eps, isign, options)


def nufft1d2(x, f, out=None, eps=1e-6, isign=-1, **options):
    """c[j] = sum_k f[k] exp(isign i k x_j); f ``[n]`` or ``[vectors, n]``."""
    return _simple(2, (x,), f, None, out, eps, isign, options)


def nufft2d1(x, y, c, n_modes: Modes = None, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d1` in two dimensions: f ``[n1, n2]``, x along the first."""
    return _simple(1, (x, y), c, n_modes, out, eps, isign, options)


def nufft2d2(x, y, f, out=None, eps=1e-6, isign=-1, **options):
    """`nufft1d2` in two dimensions."""
    return _simple(2, (x, y), f, None, out, eps, isign, options)


def nufft3d1(x, y, z, c, n_modes: Modes = None, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d1` in three dimensions."""
    return _simple(1, (x, y, z), c, n_modes, out, eps, isign, options)


def nufft3d2(x, y, z, f, out=None, eps=1e-6, isign=-1, **options):
    """`nufft1d2` in three dimensions."""
    return _simple(2, (x, y, z), f, None, out, eps, isign, options)
