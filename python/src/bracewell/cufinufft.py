# SPDX-License-Identifier: MIT
"""The functions of cuFINUFFT's Python package, on arrays of CuPy, PyTorch and all that has ``__cuda_array_interface__``::

    import bracewell.cufinufft as cufinufft

Results are arrays of the library that the points are of (CuPy's, of others than PyTorch's), on their device and the library's current
stream. Arrays of NumPy, and tensors on hosts, are computed with on hosts. Mistakes are ValueErrors and TypeErrors with sentences of
their own; `docs/finufft.md` lists the differences.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Optional, Sequence, Union

import numpy

from . import finufft as _finufft
from ._arrays import library, on_host, real, whole

__all__ = ["Plan", "nufft1d1", "nufft1d2", "nufft1d3", "nufft2d1", "nufft2d2", "nufft2d3", "nufft3d1", "nufft3d2", "nufft3d3"]

_OF_SPEED = {"debug", "gpu_binsizex", "gpu_binsizey", "gpu_binsizez", "gpu_device_id", "gpu_kerevalmeth", "gpu_maxbatchsize", "gpu_maxsubprobsize",
             "gpu_method", "gpu_np", "gpu_obinsizex", "gpu_obinsizey", "gpu_obinsizez", "gpu_sort"}


def _own(array: Any) -> Any:
    """An array of a library that we know; CuPy's view of others in a GPU's memory."""
    if hasattr(array, "__cuda_array_interface__") and library(array) not in ("cupy", "torch"):
        import cupy

        return cupy.asarray(array)
    return array if hasattr(array, "shape") else on_host(array, None)


def _space_of(array: Any) -> Any:
    name = library(array)
    if name == "torch":
        import torch as space
    elif name == "cupy":
        import cupy as space
    else:
        space = numpy
    return space


class Plan(_finufft.Plan):
    """Transforms at given points, as those of `bracewell.finufft.Plan`.

    Args:
        nufft_type: 1, 2 or 3.
        n_modes: the size of f along every axis; of type 3 the number of axes.
        n_trans: how many vectors a call takes.
        eps: relative error (L2): 1e-2 to 1e-6 in single precision, to 1e-12 in double; less is that, with a warning.
        isign: sign of the exponent, by default + for types 1 and 3 and - for type 2.
        dtype: complex64 or complex128.
        options: modeord, upsampfac (oversampling; 0 is the fastest) and gpu_stream (a number; 0 is the library's current stream).
            Options of speed (gpu_method, gpu_sort, gpu_maxbatchsize, ...) are taken and change nothing.

    Raises:
        ValueError: on a type, a size or an option that is not one of these.
        TypeError: on options that cuFINUFFT does not have.
    """

    _package = "bracewell.cufinufft"

    def __init__(self, nufft_type: int, n_modes: Union[int, Sequence[int]], n_trans: int = 1, eps: float = 1e-6,
                 isign: Optional[int] = None, dtype: Any = "complex64", **options: Any):
        modeord, oversampling = options.pop("modeord", 0), options.pop("upsampfac", 0)
        stream, alone = options.pop("gpu_stream", 0), options.pop("gpu_spreadinterponly", 0)
        strange = sorted(set(options) - _OF_SPEED)
        if strange:
            raise TypeError(f"bracewell.cufinufft.Plan: options: expected some of cuFINUFFT's, found {strange[0]}")
        if alone:
            raise ValueError("bracewell.cufinufft.Plan: gpu_spreadinterponly: expected 0, as transforms are whole, found 1")
        super().__init__(nufft_type, n_modes, n_trans, eps, isign, dtype, modeord=modeord)
        self._oversampling = real("upsampfac", oversampling) or None
        self._given_stream = whole("gpu_stream", stream, default=0, most=2**64 - 1)

    def setpts(self, x: Any, y: Any = None, z: Any = None, s: Any = None, t: Any = None, u: Any = None) -> None:
        """The points, radians, a vector for every axis; they replace those of before. Of type 3 also the targets s, t, u."""
        given = [None if vector is None else _own(vector) for vector in (x, y, z, s, t, u)]
        self._space = _space_of(given[0])
        with self._on_stream():
            super().setpts(*given)

    def _run(self, function, from_points, data, out):
        with self._on_stream():
            result = super()._run(function, from_points, _own(data), None if out is None else _own(out))
        return result if out is None else out  # whose view it may be

        return result if out is None else out  # whose view it may be

    def _taken(self, values, dtype, name="data"):
        if self._space is numpy:
            return super()._taken(values, dtype, name)
        if self._space.__name__ == "torch":
            return self._space.as_tensor(values, dtype=getattr(self._space, str(dtype))).contiguous()
        return self._space.ascontiguousarray(self._space.asarray(values), dtype)

    def _on_stream(self):
        if self._given_stream == 0 or self._space is numpy:
            return nullcontext()
        cuda = self._space.cuda
        given = cuda.ExternalStream(self._given_stream)
        return cuda.stream(given) if self._space.__name__ == "torch" else given

    def __getstate__(self):
        state = super().__getstate__()
        state["_space"] = self._space.__name__  # modules stay in their process
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._space = __import__(self._space)


def _simple(kind, coordinates, data, n_modes, out, eps, isign, options, targets=()):
    data = _own(data)
    single = str(data.dtype).rpartition(".")[2] in ("complex64", "float32")
    return _finufft._at_once(Plan, single, kind, coordinates, data, n_modes, out, eps, isign, options, targets)


def nufft1d1(x, data, n_modes=None, out=None, eps=1e-6, isign=1, **options):
    """f[k] = sum_j c[j] exp(isign i k x_j); data c ``[points]`` or ``[vectors, points]``; a single size stands for every axis; the
    precision is that of data. Options are those of `Plan`."""
    return _simple(1, (x,), data, n_modes, out, eps, isign, options)


def nufft1d2(x, data, out=None, eps=1e-6, isign=-1, **options):
    """c[j] = sum_k f[k] exp(isign i k x_j); data f ``[n]`` or ``[vectors, n]``."""
    return _simple(2, (x,), data, None, out, eps, isign, options)


def nufft2d1(x, y, data, n_modes=None, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d1` in two dimensions: f ``[n1, n2]``, x along the first."""
    return _simple(1, (x, y), data, n_modes, out, eps, isign, options)


def nufft2d2(x, y, data, out=None, eps=1e-6, isign=-1, **options):
    """`nufft1d2` in two dimensions."""
    return _simple(2, (x, y), data, None, out, eps, isign, options)


def nufft3d1(x, y, z, data, n_modes=None, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d1` in three dimensions."""
    return _simple(1, (x, y, z), data, n_modes, out, eps, isign, options)


def nufft3d2(x, y, z, data, out=None, eps=1e-6, isign=-1, **options):
    """`nufft1d2` in three dimensions."""
    return _simple(2, (x, y, z), data, None, out, eps, isign, options)


def nufft1d3(x, data, s, out=None, eps=1e-6, isign=1, **options):
    """f[k] = sum_j c[j] exp(isign i s_k x_j); data c ``[points]`` or ``[vectors, points]``."""
    return _simple(3, (x,), data, None, out, eps, isign, options, (s,))


def nufft2d3(x, y, data, s, t, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d3` in two dimensions: f[k] = sum_j c[j] exp(isign i (s_k x_j + t_k y_j))."""
    return _simple(3, (x, y), data, None, out, eps, isign, options, (s, t))


def nufft3d3(x, y, z, data, s, t, u, out=None, eps=1e-6, isign=1, **options):
    """`nufft1d3` in three dimensions."""
    return _simple(3, (x, y, z), data, None, out, eps, isign, options, (s, t, u))
