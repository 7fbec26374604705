# SPDX-License-Identifier: MIT
"""From maps to spectra and back: padding, roll-off, normalisation, Fourier shell correlation."""

from __future__ import annotations

from typing import Optional, Sequence

from . import _core
from ._arrays import Array, as_real, current_stream, empty, number, result, shape_of, whole


def pad_centre(centred: Array, shape: Sequence[int], *, stream: Optional[int] = None) -> Array:
    """Places a box whose centre is element floor(n/2) into a larger one whose origin is element 0, zeros elsewhere.

    Args:
        centred: real ``[B, (d,) h, w]``.
        shape: sizes ((D,) H, W) of the larger box.

    Returns:
        Real ``[B, (D,) H, W]``, ready for ``rfftn``.
    """
    batch = shape_of("pad_centre", "centred", centred)[:1]
    given, centred = centred, as_real(centred)
    out = empty(centred, (*batch, *shape), "real")
    _core.pad_centre(centred, out, current_stream(centred, stream))
    return result(out, given)


def crop_centre(padded: Array, shape: Sequence[int], scale: float = 1, *, stream: Optional[int] = None) -> Array:
    """The reverse of `pad_centre`: takes the centred box back out, times `scale`.

    Args:
        padded: real ``[B, (D,) H, W]``, origin at element 0.
        shape: sizes ((d,) h, w) of the box.
    """
    out = empty(padded, (*shape_of("crop_centre", "padded", padded)[:1], *shape), "real")
    _core.crop_centre(padded, out, float(scale), current_stream(padded, stream))
    return result(out, padded)


def correct_rolloff(volume: Array, padded: Sequence[int], *, interpolation: str = "catmull_rom",
                    stream: Optional[int] = None) -> Array:
    """Divides by the transform of the interpolation kernel, about the centre floor(n/2), in place (O'Sullivan, IEEE Trans.
    Med. Imaging 4 (1985) 200). Apply it before the transform of what will be projected, after that of what was backprojected.

    Args:
        volume: real ``[B, (d,) h, w]``, changed in place.
        padded: sizes of the box that is interpolated.

    Returns:
        The volume.
    """
    _core.correct_rolloff(volume, [whole("padded", size) for size in padded], str(interpolation), current_stream(volume, stream))
    return volume


def normalise(data: Array, weight: Array, *, wiener: float = 0, floor: float = 0.2, radius: Optional[float] = None,
              width: Optional[int] = None, stream: Optional[int] = None) -> Array:
    """A volume from what `backproject` gathered: data / max(weight + wiener, floor (average weight of the shell + wiener)).

    Args:
        data: complex ``[B, (D,) H, W/2+1]``.
        weight: real, like data.
        wiener: noise power over signal power, in units of the weight.
        floor: least divisor, as a part of its shell's average.
        radius: frequencies beyond are zero; half the width by default.
        width: W, where it is odd.

    Returns:
        Complex, like data.
    """
    shape = shape_of("normalise", "data", data)
    volume = empty(data, shape, "complex")
    if len(shape) not in (3, 4):
        raise ValueError(f"bracewell.normalise: data: expected [B, (D,) H, W/2+1], found {list(shape)}")
    averages = empty(data, (shape[0], shape[-1]), "float64")
    _core.normalise(data, weight, whole("width", width or 0), volume, averages, float(wiener), float(floor), number("radius", radius),
                    current_stream(data, stream))
    return result(volume, data)


def fourier_shell_correlation(first: Array, second: Array, *, shells: Optional[int] = None, width: Optional[int] = None,
                              stream: Optional[int] = None) -> Array:
    """Correlation of two spectra in every shell of the full spectrum (Harauz and van Heel, Optik 73 (1986) 146).

    Args:
        first, second: complex ``[B, (D,) H, W/2+1]``.
        shells: how many; W/2+1 by default, up to Nyquist.
        width: W, where it is odd.

    Returns:
        float64 ``[B, shells]``; shell s holds s - 1/2 <= |k| < s + 1/2.
    """
    shape = shape_of("fourier_shell_correlation", "first", first)
    if len(shape) not in (3, 4):
        raise ValueError(f"bracewell.fourier_shell_correlation: first: expected [B, (D,) H, W/2+1], found {list(shape)}")
    out = empty(first, (shape[0], whole("shells", shells or shape[-1])), "float64")
    _core.fourier_shell_correlation(first, second, whole("width", width or 0), out, current_stream(first, stream))
    return result(out, first)
