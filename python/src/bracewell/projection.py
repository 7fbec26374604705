# SPDX-License-Identifier: MIT
"""Projection of spectra in any pose, its adjoint, and the exact gradients of both.

Arrays are C-contiguous and of one precision (complex64 with float32, or complex128 with float64) and one device. Half
spectra hold the columns x = 0 ... W/2 of a transform (``numpy.fft.rfftn``, unscaled): zero frequency and origin at index
0. B counts batches and P poses; an axis of extent 1 is shared.

====================  =========================================================================================
reconstruction, data  complex ``[B, (D,) H, W/2+1]``
projections           complex ``[B, P, (d,) h, w/2+1]``
matrices              real ``[B, P, 3, 3]``, or ``[B, P, 2, 2]`` of images: projection frequency (x, y[, z]) to
                      reconstruction frequency; the transpose of RELION's matrix
shifts                real ``[B, P, 2]`` (row, column) or ``[B, P, 3]``, in pixels: positive moves to higher index
filters, weights      real ``[B, P, (d,) h, w/2+1]``
====================  =========================================================================================

Kernels are ``linear``, ``catmull_rom`` and ``cubic_bspline``. All functions raise ValueError on shapes and options that do
not fit, TypeError on precisions, devices and objects that do not, each in one sentence, before anything is written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Optional, Sequence

import numpy

from . import _core
from ._arrays import Array, Held, current_stream, empty, expect_writable, number, real, result, shape_of, whole, word, words, zeros


@lru_cache(maxsize=256)
def _known_settings(interpolation, oversampling, radius, ewald_radius, kernel_weights="signed", skip_redundant=False):
    word("", "kernel_weights", kernel_weights, "signed", "absolute")
    return _core.ProjectionSettings(word("", "interpolation", interpolation), number("oversampling", oversampling), number("radius", radius),
                                    number("ewald_radius", ewald_radius), kernel_weights == "absolute", bool(skip_redundant))


def _settings(*options):
    try:
        return _known_settings(*options)
    except TypeError:  # what has no hash is told by its name
        return _known_settings.__wrapped__(*options)


def _once(check):
    """Of a check of shapes: the same one, which looks at calls with the same arguments once. Errors are not kept."""
    known = lru_cache(maxsize=256)(check)

    def checked(*arguments):
        try:
            return known(*arguments)
        except TypeError:  # what cannot be looked up, or the check's own error
            return check(*arguments)

    return checked


def _sizes(function, name, spectrum, leading, width) -> tuple[int, ...]:
    """Full sizes of a half spectrum behind its leading axes."""
    return _sizes_of(function, name, shape_of(function, name, spectrum), leading, width)


@_once
def _sizes_of(function, name, shape, leading, width) -> tuple[int, ...]:
    if len(shape) not in (leading + 2, leading + 3):
        raise ValueError(f"bracewell.{function}: {name}: expected {leading + 2} or {leading + 3} axes, found {len(shape)}")
    columns = shape[-1]
    box = set(shape[leading:-1])
    if width is None and len(box) == 1 and 2 * columns - 1 in box:
        raise ValueError(f"bracewell.{function}: {name}: expected width= where boxes are odd, found rows of {2 * columns - 1} and "
                         f"{columns} columns, of width {2 * columns - 2} or {2 * columns - 1}")
    if width is None and box == {columns} and columns > 2:
        raise ValueError(f"bracewell.{function}: {name}: expected the half spectrum of rfftn, {columns // 2 + 1} columns, found the "
                         f"{columns} of a full one; width={2 * columns - 2} where it is a half one")
    width = 2 * (columns - 1) if width is None else whole("width", width)
    if width // 2 + 1 != columns:
        raise ValueError(f"bracewell.{function}: {name}: expected {width // 2 + 1} columns, as its full width is {width}, "
                         f"found {columns}")
    return (*shape[leading:-1], width)


def _last(function, shape):
    """The width that sizes end with, or None."""
    try:
        return None if shape is None else tuple(shape)[-1]
    except (TypeError, IndexError):
        raise ValueError(f"bracewell.{function}: shape: expected sizes, found {type(shape).__name__}") from None


def _half(sizes) -> tuple[int, ...]:
    return (*sizes[:-1], sizes[-1] // 2 + 1)


def _leading(axis, *arrays) -> int:
    extent = None
    for array in arrays:
        shape = () if array is None else getattr(array, "shape", ())
        if len(shape) > axis and (extent is None or shape[axis] > extent):
            extent = shape[axis]
    return 1 if extent is None else extent


def _expect_poses(function, leading, sizes, dimensions, **arrays) -> None:
    """Whether what belongs to poses goes together: of batches and poses each array has one, or as many as all that have more.
    `leading`: an array's name and its batches, and poses where it has some; `sizes`: of projections."""
    _expect_shapes(function, leading, tuple(sizes), dimensions,
                   *[(name, shape_of(function, name, array)) for name, array in arrays.items() if array is not None])


@_once
def _expect_shapes(function, leading, sizes, dimensions, *shapes) -> None:
    name, extents = leading
    known = [(extent, name) for extent in (*extents, 1)[:2]]
    inner = {"matrices": (dimensions, dimensions), "shifts": (len(sizes),)}
    for name, shape in shapes:
        behind = inner.get(name, _half(sizes))
        if len(shape) != 2 + len(behind) or shape[2:] != behind:
            raise ValueError(f"bracewell.{function}: {name}: expected [batches, poses, {', '.join(map(str, behind))}], found "
                             f"{list(shape)}")
        for axis, what in enumerate(("batches", "poses")):
            most, of = known[axis]
            if shape[axis] != 1 and most != 1 and shape[axis] != most:
                raise ValueError(f"bracewell.{function}: {name}: expected 1 or {most} {what}, as {of} has, found {shape[axis]}")
            if most == 1:
                known[axis] = shape[axis], name


def _shapes(function, **arrays) -> list:
    """The shapes of arrays, None where there is none."""
    try:
        return [None if array is None else array.shape for array in arrays.values()]
    except AttributeError:
        return [None if array is None else shape_of(function, name, array) for name, array in arrays.items()]


def _expect_both(function, **shapes) -> None:
    for name, shape in shapes.items():
        if shape is None:
            raise TypeError(f"bracewell.{function}: {name}: expected an array, found None")


def _most(axis, *shapes) -> int:
    return max((shape[axis] for shape in shapes if shape is not None), default=1)


@_once
def _project_extents(reconstruction, matrices, shifts, filters, shape, width):
    """Of the shapes of a call of `project` that is right: the reconstruction's width, the projections', and their shape."""
    _expect_both("project", reconstruction=reconstruction, matrices=matrices)
    volume = _sizes_of("project", "reconstruction", tuple(reconstruction), 1, width)
    sizes = volume[-2:] if shape is None else shape
    poses = [(name, tuple(one)) for name, one in (("matrices", matrices), ("shifts", shifts), ("filters", filters)) if one is not None]
    _expect_shapes("project", ("reconstruction", tuple(reconstruction[:1])), sizes, len(volume), *poses)
    extents = [one for _, one in poses]
    return volume[-1], sizes[-1], (_most(0, reconstruction, *extents), _most(1, *extents), *_half(sizes))


@_once
def _backproject_extents(projections, matrices, shifts, filters, weights, shape, width):
    """Of the shapes of a call of `backproject` that is right: the projections' width, the volumes', and their shape."""
    _expect_both("backproject", projections=projections, matrices=matrices)
    sizes = _sizes_of("backproject", "projections", tuple(projections), 2, width)
    dimensions = (0, *matrices)[-1]
    if dimensions not in (2, 3):
        raise ValueError(f"bracewell.backproject: matrices: expected [batches, poses, 3, 3] or [batches, poses, 2, 2], found "
                         f"{list(matrices)}")
    poses = (("matrices", matrices), ("shifts", shifts), ("filters", filters), ("weights", weights))
    _expect_shapes("backproject", ("projections", tuple(projections[:2])), sizes, dimensions,
                   *[(name, tuple(one)) for name, one in poses if one is not None])
    if shape is None:
        shape = sizes if dimensions <= len(sizes) else (sizes[0],) + sizes
    return sizes[-1], int(shape[-1]), (projections[0], *_half(shape))


def project(reconstruction: Array, matrices: Array, shifts: Optional[Array] = None, filters: Optional[Array] = None, *,
            shape: Optional[Sequence[int]] = None, width: Optional[int] = None, interpolation: str = "catmull_rom",
            oversampling: Optional[float] = None, radius: Optional[float] = None, ewald_radius: Optional[float] = None,
            out: Optional[Array] = None, stream: Optional[int] = None) -> Array:
    """Samples the transform of projections from that of a reconstruction (projection-slice theorem, Bracewell 1956)::

        P(k) = F(M oversampling k) exp(-2 pi i k.s / n)   for |k| <= radius, zero elsewhere

    with F the spectrum interpolated by the kernel and continued periodically.

    Args:
        reconstruction: complex ``[B, (D,) H, W/2+1]``.
        matrices: real ``[B, P, 3, 3]`` (``[B, P, 2, 2]`` of images).
        shifts: real ``[B, P, 2]`` (row, column), pixels of the projection.
        filters: real ``[B, P, h, w/2+1]``, multiplies every sample: a CTF, for instance.
        shape: sizes (h, w) of the projections, (d, h, w) for volumes from volumes; the last ones of the reconstruction.
        width: W, where it is odd.
        oversampling: padded over unpadded box; has to be given where boxes differ.
        radius: largest |k|, in periods per box of the projection; by default up to both Nyquist limits.
        ewald_radius: radius of the Ewald sphere, in the same unit; a flat slice by default.
        out: where to write, complex ``[B, P, (d,) h, w/2+1]``.
        stream: of the GPU, as a number; the current one of the array's library.

    Returns:
        Complex ``[B, P, (d,) h, w/2+1]``.
    """
    expect_writable("project", out)
    of, to, extents = _project_extents(*_shapes("project", reconstruction=reconstruction, matrices=matrices, shifts=shifts,
                                                filters=filters), None if shape is None else tuple(shape), width)
    if out is None:
        out = empty(reconstruction, extents, "complex")
    _core.project(reconstruction, of, matrices, shifts, filters, out, to,
                  _settings(interpolation, oversampling, radius, ewald_radius), current_stream(reconstruction, stream))
    return result(out, reconstruction)


class ProjectGradients(NamedTuple):
    """Derivatives of a loss; those that were not wanted are None."""

    reconstruction: Optional[Array]
    matrices: Optional[Array]
    shifts: Optional[Array]


def project_gradients(reconstruction: Array, matrices: Array, cotangent: Array, shifts: Optional[Array] = None,
                      filters: Optional[Array] = None, *, wanted: Sequence[str] = ("reconstruction", "matrices"),
                      shape: Optional[Sequence[int]] = None, width: Optional[int] = None,
                      interpolation: str = "catmull_rom", oversampling: Optional[float] = None,
                      radius: Optional[float] = None, ewald_radius: Optional[float] = None,
                      skip_redundant: bool = False, stream: Optional[int] = None) -> ProjectGradients:
    """Exact derivatives of a real loss L with respect to what `project` reads, of those in `wanted` alone.

    Complex gradients are dL/dRe + i dL/dIm of every stored element, going in and coming out. What is shared over batches or
    poses gets the sum.

    Args:
        cotangent: complex ``[B, P, (d,) h, w/2+1]``, dL/dRe P + i dL/dIm P.
        wanted: some of reconstruction, matrices, shifts.
        shape: sizes of the projections, where their width is odd.
        skip_redundant: leave out the samples on column 0 whose Friedel mate is stored too, for losses on the full spectrum.

    The other arguments are those of `project`.
    """
    volume = _sizes("project_gradients", "reconstruction", reconstruction, 1, width)
    sizes = _sizes("project_gradients", "cotangent", cotangent, 2, _last("project_gradients", shape))
    _expect_poses("project_gradients", ("reconstruction", reconstruction.shape[:1]), sizes, len(volume), matrices=matrices,
                  shifts=shifts, filters=filters)
    gradients = {name: None for name in ("reconstruction", "matrices", "shifts")}
    wanted = words("project_gradients", "wanted", wanted, *gradients)
    for name, of, kind in (("reconstruction", reconstruction, "complex"), ("matrices", matrices, "real"),
                           ("shifts", shifts, "real")):
        if name in wanted and of is not None:
            gradients[name] = empty(reconstruction, of.shape, kind)
    _core.project_gradients(reconstruction, volume[-1], matrices, shifts, filters, cotangent, sizes[-1],
                            gradients["reconstruction"], gradients["matrices"], gradients["shifts"],
                            _settings(interpolation, oversampling, radius, ewald_radius, "signed", skip_redundant),
                            current_stream(reconstruction, stream))
    return ProjectGradients(**{name: result(value, reconstruction) for name, value in gradients.items()})


class PreparedReference(Held):
    """A reconstruction, or a batch of them, copied once into an order in which GPUs sample it fastest: for projecting it
    again and again, in few poses or many.

    Args:
        reconstruction: complex ``[B, (D,) H, W/2+1]``; later changes of it are not seen.
        width: W, where it is odd.
        interpolation: linear, catmull_rom or cubic_bspline.
        half: store it in half precision; arithmetic stays in float, projections have an error of about 2e-4.

    Its methods take arrays of the same device and precision.
    """

    def __init__(self, reconstruction: Array, *, width: Optional[int] = None, interpolation: str = "catmull_rom",
                 half: bool = False, stream: Optional[int] = None):
        self._sizes = _sizes("PreparedReference", "reconstruction", reconstruction, 1, width)
        self._batches, self._interpolation = reconstruction.shape[0], word("PreparedReference", "interpolation", interpolation)
        self.shape, self.interpolation = self._sizes, interpolation
        self._plan = _core.ReferencePlan.make(empty(reconstruction, (1,), "real"), reconstruction, self._sizes[-1],
                                              self._interpolation, bool(half), current_stream(reconstruction, stream))

    _shown = ("shape", "interpolation")

    @property
    def memory_bytes(self) -> int:
        """Of the copy."""
        return self._plan.memory_bytes

    def project(self, matrices: Array, shifts: Optional[Array] = None, filters: Optional[Array] = None, *,
                shape: Optional[Sequence[int]] = None, oversampling: Optional[float] = None,
                radius: Optional[float] = None, ewald_radius: Optional[float] = None, out: Optional[Array] = None,
                stream: Optional[int] = None) -> Array:
        """`bracewell.project` of it."""
        expect_writable("PreparedReference.project", out)
        sizes = tuple(shape) if shape is not None else self._sizes[-2:]
        _expect_poses("PreparedReference.project", ("reconstruction", (self._batches,)), sizes, len(self._sizes), matrices=matrices,
                      shifts=shifts, filters=filters)
        if out is None:
            out = empty(matrices, (max(self._batches, _leading(0, matrices, shifts, filters)),
                                   _leading(1, matrices, shifts, filters), *_half(sizes)), "complex")
        self._plan.project(matrices, shifts, filters, out, sizes[-1],
                           _settings(self._interpolation, oversampling, radius, ewald_radius),
                           current_stream(matrices, stream))
        return result(out, matrices)

    def project_gradients(self, matrices: Array, cotangent: Array, shifts: Optional[Array] = None,
                          filters: Optional[Array] = None, *, wanted: Sequence[str] = ("matrices",),
                          shape: Optional[Sequence[int]] = None, oversampling: Optional[float] = None,
                          radius: Optional[float] = None, ewald_radius: Optional[float] = None,
                          skip_redundant: bool = False, stream: Optional[int] = None) -> ProjectGradients:
        """`bracewell.project_gradients` with respect to poses: wanted are matrices, shifts or both."""
        sizes = _sizes("project_gradients", "cotangent", cotangent, 2, _last("PreparedReference.project_gradients", shape))
        gradients = {"reconstruction": None, "matrices": None, "shifts": None}
        wanted = words("PreparedReference.project_gradients", "wanted", wanted, "matrices", "shifts")
        for name, of in (("matrices", matrices), ("shifts", shifts)):
            if name in wanted and of is not None:
                gradients[name] = empty(matrices, of.shape, "real")
        self._plan.project_gradients(matrices, shifts, filters, cotangent, sizes[-1], gradients["matrices"],
                                     gradients["shifts"],
                                     _settings(self._interpolation, oversampling, radius, ewald_radius, "signed",
                                               skip_redundant),
                                     current_stream(matrices, stream))
        return ProjectGradients(**{name: result(value, matrices) for name, value in gradients.items()})


def rotation_grid(degrees: float) -> numpy.ndarray:
    """Rotations that cover all evenly, none further than `degrees` (0.1 to 50) from the nearest: candidates for `PoseScoring`
    (super-Fibonacci spiral; Alexa, Proc. CVPR 2022, 8291). Those that follow each other are not neighbours.

    Returns:
        float64 ``[poses, 3, 3]``.
    """
    return numpy.array(_core.rotation_grid(real("degrees", degrees))).reshape(-1, 3, 3)


class PoseScores(NamedTuple):
    """What `PoseScoring.score` gives: N images, P poses, S shifts; None where it was not wanted."""

    all: Optional[Array]  #: real ``[N, P, S]``, of every image, pose and shift
    best: Optional[Array]  #: real ``[N, best]``, of the best poses, each at its best shift, from the best on; NaN: none
    poses: Optional[Array]  #: int32 ``[N, best]``, which poses those are; -1: none
    shifts: Optional[Array]  #: int32 ``[N, best]``, their best shifts; -1: none


class PoseScoring(Held):
    """Compares images X with projections P of a reference at candidate poses and shifts, as in searches for orientations and
    template matching, without writing projections::

        squared_difference  sum m w |X - C P|^2: low is good
        correlation         sum m w Re(conj(X) C P) / sqrt(sum m w |X|^2  sum m w |C P|^2): high is good, 1 at most

    over the stored frequencies within the radius, with filters C, weights w and the multiplicity m of frequencies (2, on
    columns that hold both of a Friedel pair 1).

    Args:
        images: complex ``[N, h, w/2+1]``, zero frequency and origin at index 0; copied.
        shifts: real ``[S, 2]`` (row, column) in pixels, of every image and pose; by default none but (0, 0).
        filters: real ``[N|1, h, w/2+1]``, multiply projections: CTFs, for instance.
        weights: real ``[N|1, h, w/2+1]``, of frequencies, none negative.
        width: w, where it is odd.
        score: squared_difference or correlation.
        best: how many poses are ranked for every image; 0: none.
        radius: largest frequency, in periods per box of the image; by default up to its Nyquist limit.
        oversampling: padded over unpadded box; has to be given where boxes differ.
        ewald_radius: radius of the Ewald sphere, in the unit of radius; a flat slice by default.
        stream: of the GPU, as a number; the current one of the array's library.
    """

    def __init__(self, images: Array, shifts: Optional[Array] = None, *, filters: Optional[Array] = None,
                 weights: Optional[Array] = None, width: Optional[int] = None, score: str = "squared_difference",
                 best: int = 0, radius: Optional[float] = None, oversampling: Optional[float] = None,
                 ewald_radius: Optional[float] = None, stream: Optional[int] = None):
        count, height, full_width = self._shape(images, width)
        if shifts is None:
            shifts = zeros(images, (1, 2), "real")
        self._width, self._best = full_width, whole("best", best)
        stream = current_stream(images, stream)
        self._plan = _core.ScoringPlan.make(empty(images, (1,), "real"), count, (*shape_of("PoseScoring", "shifts", shifts), 0)[0],
                                            height, full_width, self._best, score,
                                            _settings("linear", oversampling, radius, ewald_radius), stream)
        self.set_images(images, filters, weights, stream=stream)
        self.set_shifts(shifts, stream=stream)

    @property
    def memory_bytes(self) -> int:
        """Bytes that the plan holds."""
        return self._plan.memory_bytes

    def set_images(self, images: Array, filters: Optional[Array] = None, weights: Optional[Array] = None, *,
                   stream: Optional[int] = None) -> None:
        """Takes other images of the same size, at most as many."""
        count = self._shape(images, self._width)[0]
        self._plan.set_images(images, filters, weights, self._width, current_stream(images, stream))
        self._count = count

    def set_shifts(self, shifts: Array, *, stream: Optional[int] = None) -> None:
        """Takes other shifts, at most as many."""
        self._plan.set_shifts(shifts, current_stream(shifts, stream))
        self._shifts = shifts.shape[0]

    def score(self, reference: PreparedReference, matrices: Array, *, wanted: Optional[Sequence[str]] = None,
              stream: Optional[int] = None) -> PoseScores:
        """Scores all images at all poses and shifts. The same bits in every run.

        Args:
            reference: of one volume, or of one image for poses in the plane.
            matrices: real ``[P, 3, 3]``, or ``[P, 2, 2]`` of images; as those of `project`.
            wanted: all, best or both; what is ranked where `best` was given, else all.
        """
        if wanted is None:
            wanted = ("best",) if self._best else ("all",)
        wanted = words("PoseScoring.score", "wanted", wanted, "all", "best")
        poses = (*shape_of("PoseScoring.score", "matrices", matrices), 0)[0]
        all_ = empty(matrices, (self._count, poses, self._shifts), "real") if "all" in wanted else None
        ranked = (None,) * 3
        if "best" in wanted:
            ranked = tuple(empty(matrices, (self._count, self._best), kind) for kind in ("real", "int32", "int32"))
        if not isinstance(reference, PreparedReference):
            raise TypeError("bracewell.PoseScoring.score: reference: expected a PreparedReference, found "
                            f"{type(reference).__name__}")
        self._plan.score(reference._plan, matrices, all_, *ranked, current_stream(matrices, stream))
        return PoseScores(*(result(value, matrices) for value in (all_, *ranked)))

    @staticmethod
    def _shape(images, width):
        shape = shape_of("PoseScoring", "images", images)
        if len(shape) != 3:
            raise ValueError(f"bracewell.PoseScoring: images: expected [N, h, w/2+1], found {len(shape)} axes")
        return (shape[0], *_sizes("PoseScoring", "images", images, 1, width))


class Expected(NamedTuple):
    """What `Expectation.run` gives: N images, K classes; None where it was not wanted."""

    log_evidence: Optional[Array]  #: float64 ``[N]``, log p(X); -inf: all priors are zero; nan: a projection is not finite
    class_shares: Optional[Array]  #: real ``[N, K]``, posteriors of classes
    posteriors: Optional[Array]  #: real ``[N, best]``, the largest, from the largest on; wanted as "best", with the next three
    classes: Optional[Array]  #: int32 ``[N, best]`` of these candidates; -1: none
    poses: Optional[Array]  #: int32 ``[N, best]``, indices into the matrices; -1: none
    shifts: Optional[Array]  #: int32 ``[N, best]``; -1: none
    data: Optional[Array]  #: complex ``[K, (D,) H, W/2+1]``, sums of images; wanted as "volumes", with weight
    weight: Optional[Array]  #: real, like data
    shares: Optional[Array]  #: real ``[N]``, of the posterior that sums are of
    candidates: Optional[Array]  #: int32 ``[N]``, that sums are of
    shift_sums: Optional[Array]  #: float64 ``[N, 3]``, posterior times row, column and squared length of the shift
    shell_sums: Optional[Array]  #: float64 ``[N, shells, 3]``, sums of \|X\|^2, Re(conj(X) C P) and \|C P\|^2


class Expectation(Held):
    """The expectation step of classification and refinement: images against projections of K references at many poses and
    shifts, posteriors, and sums with them. With image X, candidate z (class, pose and shift), projection P, filter C, noise of
    variance v and the multiplicity m of stored frequencies within the radius (Scheres 2012, J Mol Biol 415, 406)::

        log p(X | z) = - sum m (|X - C P|^2 / (2 v) + log(2 pi v)) / 2
        p(z | X)     = prior(z) p(X | z) / p(X)

    Args:
        images: complex ``[N, h, w/2+1]``, zero frequency and origin at index 0; copied.
        noise: real ``[N|1, shells or more]``, variance of the real part, and of the imaginary part, in every shell.
        shifts: real ``[S, 2]`` (row, column) in pixels, of every image and pose; by default none but (0, 0).
        filters: real ``[N|1, h, w/2+1]``, multiply projections: CTFs, for instance.
        origins: real ``[N, 2]``, what the shifts of each image are added to.
        shift_priors: real ``[S]``, probabilities or numbers in proportion to them.
        width: w, where it is odd.
        best: how many candidates are ranked for every image; 0: none.
        memory: bytes for scores; where they do not fit, they are computed again for the sums.
        reproducible: volumes have the same bits in every run, on GPUs more slowly.
        radius: largest frequency, in periods per box of the image; by default up to its Nyquist limit.
        oversampling: padded over unpadded box; has to be given where boxes differ.
        ewald_radius: radius of the Ewald sphere, in the unit of radius; a flat slice by default.
        kernel_weights: signed or absolute, what carries weights into the weight volume.
        stream: of the GPU, as a number; the current one of the array's library.
    """

    def __init__(self, images: Array, noise: Array, shifts: Optional[Array] = None, *, filters: Optional[Array] = None,
                 origins: Optional[Array] = None, shift_priors: Optional[Array] = None, width: Optional[int] = None,
                 best: int = 1, memory: int = 2**28, reproducible: bool = False, radius: Optional[float] = None,
                 oversampling: Optional[float] = None, ewald_radius: Optional[float] = None,
                 kernel_weights: str = "signed", stream: Optional[int] = None):
        count, height, full_width = self._shape(images, width)
        if shifts is None:
            shifts = zeros(images, (1, 2), "real")
        self._width, self._best = full_width, whole("best", best)
        stream = current_stream(images, stream)
        self._plan = _core.ExpectationStep.make(empty(images, (1,), "real"), count,
                                                (*shape_of("Expectation", "shifts", shifts), 0)[0], height, full_width, self._best,
                                                whole("memory", memory, most=2**63 - 1), bool(reproducible),
                                                _settings("linear", oversampling, radius, ewald_radius, kernel_weights),
                                                stream)
        self.set_images(images, noise, filters, origins, stream=stream)
        self.set_shifts(shifts, shift_priors, stream=stream)

    @property
    def memory_bytes(self) -> int:
        """Bytes that the plan holds."""
        return self._plan.memory_bytes

    @property
    def shell_sizes(self) -> numpy.ndarray:
        """How many frequencies of the full spectrum are compared in each shell. The mean of a residual over images (of the
        three shell sums, the first less twice the second plus the third), over twice this number, is the variance of noise."""
        return numpy.array(self._plan.shell_sizes)

    def set_images(self, images: Array, noise: Array, filters: Optional[Array] = None, origins: Optional[Array] = None, *,
                   stream: Optional[int] = None) -> None:
        """Takes other images of the same size, at most as many."""
        count = self._shape(images, self._width)[0]
        self._plan.set_images(images, noise, filters, origins, self._width, current_stream(images, stream))
        self._count, self._images = count, (images, noise, filters, origins)

    def set_shifts(self, shifts: Array, priors: Optional[Array] = None, *, stream: Optional[int] = None) -> None:
        """Takes other shifts, at most as many."""
        self._plan.set_shifts(shifts, priors, current_stream(shifts, stream))

    def run(self, reference: PreparedReference, matrices: Array, *, first: Sequence[int] = (), priors: Optional[Array] = None,
            class_priors: Optional[Array] = None, wanted: Optional[Sequence[str]] = None, data: Optional[Array] = None,
            weight: Optional[Array] = None, share: float = 0.999, stream: Optional[int] = None) -> Expected:
        """Takes the expectation of all images.

        Args:
            reference: of K volumes, or of K images for poses in the plane.
            matrices: real ``[P, 3, 3]``, or ``[P, 2, 2]`` of images; as those of `project`.
            first: N + 1 numbers: image i has poses first[i] to first[i+1] - 1. By default all images have all poses.
            priors: real ``[P]`` or ``[K, P]``, of poses.
            class_priors: real ``[K]``.
            wanted: of log_evidence, class_shares, best, volumes, shares, candidates, shift_sums and shell_sums; by default
                the first three, as far as there are any, and the volumes where data is given.
            data, weight: what volumes are added to; by default zeros.
            share: of the posterior that sums have at least; all with 1.
        """
        if not isinstance(reference, PreparedReference):
            raise TypeError("bracewell.Expectation.run: reference: expected a PreparedReference, found "
                            f"{type(reference).__name__}")
        if wanted is None:
            wanted = ("log_evidence", "class_shares") + ("best",) * (self._best > 0) + ("volumes",) * (data is not None)
        n, k = self._count, reference._batches
        shells = len(self._plan.shell_sizes)
        kinds = {"log_evidence": ((n,), "float64"), "class_shares": ((n, k), "real"), "shares": ((n,), "real"),
                 "candidates": ((n,), "int32"), "shift_sums": ((n, 3), "float64"), "shell_sums": ((n, shells, 3), "float64")}
        out = dict.fromkeys(Expected._fields)
        for name in words("Expectation.run", "wanted", wanted, *kinds, "best", "volumes"):
            if name == "best":
                for field, kind in (("posteriors", "real"), ("classes", "int32"), ("poses", "int32"), ("shifts", "int32")):
                    out[field] = empty(matrices, (n, self._best), kind)
            elif name == "volumes":
                expect_writable("Expectation.run", data)
                expect_writable("Expectation.run", weight)
                half = (k, *_half(reference._sizes))
                out["data"] = zeros(matrices, half, "complex") if data is None else data
                out["weight"] = zeros(matrices, half, "real") if weight is None else weight
            else:
                out[name] = empty(matrices, *kinds[name])
        self._plan.run(reference._plan, matrices, [int(i) for i in first], priors, class_priors, list(out.values()),
                       reference._sizes[-1], real("share", share), current_stream(matrices, stream))
        return Expected(**{name: result(value, matrices) for name, value in out.items()})

    def support(self, reference: PreparedReference, matrices: Array, *, first: Sequence[int] = (),
                priors: Optional[Array] = None, class_priors: Optional[Array] = None, share: float = 0.999,
                most: int = 2**31, stream: Optional[int] = None) -> tuple[numpy.ndarray, numpy.ndarray, Array]:
        """The poses that together have a share of the posterior of each image, summed over classes and shifts.

        Args:
            most: poses of an image, at most; the likeliest stay.

        The other arguments are those of `run`.

        Returns:
            poses: int32, indices into the matrices, image by image.
            first: int64, N + 1 numbers: image i has poses[first[i]:first[i+1]].
            means: real ``[N, 2]``, mean shift of each image, less its origin.
        """
        if not isinstance(reference, PreparedReference):
            raise TypeError("bracewell.Expectation.support: reference: expected a PreparedReference, found "
                            f"{type(reference).__name__}")
        means = empty(matrices, (self._count, 2), "real")
        poses, begins = self._plan.support(reference._plan, matrices, [int(i) for i in first], priors, class_priors, means,
                                           real("share", share), whole("most", most, most=2**31),
                                           current_stream(matrices, stream))
        return numpy.array(poses, numpy.int32), numpy.array(begins, numpy.int64), result(means, matrices)

    def run_passes(self, coarse: "Expectation", reference: PreparedReference, matrices: Array, turns: Array, *,
                   first: Sequence[int] = (), priors: Optional[Array] = None, class_priors: Optional[Array] = None,
                   share: float = 0.999, most: int = 2**31, stream: Optional[int] = None,
                   **wanted) -> tuple[Expected, Array, numpy.ndarray]:
        """Two passes in one call (Scheres 2012, adaptive expectation). `coarse` takes the expectation at all matrices and at its
        shifts. This one takes it where the posterior is: at the turns about each pose of `support`, and at its own shifts about
        the mean shift.

        Args:
            coarse: an Expectation of the same images, usually of a smaller radius.
            turns: real ``[Q, d, d]``; the finer poses about a matrix are its products with each.
            most: poses of an image that the first pass hands on, at most.
            wanted: and data and weight, as `run` takes them.

        The other arguments are those of `run`.

        Returns:
            what `run` gives of the second pass, the matrices that its poses are indices into, and `first` of these.
        """
        poses, begins, means = coarse.support(reference, matrices, first=first, priors=priors, class_priors=class_priors,
                                              share=share, most=most, stream=stream)
        count, size = len(poses) * turns.shape[0], matrices.shape[-1]
        finer = (matrices[poses][:, None] @ turns[None]).reshape(count, size, size)
        if priors is not None:
            priors = priors[..., numpy.repeat(poses, turns.shape[0])]
            if isinstance(priors, numpy.ndarray):
                priors = numpy.ascontiguousarray(priors)
        images, noise, filters, origins = self._images
        moved = means if origins is None else means + origins
        begins = begins * turns.shape[0]
        try:
            self.set_images(images, noise, filters, moved, stream=stream)
            found = self.run(reference, finer, first=begins, priors=priors, class_priors=class_priors, share=share, stream=stream,
                             **wanted)
        finally:
            self.set_images(images, noise, filters, origins, stream=stream)
        return found, finer, begins

    @staticmethod
    def _shape(images, width):
        shape = shape_of("Expectation", "images", images)
        if len(shape) != 3:
            raise ValueError(f"bracewell.Expectation: images: expected [N, h, w/2+1], found {len(shape)} axes")
        return (shape[0], *_sizes("Expectation", "images", images, 1, width))


def backproject(projections: Array, matrices: Array, shifts: Optional[Array] = None, filters: Optional[Array] = None, *,
                weights: Optional[Array] = None, shape: Optional[Sequence[int]] = None, width: Optional[int] = None,
                data: Optional[Array] = None, weight: Optional[Array] = None, interpolation: str = "catmull_rom",
                oversampling: Optional[float] = None, radius: Optional[float] = None,
                ewald_radius: Optional[float] = None, kernel_weights: str = "signed",
                stream: Optional[int] = None) -> tuple[Array, Optional[Array]]:
    """The adjoint of `project` in the inner product over the full spectrum: inserts projections into a volume.

    Every stored sample adds half its multiplicity times P(k) exp(+2 pi i k.s / n) at M (oversampling k), and its conjugate
    at the opposite point. Weights go the same way without phase: `normalise` divides the two sums.

    Args:
        projections: complex ``[B, P, (d,) h, w/2+1]``.
        weights: real ``[B, P, (d,) h, w/2+1]``, CTF^2 for instance.
        shape: sizes (D, H, W) of the volumes, or (H, W) where matrices are 2 x 2; by default those of the projections, cubic
            where matrices are 3 x 3.
        width: w of the projections, where it is odd.
        data, weight: volumes to add to, complex and real ``[B, (D,) H, W/2+1]``; new ones by default.
        kernel_weights: signed (unbiased with normalise's floor) or absolute (the torch-projectors paper's).

    The other arguments are those of `project`.

    Returns:
        (data, weight); weight is None without weights.
    """
    of, to, extents = _backproject_extents(*_shapes("backproject", projections=projections, matrices=matrices, shifts=shifts,
                                                    filters=filters, weights=weights), None if shape is None else tuple(shape), width)
    if data is None:
        data = zeros(projections, extents, "complex")
    if weight is None and weights is not None:
        weight = zeros(projections, data.shape, "real")
    _core.backproject(projections, of, matrices, shifts, filters, weights, data, weight, to,
                      _settings(interpolation, oversampling, radius, ewald_radius, kernel_weights),
                      current_stream(projections, stream))
    return result(data, projections), result(weight, projections)


class BackprojectGradients(NamedTuple):
    """Derivatives of a loss; those that were not wanted are None."""

    projections: Optional[Array]
    weights: Optional[Array]
    matrices: Optional[Array]
    shifts: Optional[Array]


def backproject_gradients(projections: Array, matrices: Array, data: Array, weight: Optional[Array] = None,
                          shifts: Optional[Array] = None, filters: Optional[Array] = None, *,
                          weights: Optional[Array] = None, wanted: Sequence[str] = ("projections",),
                          shape: Optional[Sequence[int]] = None, width: Optional[int] = None,
                          interpolation: str = "catmull_rom", oversampling: Optional[float] = None,
                          radius: Optional[float] = None, ewald_radius: Optional[float] = None,
                          kernel_weights: str = "signed", stream: Optional[int] = None) -> BackprojectGradients:
    """Exact derivatives of a real loss with respect to what `backproject` reads, of those in `wanted` alone.

    Args:
        data: the cotangent of data, complex ``[B, (D,) H, W/2+1]``.
        weight: the cotangent of weight, real; given together with weights.
        wanted: some of projections, weights, matrices, shifts. The gradient of broadcast weights is given per projection.
        shape: sizes of the volumes, where their width is odd.

    The other arguments are those of `backproject`.
    """
    sizes = _sizes("backproject_gradients", "projections", projections, 2, width)
    volume = _sizes("backproject_gradients", "data", data, 1, _last("backproject_gradients", shape))
    _expect_poses("backproject_gradients", ("projections", projections.shape[:2]), sizes, len(volume), matrices=matrices,
                  shifts=shifts, filters=filters, weights=weights)
    of = {"projections": (projections, "complex"), "weights": (None if weights is None else projections, "real"),
          "matrices": (matrices, "real"), "shifts": (shifts, "real")}
    gradients = {name: None for name in of}
    for name in words("backproject_gradients", "wanted", wanted, *of):
        if of[name][0] is not None:
            gradients[name] = empty(projections, of[name][0].shape, of[name][1])
    _core.backproject_gradients(projections, sizes[-1], matrices, shifts, filters, weights, data, weight, volume[-1],
                                gradients["projections"], gradients["weights"], gradients["matrices"],
                                gradients["shifts"],
                                _settings(interpolation, oversampling, radius, ewald_radius, kernel_weights),
                                current_stream(projections, stream))
    return BackprojectGradients(**{name: result(value, projections) for name, value in gradients.items()})
