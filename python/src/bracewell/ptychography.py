# SPDX-License-Identifier: MIT
"""Ptychography: the loss of a model against measured patterns, its exact gradients, Adam, and reconstruction by steps."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Optional, Sequence

import numpy

from . import _core
from ._arrays import (Array, Held, Planned, as_like, as_real, brief, current_stream, each, empty, is_complex, is_double, number,
                      on_host, place, real, reals, result, shape_of, whole, word)


def _total(patterns: Array, weights: Optional[Array]) -> float:
    """The sum of all counts times their weights, without a copy of the patterns."""
    count = patterns.shape[0]
    if weights is None:
        return float(patterns.sum())
    if len(weights.shape) == 2:
        return float(on_host(patterns.reshape(count, -1) @ weights.reshape(-1), "float64").sum())
    return sum(float((patterns[j:j + 64] * weights[j:j + 64]).sum()) for j in range(0, count, 64))


class PtychographyResult(NamedTuple):
    """What `PtychographyLoss.evaluate` gives; gradients are dL/dRe + i dL/dIm, None where they were not wanted."""

    loss: Array  #: float64 ``[1]``
    object: Optional[Array]  #: complex, like the object
    probe: Optional[Array]  #: complex, like the probe
    positions: Optional[Array]  #: real ``[N, 2]``, per pixel
    factors: Optional[Array] = None  #: real ``[N]``
    background: Optional[Array] = None  #: real ``[n, n]``
    coefficients: Optional[Array] = None  #: complex ``[N, relaxation]``
    relaxation: Optional[Array] = None  #: complex ``[relaxation, m, m]``
    slice_shifts: Optional[Array] = None  #: real ``[slices - 1, 2]``, per pixel


def _check_subset(function, subset, count):
    """Indices reach the kernels unchecked: one out of range would read foreign memory, and a repeated one write twice."""
    if subset is None:
        return
    values = on_host(subset, "int64", "subset").ravel()
    strange = values[(values < 0) | (values >= count)]
    if strange.size:
        raise ValueError(f"bracewell.{function}: subset: expected indices from 0 to {count - 1}, found {strange[0]}")
    ordered = numpy.sort(values)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if repeated.size:
        raise ValueError(f"bracewell.{function}: subset: expected each index at most once, found {repeated[0]} again")


class PtychographyLoss(Held):
    """The loss of a ptychographic model against measured patterns, and its exact gradients::

        psi_jl(r) = O(y_j + r) p_l(r),   I_j = sum_l |FFT psi_jl|^2,   L = 1 / (N n^2) sum_j sum_k w_k l(J_jk, t_jk)

    with J_j = I_j counts / mean(I_j), and the measured pattern t_j scaled likewise, or J = I (scale="none").

    Args:
        patterns: measured intensities, real ``[N, n, n]``, zero frequency at [0, 0]; their precision and device are those of all
            arrays. Integers and bools are taken as float32.
        positions: ``[N, 2]`` (row, column) of the first pixel of every window, in pixels; fractions shift the probe.
        object_shape: (rows, columns) of the object.
        probe_size: m, pixels of the probe's side, at most n.
        modes: mutually incoherent probe modes.
        loss: least_squares (J - t)^2, amplitude (sqrt J - sqrt t)^2, poisson (half the deviance), or auto: poisson with scale="none"
            where patterns are whole numbers with less than 3 counts in a bright pixel (sum m^2 / sum m of the mean pattern m),
            else amplitude. The attribute `loss` tells which.
        scale: pattern (only shapes are compared) or none (object and probe carry the counts).
        counts: mean of a scaled pattern. 0: measured patterns keep their counts, and a model gets those of its pattern; poisson
            is then the loss of the best factor of each pattern.
        background: of poisson, in units of J.
        weights: of pixels, real ``[n, n]`` or ``[N, n, n]``: a mask of 0 and 1 or of bools, True for good pixels, or any that
            are not negative.
        fresnel_number: near field, by the Fresnel transfer function; far field by default.
        refine_positions: `evaluate` takes positions and gives their gradient.
        slice_fresnel_numbers: of an object of several slices, one less than there are: (probe's window)^2 / (wavelength distance)
            from each slice to the next. The object is ``[slices, rows, columns]`` then.
        slice_shifts: of a tilted specimen, pixels (row, column) by which the beam moves on the way from each slice to the next:
            distance tan(angle) / pixel.
        refine_slice_shifts: `evaluate` takes slice_shifts and gives their gradient. Patterns of a free object do not tell them
            from a shift of its slices.
        reduced_grid: compare on the smallest grid that is exact: with least_squares, scale="pattern", in the far field, without
            weights and background.
        relaxation: C modes v_c by which the probe of a pattern differs from that of all, p_j = p + sum_c a_jc v_c in the first mode.
        pattern_factors: I_j is multiplied by a factor of pattern j.
        detector_background: an intensity per detector pixel is added to all I_j.

    Raises:
        ValueError: on shapes and options that do not fit, windows that leave the object, and intensities that are negative or
            not finite.
    """

    def __init__(self, patterns: Array, positions: Any, object_shape: Sequence[int], probe_size: int, *, modes: int = 1,
                 loss: str = "auto", scale: str = "pattern", counts: float = 1, background: float = 1e-3,
                 weights: Optional[Array] = None, fresnel_number: Optional[float] = None, refine_positions: bool = False,
                 slice_fresnel_numbers: Sequence[float] = (), slice_shifts: Sequence[Sequence[float]] = (),
                 refine_slice_shifts: bool = False, relaxation: int = 0, pattern_factors: bool = False,
                 detector_background: bool = False, reduced_grid: bool = False, stream: Optional[int] = None):
        shape = shape_of("PtychographyLoss", "patterns", patterns)
        if len(shape) != 3:
            raise ValueError(f"bracewell.PtychographyLoss: patterns: expected [N, n, n], found {len(shape)} axes")
        word("PtychographyLoss", "scale", scale, "pattern", "none")
        patterns = as_real(patterns)
        if weights is not None:
            shape_of("PtychographyLoss", "weights", weights)
            weights = as_real(weights, patterns)
        try:
            rows, columns = object_shape
        except (TypeError, ValueError):
            raise ValueError(f"bracewell.PtychographyLoss: object_shape: expected (rows, columns), found {brief(object_shape)}") from None
        object_shape = whole("object_shape", rows), whole("object_shape", columns)
        kind = "none"
        if weights is not None:
            kind = "mask" if bool(((weights == 0) | (weights == 1)).all()) else "per_pixel"
        self.loss = word("PtychographyLoss", "loss", loss)
        if loss == "auto":
            few = scale == "none" and shape[0] > 0 and _core.few_counts(patterns, weights, current_stream(patterns, stream))
            self.loss = "poisson" if few else "amplitude"
        stream = current_stream(patterns, stream)
        self._plan = _core.PtychographyPlan.make(
            empty(patterns, (1,), "real"), on_host(positions, "float64", "positions"), *object_shape,
            whole("probe_size", probe_size), shape[-1], whole("modes", modes), self.loss, kind,
            scale == "pattern", real("counts", counts), real("background", background),
            number("fresnel_number", fresnel_number), bool(refine_positions), [float(one) for one in slice_fresnel_numbers],
            whole("relaxation", relaxation), bool(pattern_factors), bool(detector_background),
            [[float(one) for one in pair] for pair in slice_shifts], bool(refine_slice_shifts), bool(reduced_grid), stream)
        self._plan.set_patterns(0, patterns, weights, stream)
        # Of an exit wave: the mean of its pattern in the far field, whose transforms are not normalised, or its sum.
        self.power = _total(patterns, weights) / shape[0] / (shape[-1]**2 if fresnel_number is None else 1)
        self.count, self.refines_positions = shape[0], bool(refine_positions)
        self.slices, self.relaxation = len(slice_fresnel_numbers) + 1, whole("relaxation", relaxation)
        self.pattern_factors, self.detector_background = bool(pattern_factors), bool(detector_background)
        self.detector, self.pixel_power = shape[-1], self.power / (1 if fresnel_number is None else shape[-1]**2)
        self.object_shape, self.probe_shape = tuple(map(int, object_shape)), (int(modes), int(probe_size), int(probe_size))

    _shown = ("count", "object_shape", "probe_shape", "refines_positions", "loss")

    @property
    def memory_bytes(self) -> int:
        """Bytes that the plan holds."""
        return self._plan.memory_bytes

    def evaluate(self, object: Array, probe: Array, positions: Optional[Array] = None, *, factors: Optional[Array] = None,
                 background: Optional[Array] = None, coefficients: Optional[Array] = None, relaxation: Optional[Array] = None,
                 slice_shifts: Optional[Array] = None,
                 wanted: Sequence[str] = ("object", "probe"), subset: Optional[Array] = None,
                 stream: Optional[int] = None) -> PtychographyResult:
        """Loss and gradients.

        Args:
            object: complex ``[rows, columns]``, of several slices ``[slices, rows, columns]``.
            probe: complex ``[m, m]`` or ``[modes, m, m]``.
            positions: float64 ``[N, 2]``, where they are refined.
            factors: real ``[N]``, with pattern_factors.
            background: real ``[n, n]``, with detector_background.
            coefficients, relaxation: complex ``[N, C]`` and ``[C, m, m]``, with relaxation.
            slice_shifts: float64 ``[slices - 1, 2]``, with refine_slice_shifts; those of the loss by default.
            wanted: gradients to compute, by the names of the arguments.
            subset: int32 ``[K]``, indices of the patterns to use, each at most once; all by default.
        """
        given = {"object": object, "probe": probe, "positions": positions, "factors": factors, "background": background,
                 "coefficients": coefficients, "relaxation": relaxation, "slice_shifts": slice_shifts}
        for name in wanted:
            if name not in given:
                raise ValueError(f"bracewell.PtychographyLoss.evaluate: wanted: expected some of {', '.join(given)}, found {name}")
        _check_subset("PtychographyLoss.evaluate", subset, self.count)
        shape_of("PtychographyLoss.evaluate", "object", object)
        shape_of("PtychographyLoss.evaluate", "probe", probe)
        loss, gradients = empty(object, (1,), "float64"), []
        for name, value in given.items():
            if name not in wanted:
                gradients.append(None)
            elif name in ("positions", "slice_shifts"):
                gradients.append(empty(object, (self.count if name == "positions" else self.slices - 1, 2), "real"))
            elif value is None:
                raise ValueError(f"bracewell.PtychographyLoss.evaluate: wanted: expected {name} where its gradient is, found none")
            else:
                gradients.append(empty(object, value.shape, "complex" if is_complex(value) else "real"))
        self._plan.evaluate([*given.values(), subset], [loss, None, *gradients], current_stream(object, stream))
        return PtychographyResult(*(result(value, object) for value in (loss, *gradients)))


class PtychographySchedule(NamedTuple):
    """Passes, batches and rates that reach the answer of most scans from a rough start, with scale="none": whole steps of rPIE by
    the amplitude loss, then Adam with rates that fall to zero; by poisson Adam alone, at half the rates.
    `PtychographySolver.run` follows it."""

    passes: int  #: over all patterns
    batches: int  #: steps of a pass
    projection_passes: int  #: the first of the passes, by rPIE
    object_rate: float  #: of Adam
    probe_rate: float  #: of Adam, as a part of the root mean square of the probe's pixels
    rate_factors: tuple[float, ...]  #: of every pass

    @staticmethod
    def of(patterns: int, passes: int = 0, batches: int = 0) -> PtychographySchedule:
        """For a scan of so many patterns; 0: the schedule's own numbers."""
        for name, value, least in (("patterns", patterns, 1), ("passes", passes, 0), ("batches", batches, 0)):
            if value < least:
                raise ValueError(f"bracewell.PtychographySchedule.of: {name}: expected at least {least}, found {value}")
        numbers = _core.ptychography_schedule(whole("patterns", patterns), whole("passes", passes), whole("batches", batches))
        return PtychographySchedule(int(numbers[0]), min(int(numbers[1]), int(patterns)), int(numbers[2]), numbers[3], numbers[4],
                                    tuple(numbers[5:]))


class PtychographySolver(Held):
    """Reconstructs object and probe from the patterns of a loss, in steps that keep all they need on the device::

        solver = bracewell.PtychographySolver(loss, probe, probe_rate=0)
        for _ in range(100):
            solver.step()
        solver.amplitude, solver.phase

    By default the rates are small ones of Adam. The schedule that `bracewell-ptychography` follows reaches the answer of most scans::

        schedule = bracewell.PtychographySchedule.of(loss.count)
        solver = bracewell.PtychographySolver(loss, probe, schedule=schedule)
        solver.run()

    Args:
        loss: which the solver takes over: of no use to others afterwards, even where options are refused.
        probe: complex ``[m, m]`` or ``[modes, m, m]``, where steps begin; of the loss's precision and device.
        amplitude, phase: the object's, real ``[rows, columns]``, of several slices ``[slices, rows, columns]``; 1 and 0 by default.
        steps: adam (along the exact gradients of amplitude, phase and probe), projections (ePIE: Maiden and Rodenburg,
            Ultramicroscopy 109, 2009; rPIE: Maiden, Johnson and Li, Optica 4, 2017) or least_squares (the same directions with the
            lengths of LSQ-ML: Odstrcil, Menzel and Guizar-Sicairos, Opt. Express 26, 2018). Those other than adam want the
            amplitude loss with scale="none".
        object_rate: of amplitude and phase (adam), or of the object's step, about 1; 0: they stay.
        probe_rate: likewise of the probe.
        position_rate: pixels by which a step moves positions, about; 0: they stay. Else the loss has refine_positions.
        position_limit: pixels that a position may be moved by on each axis.
        position_moves: single (each by itself; the affine part of all stays zero), affine (all by a scale, rotation and shear of the
            scan about its middle, which a known probe tells), or both.
        amplitude_limits: (least, greatest) amplitude of the object after every step.
        object_support: real ``[rows, columns]`` or bools, positive where the object is to be found; it is `beyond_support` elsewhere,
            with a phase of 0: 1 for nothing in the beam.
        probe_support: radius in pixels of a disc in the middle of the window, beyond which the probe is zero.
        total_variation: after every step amplitude and phase are smoothed by their total variation, with this weight times the rate:
            0.05 to 0.5 take noise away and keep edges.
        regularisation: in (0, 1], alpha of rPIE; 1 is ePIE.
        coefficient_rate, relaxation_rate, factor_rate, background_rate: of what else the loss has, by adam; background_rate of the
            background's roots. `relaxation` begins as noise of the probe's size, `coefficients` as 0, `factors` as 1, and
            `background` as a thousandth of the mean count.
        schedule: whose rates take the place of object_rate, probe_rate, regularisation, relaxation_rate and background_rate; a rate
            of 0 stays. The probe gets the
            power of the mean pattern (far field: its mean, near field: its sum).

    Raises:
        ValueError: on rates out of range, and steps that do not go with the loss.
    """

    def __init__(self, loss: PtychographyLoss, probe: Array, amplitude: Optional[Array] = None, phase: Optional[Array] = None, *,
                 steps: str = "adam", object_rate: float = 0.01, probe_rate: float = 0.001, position_rate: float = 0,
                 position_limit: float = 5, regularisation: float = 1, coefficient_rate: float = 0.01, relaxation_rate: float = 0.001,
                 factor_rate: float = 0.01, background_rate: float = 0.1, position_moves: str = "single",
                 amplitude_limits: Optional[Sequence[float]] = None, object_support: Optional[Array] = None, beyond_support: float = 1,
                 probe_support: Optional[float] = None, total_variation: float = 0,
                 schedule: Optional[PtychographySchedule] = None, stream: Optional[int] = None):
        shape_of("PtychographySolver", "probe", probe)
        stream = current_stream(probe, stream)
        projections_first = 0
        word("PtychographySolver", "steps", steps)
        if schedule is not None:
            if steps != "adam":
                raise ValueError(f"bracewell.PtychographySolver: steps: expected adam with a schedule, found {steps}")
            power = float((abs(probe)**2).sum())
            if power > 0 and loss.power > 0:  # where steps begin, object and probe explain the counts in the mean
                probe = probe * (loss.power / power)**0.5
            size = 1
            for extent in probe.shape:
                size *= extent
            object_rate = schedule.object_rate if object_rate > 0 else 0
            probe_rate = schedule.probe_rate * (loss.power / size)**0.5 if probe_rate > 0 else 0
            regularisation, projections_first = 0.1, schedule.projection_passes * schedule.batches
            if loss.loss == "poisson":  # of few counts, which long steps would follow into noise
                object_rate, probe_rate = object_rate / 2, probe_rate / 2
            if loss.slices > 1 or loss.loss == "poisson":
                projections_first = 0
            relaxation_rate = 0.1 * (loss.power / size)**0.5 if relaxation_rate > 0 else 0
            background_rate = 0.005 * loss.pixel_power**0.5 if background_rate > 0 else 0
        self._schedule, self.steps = schedule, steps
        self._like, self._count = empty(probe, (1,), "real"), loss.count
        self._object_shape, self._probe_shape = loss.object_shape, loss.probe_shape
        if loss.slices > 1:
            self._object_shape = (loss.slices, *loss.object_shape)
        self._rows = (loss.slices * loss.object_shape[0], loss.object_shape[1])
        self._modes, self._factors, self._detector = loss.relaxation, loss.pattern_factors, loss.detector
        self._has_background, pixel = loss.detector_background, loss.pixel_power
        self._refines = position_rate > 0
        rates = [real(name, rate) for name, rate in (
            ("object_rate", object_rate), ("probe_rate", probe_rate), ("position_rate", position_rate), ("position_limit", position_limit),
            ("regularisation", regularisation), ("coefficient_rate", coefficient_rate), ("relaxation_rate", relaxation_rate),
            ("factor_rate", factor_rate), ("background_rate", background_rate))]
        self._plan = _core.SolverPlan.make(self._like, loss._plan, steps, *rates[:5], projections_first, *rates[5:],
                                           word("PtychographySolver", "position_moves", position_moves),
                                           [float(one) for one in amplitude_limits or ()], number("probe_support", probe_support),
                                           real("total_variation", total_variation), stream)
        if object_support is not None:
            shape_of("PtychographySolver", "object_support", object_support)
            self._plan.set_object_support(as_real(object_support, probe), real("beyond_support", beyond_support), stream)
        if amplitude is None:
            amplitude = empty(probe, self._object_shape, "real")
            amplitude[...] = 1
        self._assign(0, amplitude, self._object_shape, self._rows, stream)
        if len(probe.shape) == 2:
            probe = probe.reshape(1, *probe.shape)
        self._assign(2, probe, stream=stream)
        if phase is not None:
            self._assign(1, phase, self._object_shape, self._rows, stream)
        if self._modes:
            noise = numpy.random.default_rng(1).normal(size=(2, self._modes, *self._probe_shape[1:]))
            like = "complex128" if is_double(probe) else "complex64"
            noise = as_like(0.5**0.5 * (noise[0] + 1j * noise[1]), probe, like)
            self._assign(5, probe[:1] * noise, stream=stream)
        if self._has_background:
            background = empty(probe, (self._detector, self._detector), "real")
            background[...] = 0.001 * pixel
            self._assign(7, background**0.5, stream=stream)

    _shown = ("steps", "_object_shape", "_probe_shape")

    def step(self, subset: Optional[Array] = None, *, stream: Optional[int] = None) -> None:
        """One step against all patterns, or those of a subset: int32 ``[K]``, indices, each at most once.

        Raises:
            ValueError: on hosts where the loss is not a finite number, before anything moves; on devices `losses` shows it.
        """
        _check_subset("PtychographySolver.step", subset, self._count)
        self._plan.step(subset, current_stream(self._like, stream))

    def run(self, *, seed: int = 0, progress: Optional[Callable[[int, float], Any]] = None,
            stream: Optional[int] = None) -> list[float]:
        """All passes of the schedule, in batches of patterns by chance.

        Args:
            seed: of the batches.
            progress: is called after every pass with the number of passes that were made and the mean loss of its steps.

        Returns:
            the mean loss of the steps of every pass.

        Raises:
            ValueError: where the loss is not a finite number.
        """
        if self._schedule is None:
            raise ValueError("bracewell.PtychographySolver.run: schedule: expected one where the solver was made, found none")
        stream, random, losses = current_stream(self._like, stream), numpy.random.default_rng(seed), []
        parts = [as_like(numpy.sort(part), self._like, "int32")
                 for part in numpy.array_split(random.permutation(self._count), self._schedule.batches)]
        for factor in self._schedule.rate_factors:
            self._plan.set_rate_factor(factor)
            if self._refines:
                self._plan.move_windows(stream)
            for batch in random.permutation(len(parts)):
                self._plan.step(parts[batch], stream)
            losses.append(float(numpy.mean(self._plan.losses(stream)[-len(parts):])))
            if not numpy.isfinite(losses[-1]):  # on a device; steps on hosts raise themselves
                raise ValueError("bracewell.PtychographySolver.run: loss: expected a finite number; values are beyond the "
                                 f"precision, or rates are too high, found {losses[-1]} in pass {len(losses)}")
            if progress is not None:
                progress(len(losses), losses[-1])
        return losses

    def set_rate_factor(self, factor: float) -> None:
        """From now on steps take the learning rates times a factor, 1 at first."""
        self._plan.set_rate_factor(real("factor", factor))

    def losses(self, *, stream: Optional[int] = None) -> list[float]:
        """Before each of the steps, of the latest 10,000. Waits."""
        return self._plan.losses(current_stream(self._like, stream))

    @property
    def amplitude(self) -> Array:
        """The object's, real ``[rows, columns]`` or ``[slices, rows, columns]``: a copy. Further steps set out from what is
        assigned."""
        return self._copy(0, self._rows, "real").reshape(self._object_shape)

    @amplitude.setter
    def amplitude(self, value: Array) -> None:
        self._assign(0, value, self._object_shape, self._rows)

    @property
    def phase(self) -> Array:
        """The same of the phase, radians."""
        return self._copy(1, self._rows, "real").reshape(self._object_shape)

    @phase.setter
    def phase(self, value: Array) -> None:
        self._assign(1, value, self._object_shape, self._rows)

    @property
    def probe(self) -> Array:
        """Complex ``[modes, m, m]``: a copy. Further steps set out from what is assigned."""
        return self._copy(2, self._probe_shape, "complex")

    @probe.setter
    def probe(self, value: Array) -> None:
        value = value.reshape(self._probe_shape) if len(value.shape) == 2 else value
        self._assign(2, value)

    @property
    def coefficients(self) -> Optional[Array]:
        """Of the modes of relaxation, complex ``[N, C]``: a copy; None where the loss has none. Further steps set out from what is
        assigned. Neither are their means zero nor the modes orthogonal."""
        return self._copy(4, (self._count, self._modes), "complex") if self._modes else None

    @coefficients.setter
    def coefficients(self, value: Array) -> None:
        self._assign(4, value)

    @property
    def relaxation(self) -> Optional[Array]:
        """The modes of relaxation, complex ``[C, m, m]``: a copy; None where the loss has none. Further steps set out from what is
        assigned."""
        return self._copy(5, (self._modes, *self._probe_shape[1:]), "complex") if self._modes else None

    @relaxation.setter
    def relaxation(self, value: Array) -> None:
        self._assign(5, value)

    @property
    def factors(self) -> Optional[Array]:
        """Of the patterns' intensities, real ``[N]``: a copy; None where the loss has none. Further steps set out from what is
        assigned."""
        return self._copy(6, (self._count,), "real") if self._factors else None

    @factors.setter
    def factors(self, value: Array) -> None:
        self._assign(6, value)

    @property
    def background(self) -> Optional[Array]:
        """Per detector pixel, real ``[n, n]``: a copy; None where the loss has none. Further steps set out from what is assigned,
        which is not negative; zeros stay."""
        return self._copy(7, (self._detector, self._detector), "real")**2 if self._has_background else None

    @background.setter
    def background(self, value: Array) -> None:
        if not bool((value >= 0).all()):
            raise ValueError("bracewell.PtychographySolver: background: expected values >= 0, found others")
        self._assign(7, value**0.5)

    @property
    def displacements(self) -> Optional[Array]:
        """A copy of the pixels that positions were moved by, real ``[N, 2]``, without what all have in common: an affine map; None
        where they stay."""
        return self._copy(3, (self._count, 2), "real") if self._refines else None

    @property
    def memory_bytes(self) -> int:
        """Bytes that the solver holds, its loss and the measured patterns included."""
        return self._plan.memory_bytes

    def _copy(self, place, shape, kind):
        values = empty(self._like, shape, kind)
        self._plan.get(place, values, current_stream(self._like, None))
        return result(values, self._like)

    def _assign(self, place, value, shape=None, to=None, stream=None):
        if shape is not None and tuple(value.shape) == tuple(shape):
            value = value.reshape(to)
        self._plan.set(place, value, current_stream(self._like, stream))


class AberratedProbe(Planned):
    """The probe of a lens with aberrations, of unit energy on detector x detector pixels, its middle cropped::

        chi = pi lambda defocus k^2 + pi/2 lambda^3 Cs k^4 + pi lambda M k^2 cos 2(theta - angle)
        A   = 1 / (1 + exp(-(k_max - k) / (k_max (|smoothness| + 0.01)))),   k_max = convergence_angle / lambda
        p   = the inverse DFT of A exp(i chi), around pixel (probe_size/2, probe_size/2)

    The plan is made at the first call for a precision and device.

    Args:
        probe_size: pixels of the probe's side, at most `detector`.
        detector: pixels of a pattern's side.
        wavelength, pixel_size: of the beam, and of object and probe, in one unit.
        convergence_angle: half angle of the aperture, radians.
        cs_to_length: the unit of Cs in that unit: 1e6 for mm in nm.

    Raises:
        ValueError: on sizes out of range and optics that are not positive (at the first call).
    """

    def __init__(self, probe_size: int, detector: int, *, wavelength: float, pixel_size: float, convergence_angle: float,
                 cs_to_length: float = 1e6):
        self.probe_size, self.detector = whole("probe_size", probe_size, least=1), whole("detector", detector, least=1)
        self.wavelength, self.pixel_size = real("wavelength", wavelength), real("pixel_size", pixel_size)
        self.convergence_angle, self.cs_to_length = real("convergence_angle", convergence_angle), real("cs_to_length", cs_to_length)
        self._plans: dict = {}

    _shown = ("probe_size", "detector", "wavelength", "pixel_size", "convergence_angle", "cs_to_length")

    def _plan(self, parameters, stream):
        key = place(parameters)
        if key not in self._plans:
            self._plans[key] = _core.AberratedProbePlan.make(
                empty(parameters, (1,), "real"), self.probe_size, self.detector, self.wavelength, self.pixel_size,
                self.convergence_angle, self.cs_to_length, stream)
        return self._plans[key]

    def evaluate(self, parameters: Array, *, stream: Optional[int] = None) -> Array:
        """The probe, complex ``[m, m]``, from real ``[5]``: defocus (a length), Cs, astigmatism M (a length), its angle from the row
        axis (radians), smoothness of the aperture's edge."""
        shape_of("AberratedProbe.evaluate", "parameters", parameters)
        parameters = as_real(parameters)
        stream = current_stream(parameters, stream)
        probe = empty(parameters, (self.probe_size, self.probe_size), "complex")
        self._plan(parameters, stream).evaluate(parameters, probe, stream)
        return result(probe, parameters)

    def gradients(self, parameters: Array, probe_gradient: Array, *, stream: Optional[int] = None) -> Array:
        """dL/dparameters, real ``[5]``, of a real L whose gradient dL/dRe p + i dL/dIm p is given: complex ``[m, m]``, as
        `PtychographyLoss.evaluate` has it. Zero for a smoothness of exactly zero."""
        shape_of("AberratedProbe.gradients", "parameters", parameters)
        if len(shape_of("AberratedProbe.gradients", "probe_gradient", probe_gradient)) == 3 and probe_gradient.shape[0] == 1:
            probe_gradient = probe_gradient[0]  # of one mode
        parameters = as_real(parameters)
        stream = current_stream(parameters, stream)
        gradient = empty(parameters, (5,), "real")
        self._plan(parameters, stream).gradients(parameters, probe_gradient, gradient, stream)
        return result(gradient, parameters)


class Adam(Held):
    """Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1), in the update order of torch.optim.Adam.

    Args:
        parameters: up to eight arrays of one precision, real or complex (pairs of reals), which `step` changes in place.
        learning_rates: one for all, or one for each.
    """

    def __init__(self, parameters: Sequence[Array], learning_rates: Any, *, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8, stream: Optional[int] = None):
        self.parameters = list(each("Adam", "parameters", parameters, "arrays"))
        if not self.parameters:
            raise ValueError("bracewell.Adam: parameters: expected arrays, found none")
        rates = learning_rates if isinstance(learning_rates, (list, tuple)) else [learning_rates] * len(self.parameters)
        if len(rates) != len(self.parameters):
            raise ValueError(f"bracewell.Adam: learning_rates: expected {len(self.parameters)}, found {len(rates)}")
        self.learning_rates = reals("learning_rates", rates)
        sizes = [math.prod(shape_of("Adam", "parameters", array)) for array in self.parameters]
        self._complex = [is_complex(array) for array in self.parameters]
        sizes = [size << complex_ for size, complex_ in zip(sizes, self._complex)]
        first = self.parameters[0]
        self._plan = _core.AdamPlan.make(empty(first, (1,), "real"), sizes, beta1, beta2, epsilon,
                                         current_stream(first, stream))

    _shown = ("parameters", "learning_rates")

    def step(self, gradients: Sequence[Array], *, stream: Optional[int] = None) -> None:
        """One step against the gradients, one for each parameter, d/dRe + i d/dIm of complex ones."""
        gradients = each("Adam.step", "gradients", gradients, "arrays")
        if len(gradients) != len(self.parameters):
            raise ValueError(f"bracewell.Adam.step: gradients: expected {len(self.parameters)}, found {len(gradients)}")
        self._plan.step(self.parameters, list(gradients), self._complex, self.learning_rates,
                        current_stream(self.parameters[0], stream))
