# SPDX-License-Identifier: MIT
"""Ptychography: the loss of a model against measured patterns, its exact gradients, and Adam."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

from . import _core
from ._arrays import Array, current_stream, empty, is_complex, on_host, result, shape_of


class PtychographyResult(NamedTuple):
    """What `PtychographyLoss.evaluate` gives; gradients are dL/dRe + i dL/dIm, None where they were not wanted."""

    loss: Array  #: float64 ``[1]``
    object: Optional[Array]  #: complex, like the object
    probe: Optional[Array]  #: complex, like the probe
    positions: Optional[Array]  #: real ``[N, 2]``, per pixel


class PtychographyLoss:
    """The loss of a ptychographic model against measured patterns, and its exact gradients::

        psi_jl(r) = O(y_j + r) p_l(r),   I_j = sum_l |FFT psi_jl|^2,   L = 1 / (N n^2) sum_j sum_k w_k l(J_jk, t_jk)

    with J_j = I_j counts / mean(I_j), and the measured pattern t_j scaled likewise, or J = I (scale="none").

    Args:
        patterns: measured intensities, real ``[N, n, n]``, zero frequency at [0, 0]; their precision and device are those of all
            arrays.
        positions: ``[N, 2]`` (row, column) of the first pixel of every window, in pixels; fractions shift the probe.
        object_shape: (rows, columns) of the object.
        probe_size: m, pixels of the probe's side, at most n.
        modes: mutually incoherent probe modes.
        loss: least_squares (J - t)^2, amplitude (sqrt J - sqrt t)^2, or poisson (half the deviance).
        scale: pattern (only shapes are compared) or none (object and probe carry the counts).
        counts: mean of a scaled pattern.
        background: of poisson, in units of J.
        weights: of pixels, real ``[n, n]`` or ``[N, n, n]``: a mask of 0 and 1, or any that are not negative.
        fresnel_number: near field, by the Fresnel transfer function; far field by default.
        refine_positions: `evaluate` takes positions and gives their gradient.

    Raises:
        ValueError: on shapes and options that do not fit, windows that leave the object, and intensities that are negative or
            not finite.
    """

    def __init__(self, patterns: Array, positions: Any, object_shape: Sequence[int], probe_size: int, *, modes: int = 1,
                 loss: str = "amplitude", scale: str = "pattern", counts: float = 1, background: float = 1e-3,
                 weights: Optional[Array] = None, fresnel_number: Optional[float] = None, refine_positions: bool = False,
                 stream: Optional[int] = None):
        shape = shape_of("PtychographyLoss", "patterns", patterns)
        if len(shape) != 3:
            raise ValueError(f"bracewell.PtychographyLoss: patterns: expected [N, n, n], found {len(shape)} axes")
        if scale not in ("pattern", "none"):
            raise ValueError(f"bracewell.PtychographyLoss: scale: expected pattern or none, found {scale}")
        kind = "none"
        if weights is not None:
            kind = "mask" if bool(((weights == 0) | (weights == 1)).all()) else "per_pixel"
        stream = current_stream(patterns, stream)
        self._plan = _core.PtychographyPlan.make(
            empty(patterns, (1,), "real"), on_host(positions, "float64"), int(object_shape[0]), int(object_shape[1]),
            int(probe_size), shape[-1], int(modes), loss, kind, scale == "pattern", float(counts), float(background),
            fresnel_number, bool(refine_positions), stream)
        self._plan.set_patterns(0, patterns, weights, stream)
        self.count, self.refines_positions = shape[0], bool(refine_positions)

    @property
    def memory_bytes(self) -> int:
        """Bytes that the plan holds."""
        return self._plan.memory_bytes

    def evaluate(self, object: Array, probe: Array, positions: Optional[Array] = None, *,
                 wanted: Sequence[str] = ("object", "probe"), subset: Optional[Array] = None,
                 stream: Optional[int] = None) -> PtychographyResult:
        """Loss and gradients.

        Args:
            object: complex ``[rows, columns]``.
            probe: complex ``[m, m]`` or ``[modes, m, m]``.
            positions: float64 ``[N, 2]``, where they are refined.
            wanted: gradients to compute, some of object, probe, positions.
            subset: int32 ``[K]``, indices of the patterns to use, each at most once; all by default.
        """
        for name in wanted:
            if name not in ("object", "probe", "positions"):
                raise ValueError(f"bracewell.PtychographyLoss.evaluate: wanted: expected object, probe and positions, found {name}")
        loss = empty(object, (1,), "float64")
        objects = empty(object, object.shape, "complex") if "object" in wanted else None
        probes = empty(object, probe.shape, "complex") if "probe" in wanted else None
        moves = empty(object, (self.count, 2), "real") if "positions" in wanted else None
        self._plan.evaluate(object, probe, positions, loss, None, objects, probes, moves, subset,
                            current_stream(object, stream))
        return PtychographyResult(*(result(value, object) for value in (loss, objects, probes, moves)))


class Adam:
    """Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1), in the update order of torch.optim.Adam.

    Args:
        parameters: up to eight arrays of one precision, real or complex (pairs of reals), which `step` changes in place.
        learning_rates: one for all, or one for each.
    """

    def __init__(self, parameters: Sequence[Array], learning_rates: Any, *, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8, stream: Optional[int] = None):
        self.parameters = list(parameters)
        if not self.parameters:
            raise ValueError("bracewell.Adam: parameters: expected arrays, found none")
        rates = learning_rates if isinstance(learning_rates, (list, tuple)) else [learning_rates] * len(self.parameters)
        if len(rates) != len(self.parameters):
            raise ValueError(f"bracewell.Adam: learning_rates: expected {len(self.parameters)}, found {len(rates)}")
        self.learning_rates = [float(rate) for rate in rates]
        self._complex = [is_complex(array) for array in self.parameters]
        sizes = []
        for array, complex_ in zip(self.parameters, self._complex):
            size = 2 if complex_ else 1
            for extent in array.shape:
                size *= extent
            sizes.append(size)
        first = self.parameters[0]
        self._plan = _core.AdamPlan.make(empty(first, (1,), "real"), sizes, beta1, beta2, epsilon,
                                         current_stream(first, stream))

    def step(self, gradients: Sequence[Array], *, stream: Optional[int] = None) -> None:
        """One step against the gradients, one for each parameter, d/dRe + i d/dIm of complex ones."""
        if len(gradients) != len(self.parameters):
            raise ValueError(f"bracewell.Adam.step: gradients: expected {len(self.parameters)}, found {len(gradients)}")
        self._plan.step(self.parameters, list(gradients), self._complex, self.learning_rates,
                        current_stream(self.parameters[0], stream))
