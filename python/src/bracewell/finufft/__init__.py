# SPDX-License-Identifier: MIT
"""The functions of FINUFFT's Python package, on NumPy arrays in host memory::

    import bracewell.finufft as finufft

One, two and three dimensions, complex64 and complex128, points in radians. It computes with `bracewell.NonuniformFFT` and
`bracewell.NonuniformSums`, which take arrays of any library and on GPUs. Mistakes are ValueErrors with sentences of their own;
`docs/finufft.md` lists the differences.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Optional, Sequence, Union

import numpy

from .._arrays import Planned, brief, each, on_host, real, whole
from ..gridding import NonuniformFFT, NonuniformSums

__all__ = ["Plan", "nufft1d1", "nufft1d2", "nufft1d3", "nufft2d1", "nufft2d2", "nufft2d3", "nufft3d1", "nufft3d2", "nufft3d3"]


class Plan(Planned):
    """Transforms at given points::

        type 1  f[k] = sum_j c[j] exp(isign i k . x_j)
        type 2  c[j] = sum_k f[k] exp(isign i k . x_j)
        type 3  f[k] = sum_j c[j] exp(isign i s_k . x_j)

    with k = -(n // 2), ..., (n - 1) // 2 along every axis, x along the first; of type 3 s_k are any.

    Args:
        nufft_type: 1, 2 or 3.
        n_modes: the size of f along every axis; of type 3 the number of axes.
        n_trans: how many vectors a call takes.
        eps: relative error (L2): 1e-2 to 1e-6 in single precision, to 1e-12 in double; less is that, with a warning.
        isign: sign of the exponent, by default + for types 1 and 3 and - for type 2.
        dtype: complex64 or complex128.
        modeord: 0: k ascends; 1: k begins with 0, in the order of numpy.fft.

    Raises:
        ValueError: on a type, a size or an option that is not one of these.
    """

    _package = "bracewell.finufft"

    def __init__(self, nufft_type: int, n_modes: Union[int, Sequence[int]], n_trans: int = 1, eps: float = 1e-6,
                 isign: Optional[int] = None, dtype="complex128", *, modeord: int = 0):
        where = f"{self._package}.Plan"
        if not isinstance(nufft_type, (int, numpy.integer)) or nufft_type not in (1, 2, 3):
            raise ValueError(f"{where}: nufft_type: expected 1, 2 or 3, found {brief(nufft_type)}")
        if nufft_type == 3:
            if not isinstance(n_modes, (int, numpy.integer)) or n_modes not in (1, 2, 3):
                raise ValueError(f"{where}: n_modes: expected 1 to 3 axes, found {brief(n_modes)}")
            modes = (1,) * n_modes
        else:
            modes = (n_modes,) if isinstance(n_modes, (int, numpy.integer)) else each(where[10:], "n_modes", n_modes, "1 to 3 sizes")
            if not 1 <= len(modes) <= 3 or not all(isinstance(size, (int, numpy.integer)) and size > 0 for size in modes):
                raise ValueError(f"{where}: n_modes: expected 1 to 3 sizes, found {brief(n_modes)}")
            modes = tuple(map(int, modes))
        try:
            self._dtype = numpy.dtype(dtype)
        except TypeError:
            self._dtype = numpy.dtype(object)
        if self._dtype not in (numpy.complex64, numpy.complex128):
            raise ValueError(f"{where}: dtype: expected complex64 or complex128, found {brief(dtype)}")
        if not isinstance(modeord, (int, numpy.integer)) or modeord not in (0, 1):
            raise ValueError(f"{where}: modeord: expected 0 or 1, found {brief(modeord)}")
        self._type, self._modes, self._trans = nufft_type, modes, whole("n_trans", n_trans, least=1)
        self._eps, self._modeord = real("eps", eps), modeord
        least = 1e-6 if self._dtype == numpy.complex64 else 1e-12
        if not math.isfinite(self._eps):
            raise ValueError(f"{where}: eps: expected a relative error, found {eps}")
        if isign is not None and not math.isfinite(real("isign", isign)):
            raise ValueError(f"{where}: isign: expected a sign, found {isign}")
        if self._eps < least:
            warnings.warn(f"{where}: eps: {eps} is below {least:g}, the least of {self._dtype}, which it becomes.",
                          RuntimeWarning, stacklevel=2)
        self._eps = min(max(self._eps, least), 1e-2)
        # Plans have + in types 1 and 3 and - in type 2: other signs are those of the points.
        natural = -1 if nufft_type == 2 else 1
        self._sign = 1 if isign is None or (isign >= 0) == (natural > 0) else -1
        self._transform: Union[NonuniformFFT, NonuniformSums, None] = None
        self._oversampling: Optional[float] = None

    def __repr__(self):
        return (f"{self._package}.Plan({self._type}, {self._modes}, n_trans={self._trans}, eps={self._eps:g}, "
                f"dtype='{self._dtype}', modeord={self._modeord})")

    type = property(lambda self: self._type)
    n_modes = property(lambda self: self._modes)
    dim = property(lambda self: len(self._modes))
    n_trans = property(lambda self: self._trans)
    dtype = property(lambda self: self._dtype)

    def setpts(self, x, y=None, z=None, s=None, t=None, u=None) -> None:
        """The points, radians, a vector for every axis; they replace those of before. Of type 3 also the targets s, t, u. As many
        points as before use grids and Fourier transforms again."""
        places = [self._stacked(x=x, y=y, z=z) * (self._sign / (2 * numpy.pi))]
        if self._type == 3:
            places.append(self._stacked(s=s, t=t, u=u))
        if self._transform is not None:
            self._transform.set_points(*places)
        elif self._type == 3:
            self._transform = NonuniformSums(*places, tolerance=self._eps, oversampling=self._oversampling)
        else:
            self._transform = NonuniformFFT(*places, self._modes, tolerance=self._eps, oversampling=self._oversampling)

    _space: Any = numpy  # the array library

    def _taken(self, values, dtype, name="data"):
        """Values as a contiguous array of that type."""
        return on_host(values, dtype, name)

    def _stacked(self, **given):
        vectors = [self._taken(vector, numpy.dtype("float64"), name) for name, vector in given.items() if vector is not None]
        if len(vectors) != self.dim or any(vector.ndim != 1 or len(vector) != len(vectors[0]) for vector in vectors):
            raise ValueError(f"{self._package}.Plan.setpts: expected {self.dim} vectors of one length, found shapes "
                             f"{[vector.shape for vector in vectors]}")
        return self._space.stack(vectors[::-1], -1)

    def execute(self, data, out=None):
        """c ``[n_trans, points]`` to f ``[n_trans, *n_modes]`` (type 1) or ``[n_trans, targets]`` (type 3), or f to c (type 2);
        without the first axis where n_trans is 1. Returns the result, which is `out` where that is given."""
        return self._run("execute", self._type != 2, data, out)

    def execute_adjoint(self, data, out=None):
        """The adjoint of `execute`: f to c where that is c to f, and the reverse, with the other sign."""
        return self._run("execute_adjoint", self._type == 2, data, out)

    def _run(self, function, from_points, data, out):
        where, transform = f"{self._package}.Plan.{function}", self._transform
        data = data if hasattr(data, "shape") else on_host(data, None, "data")
        if transform is None:
            raise ValueError(f"{where}: expected points, which setpts gives, found none")
        modes = (len(transform.targets),) if isinstance(transform, NonuniformSums) else self._modes
        shapes = {"c": (len(transform.points),), "f": modes}
        source, target = ("c", "f") if from_points else ("f", "c")
        axes = len(shapes[source])
        batch = (self._trans,) if self._trans > 1 or data.ndim > axes else ()
        if tuple(data.shape) != batch + shapes[source]:
            raise ValueError(f"{where}: {source}: expected shape {batch + shapes[source]}, found {tuple(data.shape)}")
        data = self._taken(data, self._dtype).reshape(-1, *shapes[source])
        if out is not None and (tuple(out.shape) != batch + shapes[target] or str(out.dtype).rpartition(".")[2] != str(self._dtype)):
            raise ValueError(f"{where}: out: expected {self._dtype} of shape {batch + shapes[target]}, found {out.dtype} of "
                             f"{tuple(out.shape)}")
        if isinstance(transform, NonuniformSums):
            result = transform.forward(data) if from_points else transform.adjoint(data)
        else:
            spatial = tuple(range(1, 1 + self.dim))
            if from_points:
                result = transform.adjoint(data)
                if self._modeord == 1:
                    result = self._space.fft.ifftshift(result, spatial)
            else:
                if self._modeord == 1:
                    data = self._taken(self._space.fft.fftshift(data, spatial), self._dtype)
                result = transform.forward(data)
        result = result.reshape(batch + shapes[target])
        if out is None:
            return result
        out[...] = result
        return out


def _simple(kind, coordinates, data, n_modes, out, eps, isign, options, targets=()):
    data = data if hasattr(data, "shape") else on_host(data, None, "f" if kind == 2 else "c")
    single = str(getattr(coordinates[0], "dtype", "")) == "float32"
    return _at_once(Plan, single, kind, coordinates, data, n_modes, out, eps, isign, options, targets)


def _at_once(make, single, kind, coordinates, data, n_modes, out, eps, isign, options, targets):
    """A plan for these arguments, and its result."""
    dim = len(coordinates)
    if kind == 1:
        if n_modes is None:
            if out is None:
                raise ValueError(f"{make._package}.nufft{dim}d1: expected n_modes or out, found neither")
            n_modes = out.shape[-dim:]
        modes = (n_modes,) * dim if isinstance(n_modes, (int, numpy.integer)) else n_modes
        batched = len(data.shape) > 1
    elif kind == 3:
        modes, batched = dim, data.ndim > 1
    else:
        modes, batched = data.shape[-dim:], data.ndim > dim
    plan = make(kind, modes, data.shape[0] if batched else 1, eps, isign, "complex64" if single else "complex128", **options)
    plan.setpts(*coordinates, *[None] * (3 - dim), *targets)
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


def nufft1d3(x, c, s, out=None, eps=1e-6, isign=1, **options):
    """f[k] = sum_j c[j] exp(isign i s_k x_j); c ``[points]`` or ``[vectors, points]``."""
    return _simple(3, (x,), c, None, out, eps, isign, options, (s,))


def nufft2d3(x, y, c, s, t, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d3` in two dimensions: f[k] = sum_j c[j] exp(isign i (s_k x_j + t_k y_j))."""
    return _simple(3, (x, y), c, None, out, eps, isign, options, (s, t))


def nufft3d3(x, y, z, c, s, t, u, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d3` in three dimensions."""
    return _simple(3, (x, y, z), c, None, out, eps, isign, options, (s, t, u))
