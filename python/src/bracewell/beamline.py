# SPDX-License-Identifier: MIT
"""What comes between raw frames and a reconstruction, on the device. Sinograms are real ``[slices, angles, width]``; those of one
slice may be ``[angles, width]`` where nothing says otherwise. Results are new arrays."""

from __future__ import annotations

from typing import Any, Optional

from . import _core
from ._arrays import Array, as_real, current_stream, empty, expect_shape, real, result, shape_of, whole, word
from .tomography import _mask, _radians


def _like(function: str, sinograms: Array) -> tuple[Array, Array, tuple[int, ...]]:
    """The sinograms with an axis of slices, an array for the result, and the shape that it is to have."""
    sinograms = as_real(sinograms)
    shape = expect_shape(function, "sinograms", sinograms, "angles", "width")
    batch = sinograms.reshape(1, *shape) if len(shape) == 2 else sinograms
    return batch, empty(sinograms, batch.shape, "real"), shape


def retrieve_phase(sinograms: Array, *, wavelength: float, distance: float, pixel_size: float, delta_beta: float,
                   method: str = "paganin", regularisation: float = 1e-2, padding: Optional[int] = None, attenuation: bool = True,
                   stream: Optional[int] = None) -> Array:
    """Attenuation from projections in which waves have spread from the object to the detector, by a filter of every frame
    ``[slices, width]``. The object is taken for one material. Lengths are in one unit, any.

    Args:
        sinograms: real ``[slices, angles, width]``, neighbouring rows of the detector: minus the logarithm of the transmission.
        wavelength: of the beam.
        distance: from the object to the detector, of parallel beam.
        pixel_size: of the detector, at the object.
        delta_beta: of the refractive index 1 - delta + i beta.
        method: paganin (Paganin et al., J. Microsc. 206, 2002), generalised_paganin (J. Opt. 22, 2020: details smoothed less), or
            weak_object (any distance: the contrast transfer function; Turner et al., Opt. Express 12, 2004).
        regularisation: of weak_object.
        padding: pixels beyond every edge at least; by default as far as the filter reaches.
        attenuation: False: `sinograms` are the transmission.

    Returns:
        Attenuation of the same shape.
    """
    shape = shape_of("retrieve_phase", "sinograms", sinograms)
    if len(shape) != 3:
        raise ValueError(f"bracewell.retrieve_phase: sinograms: expected [slices, angles, width], found {len(shape)} axes")
    given, sinograms = sinograms, as_real(sinograms)
    out = empty(sinograms, shape, "real")
    stream = current_stream(sinograms, stream)
    _core.RowPlan.phase(empty(sinograms, (1,), "real"), word("retrieve_phase", "method", method), max(1, shape[1]), shape[0], shape[2],
                        real("wavelength", wavelength), real("distance", distance), real("pixel_size", pixel_size),
                        real("delta_beta", delta_beta), real("regularisation", regularisation),
                        None if padding is None else whole("padding", padding), bool(attenuation),
                        stream).execute(sinograms, out, None, stream)
    return result(out, given)


def remove_outliers(sinograms: Array, *, window: int = 3, threshold: float = 0.5, stream: Optional[int] = None) -> Array:
    """Replaces values that are further than `threshold` from the median of `window` (3, 5, 7 or 9) neighbouring angles and columns
    by it: flashes of scattered radiation that one frame sees. Angles are in the order in which they were taken."""
    batch, out, shape = _like("remove_outliers", sinograms)
    _core.remove_outliers(batch, out, whole("window", window), real("threshold", threshold), current_stream(sinograms, stream))
    return result(out.reshape(shape), sinograms)


def turn_detector(sinograms: Array, angle: float, *, row: float = 0, column: float = 0, stream: Optional[int] = None) -> Array:
    """What a detector would have seen that stands upright: frames ``[slices, width]`` are turned about the pixel (row, column) by an
    angle in radians, with bilinear interpolation. What an upright detector sees at row s and column i, a turned one sees at
    row cos(angle) s - sin(angle) i and column sin(angle) s + cos(angle) i, counted from there.

    Args:
        sinograms: real ``[slices, angles, width]``, neighbouring rows of the detector.
    """
    shape = shape_of("turn_detector", "sinograms", sinograms)
    given, sinograms = sinograms, as_real(sinograms)
    out = empty(sinograms, shape, "real")
    _core.turn_detector(sinograms, out, real("angle", angle), real("row", row), real("column", column), current_stream(sinograms, stream))
    return result(out, given)


def bin_frames(frames: Array, bin: int, *, stream: Optional[int] = None) -> Array:
    """Means over squares of bin x bin pixels of raw frames, real ``[angles, slices, width]``; rows and columns behind the last whole
    square are left out. The middle of square i is at pixel bin i + (bin - 1) / 2."""
    shape = shape_of("bin_frames", "frames", frames)
    bin = whole("bin", bin)
    if len(shape) != 3 or bin < 1:
        raise ValueError("bracewell.bin_frames: expected frames [angles, slices, width] and bin >= 1, found "
                         f"{len(shape)} axes and {bin}")
    given, frames = frames, as_real(frames)
    out = empty(frames, (shape[0], shape[1] // bin, shape[2] // bin), "real")
    _core.bin_frames(frames, out, bin, current_stream(frames, stream))
    return result(out, given)


def find_overlap(sinogram: Array, angles: Any, *, degrees: Optional[bool] = None, least: int = 0, valid: Optional[Array] = None,
                 stream: Optional[int] = None) -> float:
    """The detector coordinate of the rotation axis of a scan over a whole turn, also near an end of the detector: where rows and the
    mirror images of those half a turn later are most alike. Waits.

    Args:
        sinogram: real ``[angles, width]``, attenuation, not filtered.
        angles: radians, over 350 degrees at least.
        degrees: True: angles are in degrees. False: in radians, as by default, where none of more than a turn is taken.
        least: columns that overlap at least; 0: a fiftieth of the width, 8 at least.
        valid: a mask, as `find_centre` takes it.

    Raises:
        ValueError: on values that are not finite, or the same everywhere.
    """
    shape_of("find_overlap", "sinogram", sinogram)
    sinogram = as_real(sinogram)
    return _core.find_overlap(sinogram, _radians("find_overlap", angles, degrees), whole("least", least), _mask("find_overlap", valid, sinogram),
                              current_stream(sinogram, stream))


def weigh_half_acquisition(sinograms: Array, centre: float, *, stream: Optional[int] = None) -> tuple[Array, float]:
    """Rows of a scan over a whole turn whose axis is near an end of the detector, as the wider rows that are reconstructed with the
    same angles: what one end misses it sees half a turn later. Columns that are seen twice fall from 2 to 0 as a squared cosine.

    Args:
        sinograms: attenuation.
        centre: of the axis in them, see `find_overlap`.

    Returns:
        The wider rows, zero where the detector is not, and the centre of the axis in them.
    """
    batch, _, shape = _like("weigh_half_acquisition", sinograms)
    width, axis = _core.half_acquisition(shape[-1], real("centre", centre))
    out = empty(batch, (*batch.shape[:2], width), "real")
    _core.weigh_half_acquisition(batch, out, real("centre", centre), current_stream(sinograms, stream))
    return result(out.reshape(*shape[:-1], width), sinograms), axis
