# SPDX-License-Identifier: MIT
"""Iterative reconstruction on exact pairs."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

from . import _core
from ._arrays import (Array, Planned, as_real, as_weights, current_stream, expect_shape, place, real, result, shape_of,
                      whole, word, zeros)
from .tomography import FourierNormal, Laminography, Tomography


class LeastSquaresSolver(Planned):
    """Minimises sum w (b - A x)^2 over images x, with A the projections of a pair and b what was measured.

    Memory is allocated at the first call for a precision, device and shape; sums of inner products stay on the device.

    Args:
        pair: without weights of angles, which belong into w. Projections in the unit of b: line_integrals for a measurement.
            `FourierNormal` needs no projections in an iteration of conjugate_gradients and total_variation without weights and
            discrepancy.
        method: conjugate_gradients (on the normal equations: Hestenes and Stiefel, 1952; the number of iterations regularises),
            sirt (Gregor and Benson, IEEE Trans. Med. Imaging 27, 2008), or total_variation (FISTA: Beck and Teboulle, SIAM J.
            Imaging Sci. 2, 2009).
    """

    def __init__(self, pair: Union[Tomography, Laminography], *, method: str = "conjugate_gradients"):
        if not isinstance(pair, (Tomography, Laminography)):
            raise TypeError(f"bracewell.LeastSquaresSolver: pair: expected Tomography or Laminography, found {type(pair).__name__}")
        if pair.weights:
            raise ValueError("bracewell.LeastSquaresSolver: pair: expected one without weights of angles (solve() takes weights of "
                             "all values), found some")
        self.pair, self.method = pair, word("LeastSquaresSolver", "method", method)
        self._plans: dict = {}
        self._last: Optional[tuple[Any, int]] = None

    _shown = ("pair", "method")

    def solve(self, sinograms: Array, start: Optional[Array] = None, *, iterations: int = 20, weights: Optional[Array] = None,
              mask: Optional[Array] = None, discrepancy: float = 0, relaxation: float = 1, nonnegative: bool = False,
              total_variation: float = 0, inner_iterations: int = 4, denoise: Optional[Callable[[Array], Array]] = None,
              denoise_every: int = 5, stream: Optional[int] = None) -> Array:
        """Images from sinograms, in the shapes of the pair's `backproject`.

        Args:
            sinograms: b.
            start: images from which iterations begin; zeros by default.
            iterations: at most.
            weights: w, not negative, of the shape of the sinograms; 0 leaves a value out, also one that is not finite: the mask of
                `normalise_projections` is one of them.
            mask: 1 where images are solved for, 0 where they stay as they are: of their shape or that of one of them.
            discrepancy: a slice ends with the first iterate whose sum of w (b - A x)^2 is at most the square of it; waits. 0: none.
            relaxation: of sirt, 0 to 2.
            nonnegative: of sirt and total_variation.
            total_variation: its factor, beside half of the squares.
            inner_iterations: of its proximal map, which go on from those of the step before.
            denoise: a function of images, which it gives back changed (plug-and-play: Venkatakrishnan, Bouman and Wohlberg, GlobalSIP
                2013); of sirt and conjugate_gradients, whose directions begin anew behind it. It sees what this returns, a filter or
                a network for instance; where the mask is 0 images stay as they are. `residuals` are those before its last call.
            denoise_every: it is called after so many iterations, and at the end.
        """
        if denoise is not None and (self.method == "total_variation" or discrepancy):
            raise ValueError("bracewell.LeastSquaresSolver: denoise: expected none with total_variation or a discrepancy, found one")
        iterations, denoise_every = whole("iterations", iterations), whole("denoise_every", denoise_every, least=1)
        independent = isinstance(self.pair, Tomography)
        given, sinograms = sinograms, as_real(sinograms)
        sizes = (len(self.pair.angles), self.pair.width)
        flat = independent and len(expect_shape("LeastSquaresSolver.solve", "sinograms", sinograms, *sizes)) == 2

        def batch(name, array, *shapes):
            if array is None:
                return None
            found = shape_of("LeastSquaresSolver.solve", name, array)
            if found not in shapes:
                raise ValueError(f"bracewell.LeastSquaresSolver.solve: {name}: expected "
                                 f"{' or '.join(str(list(shape)) for shape in shapes)}, found {list(found)}")
            array = as_weights(array, sinograms) if name in ("weights", "mask") else as_real(array, sinograms)
            return array.reshape(-1, *found[-2:])

        leading = () if flat else (sinograms.shape[0] if independent else self.pair.rows,)
        data = batch("sinograms", sinograms, (*leading, *sizes))
        depth = data.shape[0] if independent else self.pair.depth
        plane = (self.pair.image, self.pair.image)
        full = plane if flat else (depth, *plane)
        images = zeros(sinograms, (depth, *plane), "real")
        if start is not None:
            images[...] = batch("start", start, full)
        weights = batch("weights", weights, (*leading, *sizes))
        if mask is not None:
            mask = batch("mask", mask, full, plane)
            mask = mask if mask.shape[0] == depth and depth > 1 else mask[0]
        stream = current_stream(sinograms, stream)
        projector = self.pair._plan(data, stream)
        normal = isinstance(self.pair, FourierNormal) and self.method != "sirt" and weights is None and not discrepancy
        key = (*place(sinograms), tuple(data.shape), normal)
        if key not in self._plans:
            self._plans[key] = _core.LeastSquaresPlan.make(zeros(sinograms, (1,), "real"), self.method, list(data.shape),
                                                           list(images.shape), independent, normal, stream)
        plan = self._plans[key]
        self._last = plan, stream
        made = 0
        while True:
            count = iterations if denoise is None else min(denoise_every, iterations - made)
            plan.solve(projector, data, images, weights, mask, count, real("discrepancy", discrepancy),
                       real("relaxation", relaxation), bool(nonnegative), real("total_variation", total_variation),
                       whole("inner_iterations", inner_iterations), stream)
            made += count
            if denoise is not None and count > 0:
                self._denoise(denoise, images, images[0] if flat else images, mask, given)
            if made >= iterations:
                return result(images[0] if flat else images, given)

    @staticmethod
    def _denoise(denoise, images, seen, mask, like):
        before = None if mask is None else images + 0
        found = denoise(result(seen, like))
        shape = tuple(getattr(found, "shape", ()))
        if shape != tuple(seen.shape):
            raise ValueError(f"bracewell.LeastSquaresSolver: denoise: expected images of shape {list(seen.shape)} from it, found "
                             f"{list(shape) if shape else type(found).__name__}")
        seen[...] = found
        if mask is not None:
            images[...] = before * (mask <= 0) + images * (mask > 0)

    def residuals(self) -> list[float]:
        """Of the last call: sum w (b - A x)^2 of every slice (Laminography: of all) at its result. Waits."""
        if self._last is None:
            raise ValueError("bracewell.LeastSquaresSolver: residuals: expected a call of solve() before, found none")
        plan, stream = self._last
        return plan.residuals(stream)
