# SPDX-License-Identifier: MIT
"""Parallel-beam tomography: back-projection, its exact transpose, and what comes before it.

Pixel (X, Y) = (column - n // 2, row - n // 2) of an image of n x n pixels is seen by angle theta at detector coordinate
s = X cos(theta) + Y sin(theta) + centre, 0 at the middle of the first detector pixel. Angles are in radians. Sinograms are
real ``[slices, angles, width]`` in attenuation (minus the logarithm of the transmission), images ``[slices, n, n]`` in
attenuation per pixel.

Y goes down, as rows do. ASTRA, scikit-image, algotom and the program bracewell-tomography have Y up: their image is the mirror
image, which minus the angles give.

Sinograms and frames of NumPy may be counts (uint16) and of any byte order; they are converted to float32.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

import numpy

from . import _core
from ._arrays import (Array, Planned, as_real, as_weights, current_stream, empty, expect_shape, flag, number, on_host, place,
                      real, result, shape_of, whole, word)


def _vector(name: str, values: Any) -> numpy.ndarray:
    found = numpy.atleast_1d(on_host(values, "float64", name))
    if found.ndim > 1:
        raise ValueError(f"bracewell: {name}: expected one axis, found {list(found.shape)}")
    return found


def _numbers(name: str, values: Any) -> list[float]:
    return _vector(name, values).tolist()


def _radians(function: str, angles: Any, degrees: Optional[bool]) -> list[float]:
    """Angles in radians. Those beyond a turn (and a tenth) are of no certain unit where none is given."""
    values = _vector("angles", angles)
    if degrees is None and values.size and abs(values).max() > 2.2 * math.pi:
        raise ValueError(f"bracewell.{function}: angles: expected degrees=True or degrees=False where they go beyond a turn of radians, "
                         f"found {values.min():g} to {values.max():g} and neither")
    return (numpy.radians(values) if degrees else values).tolist()


def _within_a_turn(angles: list[float]) -> list[float]:
    """The same directions; the library takes many turns in round numbers for degrees."""
    return [angle if abs(angle) <= 2 * math.pi else math.remainder(angle, 2 * math.pi) for angle in angles]


class Tomography(Planned):
    """Back-projection and projection by one of three methods::

        backproject  f(X, Y) = (pi / P) sum_p w_p q_p(X cos theta_p + Y sin theta_p + centre)

    of P projections q_p: the attenuation where they are filtered with the ramp (`filter_projections`). `project` is the exact
    transpose, factors included, or in units of line integrals what is measured.

    Plans are made at the first call for a precision and device.

    Args:
        angles: P of them, radians, in any order (log_polar: even ones over half a turn).
        degrees: True: angles are in degrees. False: in radians, as by default, where none of more than a turn is taken.
        width: pixels of the detector.
        method: fourier (gridding; Bracewell, Aust. J. Phys. 9, 1956; O'Sullivan 1985), line (areas of pixels in strips of rays:
            the baseline), or log_polar (Andersson, SIAM J. Imaging Sci. 9, 2016: within the disc of diameter n; never the fastest:
            3.6, 13.7 and 63.6 ms where fourier takes 2.0, 8.7 and 33.5 ms on one H200, docs/performance.md).
        image: n; the width by default.
        centre: detector coordinate of the axis; width // 2 by default.
        weights: of the angles, 1 on average, see `angular_density_weights`.
        shifts: of the views, pixels by which the axis is beside the centre; none by default. Not of log_polar.
        units: of `project`, transpose or line_integrals.
        tolerance: relative error (L2) of the Fourier method.
        slices: the most that a pass works on at once, which memory grows with; by default up to 64 of the first call.
    """

    def __init__(self, angles: Any, width: int, *, degrees: Optional[bool] = None, method: str = "fourier",
                 image: Optional[int] = None, centre: Optional[float] = None, weights: Optional[Any] = None,
                 shifts: Optional[Any] = None, units: str = "transpose", tolerance: float = 1e-4, slices: Optional[int] = None):
        word("Tomography", "units", units, "transpose", "line_integrals")
        self.angles, self.width = _radians(type(self).__name__, angles, degrees), whole("width", width, least=0)
        self.image = whole("image", image, default=self.width, least=0)
        self.weights = [] if weights is None else _numbers("weights", weights)
        self.shifts = [] if shifts is None else _numbers("shifts", shifts)
        self._method = word("Tomography", "method", method).replace("-", "_")
        self._options = (number("centre", centre), units == "line_integrals", real("tolerance", tolerance))
        self._slices = None if slices is None else whole("slices", slices, least=1)
        self._plans: dict = {}

    _shown = ("angles", "width", "method", "image", "centre", "weights", "shifts", "units", "tolerance")
    method = property(lambda self: self._method)
    centre = property(lambda self: self._options[0])
    units = property(lambda self: "line_integrals" if self._options[1] else "transpose")
    tolerance = property(lambda self: self._options[2])

    def backproject(self, sinograms: Array, *, stream: Optional[int] = None) -> Array:
        """Sinograms ``[slices, angles, width]`` to images ``[slices, n, n]``, or both without the axis of slices."""
        batch = self._batch("backproject", "sinograms", as_real(sinograms), len(self.angles), self.width)
        images = empty(batch, (batch.shape[0], self.image, self.image), "real")
        stream = current_stream(sinograms, stream)
        self._plan(batch, stream).backproject(batch, images, stream)
        return result(images if len(sinograms.shape) != 2 else images[0], sinograms)

    def project(self, images: Array, *, stream: Optional[int] = None) -> Array:
        """Images to sinograms."""
        batch = self._batch("project", "images", as_real(images), self.image, self.image)
        sinograms = empty(batch, (batch.shape[0], len(self.angles), self.width), "real")
        stream = current_stream(images, stream)
        self._plan(batch, stream).project(batch, sinograms, stream)
        return result(sinograms if len(images.shape) != 2 else sinograms[0], images)

    def _batch(self, function, name, array, *sizes):
        shape = expect_shape(f"{type(self).__name__}.{function}", name, array, *sizes)
        return array.reshape(1, *shape) if len(shape) == 2 else array

    def _plan(self, batch, stream):
        key = place(batch)
        if key not in self._plans:
            centre, line_integrals, tolerance = self._options
            self._plans[key] = _core.TomographyPlan.make(
                empty(batch, (1,), "real"), self._method, _within_a_turn(self.angles), self.width, centre, self.weights, self.shifts, self.image,
                max(1, min(64, batch.shape[0])) if self._slices is None else self._slices, line_integrals, tolerance, stream)
        return self._plans[key]


class FourierNormal(Tomography):
    """`Tomography` by the Fourier method with its normal operator, ``backproject(project(images))`` as one convolution, however many
    angles there are: `LeastSquaresSolver` goes by it where it can.

    Of an even width the Nyquist frequency of rows is no part of a convolution: `project` and `backproject` leave it out, too.

    The arguments are those of `Tomography`; images have at most 16,384 pixels along an axis.
    """

    def __init__(self, angles: Any, width: int, *, degrees: Optional[bool] = None, image: Optional[int] = None,
                 centre: Optional[float] = None, weights: Optional[Any] = None, shifts: Optional[Any] = None,
                 units: str = "transpose", tolerance: float = 1e-4, slices: Optional[int] = None):
        super().__init__(angles, width, degrees=degrees, method="fourier_normal", image=image, centre=centre, weights=weights,
                         shifts=shifts, units=units, tolerance=tolerance, slices=slices)

    def normal(self, images: Array, *, stream: Optional[int] = None) -> Array:
        """``backproject(project(images))``, real ``[slices, n, n]`` or ``[n, n]``."""
        batch = self._batch("normal", "images", as_real(images), self.image, self.image)
        results = empty(batch, batch.shape, "real")
        stream = current_stream(images, stream)
        self._plan(batch, stream).normal(batch, results, stream)
        return result(results if len(images.shape) != 2 else results[0], images)


class ViewGradients(NamedTuple):
    """Derivatives of a loss with respect to where views are."""

    angles: Array  #: float64 ``[angles]``, per radian
    shifts: Array  #: float64 ``[angles]``, per pixel
    centre: Array  #: float64 ``[1]``, per pixel


class ViewSlopes(Tomography):
    """`Tomography` by the Fourier method with the exact derivatives of what it projects with respect to angles, shifts and centre: of
    rows as the plan computes them, trigonometric polynomials in the detector coordinate.

    Of an even width the Nyquist frequency, whose derivative rows do not hold, is left out by `project` and `backproject`, too.

    The arguments are those of `Tomography`.
    """

    def __init__(self, angles: Any, width: int, *, degrees: Optional[bool] = None, image: Optional[int] = None,
                 centre: Optional[float] = None, weights: Optional[Any] = None, shifts: Optional[Any] = None,
                 units: str = "transpose", tolerance: float = 1e-4, slices: Optional[int] = None):
        super().__init__(angles, width, degrees=degrees, method="view_slopes", image=image, centre=centre, weights=weights,
                         shifts=shifts, units=units, tolerance=tolerance, slices=slices)

    def slopes(self, images: Array, *, stream: Optional[int] = None) -> tuple[Array, Array]:
        """Derivatives of the rows that `project` gives: with respect to the angle of their view, per radian, and to its shift or
        the centre, per pixel. Three projections.

        Returns:
            Two arrays, real ``[slices, angles, width]`` or ``[angles, width]``.
        """
        batch = self._batch("slopes", "images", images, self.image, self.image)
        turns, moves = (empty(images, (batch.shape[0], len(self.angles), self.width), "real") for _ in range(2))
        stream = current_stream(images, stream)
        self._plan(batch, stream).slopes(batch, turns, moves, stream)
        return tuple(result(slopes if batch is images else slopes[0], images) for slopes in (turns, moves))

    def gradients(self, images: Array, cotangents: Array, *, stream: Optional[int] = None) -> ViewGradients:
        """Gradients of a loss on the projections of images.

        Args:
            images: real ``[slices, n, n]`` or ``[n, n]``.
            cotangents: derivatives of the loss with respect to the projections, real ``[slices, angles, width]`` or
                ``[angles, width]``.
        """
        batch = self._batch("gradients", "images", images, self.image, self.image)
        of_rows = self._batch("gradients", "cotangents", cotangents, len(self.angles), self.width)
        stream = current_stream(images, stream)
        sums = []
        for slopes in self.slopes(batch, stream=stream):
            sums.append(empty(images, (len(self.angles),), "float64"))
            _core.sum_views(slopes, of_rows, sums[-1], stream)
        return ViewGradients(*(result(value, images) for value in (*sums, sums[1].sum().reshape(1))))


class Laminography(Planned):
    """Back-projection and projection about an axis that is tilted out of the plane across the beam (Helfen et al., Appl. Phys.
    Lett. 86, 2005). Voxel (X, Y, Z) = (column - n // 2, row - n // 2, slice - d // 2) of a volume ``[d, n, n]`` is seen by angle
    theta at detector coordinates::

        u = X cos(theta) + Y sin(theta) + centre
        v = Z cos(tilt) + (Y cos(theta) - X sin(theta)) sin(tilt) + row_centre

    `backproject` of rows that are filtered with the ramp (`filter_projections`) has the attenuation per voxel at the frequencies
    that are seen, all but those within a double cone about the axis; `project` is its exact transpose, or in units of line
    integrals what is measured. At tilt 0 both are `Tomography` of every slice.

    Plans are made at the first call for a precision and device.

    Args:
        angles: radians, over a whole turn.
        degrees: True: angles are in degrees. False: in radians, as by default, where none of more than a turn is taken.
        width, rows: pixels of the detector.
        tilt: radians, -1.5 to 1.5.
        method: fourier (3D gridding) or line (rays through the middles of pixels; Joseph, IEEE Trans. Med. Imaging 1, 1982).
        image, depth: n and d of the volume; width and rows by default.
        centre, row_centre: detector coordinates of the volume's origin; width // 2 and rows // 2 by default.
        weights: of the angles, 1 on average.
        units: of `project`, transpose or line_integrals.
        tolerance: relative error (L2) of the Fourier method.
    """

    def __init__(self, angles: Any, width: int, rows: int, tilt: float, *, degrees: Optional[bool] = None, method: str = "fourier",
                 image: Optional[int] = None, depth: Optional[int] = None, centre: Optional[float] = None,
                 row_centre: Optional[float] = None, weights: Optional[Any] = None, units: str = "transpose",
                 tolerance: float = 1e-4):
        word("Laminography", "units", units, "transpose", "line_integrals")
        self.angles = _radians("Laminography", angles, degrees)
        self.width, self.rows = whole("width", width, least=0), whole("rows", rows, least=0)
        self.tilt, self.method, self.units = real("tilt", tilt), word("Laminography", "method", method), units
        self.image = whole("image", image, default=self.width, least=0)
        self.depth = whole("depth", depth, default=self.rows, least=0)
        centre, row_centre = number("centre", centre), number("row_centre", row_centre)
        self.weights = [] if weights is None else _numbers("weights", weights)
        self._options = (method, _within_a_turn(self.angles), self.width, self.rows, self.tilt, centre, row_centre, self.weights, self.image,
                         self.depth, units == "line_integrals", real("tolerance", tolerance))
        self._plans: dict = {}

    _shown = ("angles", "width", "rows", "tilt", "method", "image", "depth", "weights", "units")

    def backproject(self, sinograms: Array, *, stream: Optional[int] = None) -> Array:
        """Sinograms, real ``[rows, angles, width]``, to the volume, real ``[d, n, n]``."""
        given, sinograms = sinograms, as_real(sinograms)
        self._expect("backproject", "sinograms", sinograms, (self.rows, len(self.angles), self.width))
        volume = empty(sinograms, (self.depth, self.image, self.image), "real")
        stream = current_stream(sinograms, stream)
        self._plan(sinograms, stream).backproject(sinograms, volume, stream)
        return result(volume, given)

    def project(self, volume: Array, *, stream: Optional[int] = None) -> Array:
        """The volume to sinograms."""
        given, volume = volume, as_real(volume)
        self._expect("project", "volume", volume, (self.depth, self.image, self.image))
        sinograms = empty(volume, (self.rows, len(self.angles), self.width), "real")
        stream = current_stream(volume, stream)
        self._plan(volume, stream).project(volume, sinograms, stream)
        return result(sinograms, given)

    @staticmethod
    def _expect(function, name, array, shape):
        found = shape_of(f"Laminography.{function}", name, array)
        if found != shape:
            raise ValueError(f"bracewell.Laminography.{function}: {name}: expected {list(shape)}, found {list(found)}")

    def _plan(self, array, stream):
        key = place(array)
        if key not in self._plans:
            self._plans[key] = _core.TomographyPlan.laminography(empty(array, (1,), "real"), *self._options, stream)
        return self._plans[key]


def _mask(function: str, valid: Optional[Array], sinograms: Array) -> Optional[Array]:
    """A mask of sinograms in their precision."""
    if valid is None:
        return None
    found, expected = shape_of(function, "valid", valid), tuple(sinograms.shape)
    if found != expected:
        raise ValueError(f"bracewell.{function}: valid: expected {list(expected)}, found {list(found)}")
    return as_weights(valid, sinograms)


def filter_projections(sinograms: Array, filter: str = "shepp", *, padding: str = "edge", shift: float = 0,
                       stream: Optional[int] = None) -> Array:
    """Filters the rows of sinograms by FFTs of at least twice their width (Ramachandran and Lakshminarayanan, PNAS 68, 1971).

    Args:
        sinograms: real ``[slices, angles, width]`` or ``[angles, width]``.
        filter: none, ramp, shepp, cosine, cosine2, hamming, hann or parzen; the default is the program's.
        padding: what lies beyond the detector, zero or edge (the outermost values go on: objects that are cut off); likewise.
        shift: pixels; value i of the result is that at i + shift.

    Returns:
        Filtered sinograms of the same shape.
    """
    word("filter_projections", "padding", padding, "zero", "edge")
    shape = expect_shape("filter_projections", "sinograms", sinograms, "angles", "width")
    sinograms = as_real(sinograms)
    batch = sinograms.reshape(1, *shape) if len(shape) == 2 else sinograms
    out = empty(sinograms, batch.shape, "real")
    stream = current_stream(sinograms, stream)
    rows = batch.shape[0] * batch.shape[1] if len(batch.shape) == 3 else 1
    _core.RowPlan.filter(empty(sinograms, (1,), "real"), word("filter_projections", "filter", filter), padding == "edge", max(1, rows),
                         shape[-1], real("shift", shift), stream).execute(batch, out, None, stream)
    return result(out.reshape(shape), sinograms)


def remove_stripes(sinograms: Array, method: str = "sorting", *, strength: float = 1, window: int = 5, levels: int = 3,
                   damping: float = 1, dead: float = 3, valid: Optional[Array] = None, stream: Optional[int] = None) -> Array:
    """Removes stripes along the angles, which become rings in the reconstruction.

    Args:
        sinograms: real ``[slices, angles, width]`` or ``[angles, width]``.
        method: sorting (Vo, Atwood and Drakopoulos, Opt. Express 26, 2018), all (that article's three steps: dead, large and small
            stripes), wavelet (along the columns, Muench et al., Opt. Express 17, 2009), or offset, one per column (after
            Titarenko, Withers and Yagola, Appl. Math. Lett. 23, 2010).
        strength: of offset; wider stripes than about 1 / sqrt(strength) columns stay.
        window: of sorting and all, odd, up to 63 columns.
        levels: of wavelet; wider stripes than about 2**levels / 2 columns stay.
        damping: of wavelet, 0.1 to 100 cycles per scan over which stripes may change.
        dead: columns whose values change this many times more or less than their neighbours' are interpolated; 0: none. Not of all.
        valid: a mask of the shape of the sinograms, see `normalise_projections`. Values where it is 0 are not read; they lie on straight
            lines between their neighbours in the row.

    Returns:
        Sinograms of the same shape.
    """
    shape = expect_shape("remove_stripes", "sinograms", sinograms, "angles", "width")
    sinograms = as_real(sinograms)
    out = empty(sinograms, shape if len(shape) == 3 else (1, *shape), "real")
    out[...] = sinograms.reshape(out.shape)
    valid = _mask("remove_stripes", valid, sinograms)
    valid = valid if valid is None else valid.reshape(out.shape)
    stream = current_stream(sinograms, stream)
    _core.RowPlan.stripes(empty(sinograms, (1,), "real"), shape[-2], shape[-1], word("remove_stripes", "method", method),
                          real("strength", strength), whole("window", window), whole("levels", levels),
                          real("damping", damping), real("dead", dead), stream).execute(out, out, valid, stream)
    return result(out.reshape(shape), sinograms)


def find_centre(sinogram: Array, angles: Any, *, degrees: Optional[bool] = None, first: Optional[float] = None,
                last: Optional[float] = None, valid: Optional[Array] = None, stream: Optional[int] = None) -> float:
    """The detector coordinate of the rotation axis, from one sinogram over half a turn (Vo, Drakopoulos, Atwood and Reinhard, Opt.
    Express 22, 2014). Waits.

    Args:
        sinogram: real ``[angles, width]``, attenuation, not filtered.
        angles: radians.
        degrees: True: angles are in degrees. False: in radians, as by default, where none of more than a turn is taken.
        first, last: pixels between which to search; a quarter of the width on either side of the middle.
        valid: a mask of the shape of the sinogram, see `normalise_projections`. Values where it is 0 are not read, but interpolated.

    Raises:
        ValueError: on values that are not finite, or the same everywhere: there is no axis to be found.
    """
    shape_of("find_centre", "sinogram", sinogram)
    sinogram = as_real(sinogram)
    return _core.find_centre(sinogram, _radians("find_centre", angles, degrees), number("first", first), number("last", last),
                             _mask("find_centre", valid, sinogram), current_stream(sinogram, stream))


def normalise_projections(raw: Array, dark: Optional[Array] = None, flat: Optional[Array] = None, *, logarithm: bool = True,
                          air: tuple[int, int] = (0, 0), return_valid: bool = False, stream: Optional[int] = None) -> Any:
    """Raw frames to sinograms: (raw - dark) / (flat - dark), minus the logarithm (Beer-Lambert). Values that are not finite, or have no
    light, lie on straight lines between their neighbours in the row.

    Args:
        raw: real ``[angles, slices, width]``.
        dark, flat: mean frames without beam and without object, real ``[slices, width]``.
        air: columns [begin, end) that see air, by whose mean each row is divided.
        return_valid: whether to return the mask of values that are data, too.

    Returns:
        Real ``[slices, angles, width]``; with return_valid a pair of these and a mask of this shape and type: 1 where frames say something, 0
        where a value comes from its neighbours. `remove_stripes`, `find_centre` and `find_overlap` take it as valid,
        `LeastSquaresSolver.solve` takes it as weights.
    """
    shape = shape_of("normalise_projections", "raw", raw)
    if len(shape) != 3:
        raise ValueError(f"bracewell.normalise_projections: raw: expected [angles, slices, width], found {len(shape)} axes")
    for name, frames in (("dark", dark), ("flat", flat)):
        if frames is not None and shape_of("normalise_projections", name, frames) != shape[1:]:
            raise ValueError(f"bracewell.normalise_projections: {name}: expected {list(shape[1:])}, found {list(frames.shape)}")
    try:
        air = (whole("air", air[0]), whole("air", air[1]))
    except (TypeError, IndexError, KeyError):
        raise ValueError(f"bracewell.normalise_projections: air: expected columns (begin, end), found {type(air).__name__}") from None
    given, raw = raw, as_real(raw)
    dark, flat = (frames if frames is None else as_real(frames, raw) for frames in (dark, flat))
    out = empty(raw, (shape[1], shape[0], shape[2]), "real")
    valid = empty(raw, out.shape, "real") if flag("return_valid", return_valid) else None
    _core.normalise_projections(raw, dark, flat, out, valid, logarithm, *air, current_stream(raw, stream))
    return (result(out, given), result(valid, given)) if return_valid else result(out, given)


def angular_density_weights(angles: Any, *, degrees: Optional[bool] = None) -> list[float]:
    """Weights for angles that are not evenly spread, 1 on average: the share of half a turn that is nearest to each."""
    return _core.angular_density_weights(_radians("angular_density_weights", angles, degrees))
