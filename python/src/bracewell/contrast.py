# SPDX-License-Identifier: MIT
"""Contrast transfer functions of electron microscopes, and the way from a loss back to their parameters."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

import numpy

from . import _core
from ._arrays import Array, brief, current_stream, empty, on_host, real, result, shape_of, wholes, words
from .projection import _half, _sizes


class CTFParameters(NamedTuple):
    """Of P images, in the units of RELION's STAR files: numbers, which are shared, and arrays ``[P]``."""

    defocus_u: Any  #: Angstrom, positive for underfocus
    defocus_v: Any  #: Angstrom
    defocus_angle: Any = 0  #: degrees from the x axis to the direction of defocus_u
    voltage: Any = 300  #: kV
    spherical_aberration: Any = 0  #: mm
    amplitude_contrast: Any = 0  #: fraction
    phase_shift: Any = 0  #: degrees, of a phase plate
    b_factor: Any = 0  #: square Angstrom: envelope exp(-B k^2 / 4)
    scale: Any = 1  #: factor on the whole function


def _numbers(parameters) -> numpy.ndarray:
    """``[P, 9]``"""
    if not isinstance(parameters, (tuple, list)) or len(parameters) != len(CTFParameters._fields):
        raise TypeError(f"bracewell: parameters: expected CTFParameters, found {brief(parameters)}")
    columns = [numpy.atleast_1d(on_host(value, "float64", name)) for name, value in zip(CTFParameters._fields, parameters)]
    try:
        return numpy.stack(numpy.broadcast_arrays(*columns), axis=-1).reshape(-1, len(columns))
    except ValueError:
        raise ValueError("bracewell: parameters: expected numbers and as many of each, found "
                         f"{[len(column) for column in columns]}") from None


def evaluate_ctf(parameters: CTFParameters, shape: Sequence[int], pixel_size: float, like: Array, *,
                 stream: Optional[int] = None) -> Array:
    """The contrast transfer functions of images, positive at low frequency: filters of `project` and `backproject`::

        scale exp(-B k^2 / 4) sin(pi lambda dz k^2 - (pi/2) Cs lambda^3 k^4 + asin(Q0) + phase shift),
        dz = (U + V)/2 + (U - V)/2 cos 2(angle(k) - defocus angle)

    (Mindell and Grigorieff, J. Struct. Biol. 142, 2003).

    Args:
        shape: (h, w) of the images.
        pixel_size: Angstrom.
        like: an array of the library, precision and device that are wanted.

    Returns:
        Real ``[P, h, w/2+1]``; ``[None]`` makes filters of one batch of it.

    Raises:
        ValueError: on parameters out of range and a pixel size that is not positive.
    """
    shape_of("evaluate_ctf", "like", like)
    numbers, sizes = _numbers(parameters), wholes("shape", shape)
    if len(sizes) != 2:
        raise ValueError(f"bracewell.evaluate_ctf: shape: expected (h, w), found {list(sizes)}")
    values = empty(like, (len(numbers), *_half(sizes)), "real")
    _core.evaluate_ctf(numbers.ravel().tolist(), real("pixel_size", pixel_size), values, sizes[-1], current_stream(like, stream))
    return result(values, like)


def ctf_gradients(parameters: CTFParameters, pixel_size: float, value_gradients: Array, *, width: Optional[int] = None,
                  stream: Optional[int] = None) -> CTFParameters:
    """Exact derivatives of a loss with respect to the parameters of `evaluate_ctf`. Waits.

    Args:
        pixel_size: Angstrom.
        value_gradients: real ``[P, h, w/2+1]``, of the loss with respect to the values: from `filter_gradients`.
        width: w, where it is odd.

    Returns:
        float64 ``[P]`` each, NumPy's, per Angstrom, degree, kV and so on.
    """
    width = _sizes("ctf_gradients", "value_gradients", value_gradients, 1, width)[-1]
    numbers = _core.ctf_gradients(_numbers(parameters).ravel().tolist(), real("pixel_size", pixel_size), value_gradients, width,
                                  current_stream(value_gradients, stream))
    return CTFParameters(*numpy.array(numbers).reshape(-1, len(CTFParameters._fields)).T)


def filter_gradients(projections: Array, cotangent: Array, *, shared: Sequence[str] = (), stream: Optional[int] = None) -> Array:
    """Exact derivatives of a loss with respect to filters f: Re(conj(g) U) where P = f U.

    Args:
        projections: U, what `project` gives without filters, complex ``[B, P, (d,) h, w/2+1]``. For filters of `backproject`:
            the projections that are inserted.
        cotangent: g = dL/dRe P + i dL/dIm P, likewise. For those of `backproject`: the gradient of projections that
            `backproject_gradients` gives without filters.
        shared: some of batches and poses, over which filters are shared: their gradients are sums.

    Returns:
        Real ``[B|1, P|1, (d,) h, w/2+1]``.
    """
    columns = (0, *shape_of("filter_gradients", "projections", projections))[-1]
    _sizes("filter_gradients", "projections", projections, 2, 2 * (columns - 1))  # of either width
    extents = list(projections.shape)
    for name in words("filter_gradients", "shared", shared, "batches", "poses"):
        extents[("batches", "poses").index(name)] = 1
    gradients = empty(projections, extents, "real")
    _core.filter_gradients(projections, cotangent, gradients, current_stream(projections, stream))
    return result(gradients, projections)
