# SPDX-License-Identifier: MIT
"""A back end of MRI-NUFFT, which its get_operator knows after this module was imported::

    import bracewell.hubs.mrinufft
    operator = mrinufft.get_operator("bracewell")(trajectory, shape=(256, 256), n_coils=8, smaps=maps)

`MRIBracewell.gram` is ``adj_op(op(image))`` of one image as a convolution, by `bracewell.ToeplitzNormal`.
"""

from __future__ import annotations

from typing import Any

import numpy
from mrinufft._array_compat import _array_to_numpy
from mrinufft._utils import proper_trajectory
from mrinufft.operators.base import FourierOperatorCPU

from ..finufft import Plan
from ..gridding import ToeplitzNormal

__all__ = ["MRIBracewell"]


class _Transforms:
    """What MRI-NUFFT calls the raw operator: both directions at given samples, in radians."""

    def __init__(self, samples, shape, n_trans, eps):
        self.shape, self.n_trans = tuple(shape), n_trans
        dtype = "complex64" if samples.dtype == numpy.float32 else "complex128"
        self._plans = {kind: Plan(kind, self.shape, n_trans, eps, dtype=dtype) for kind in (1, 2)}
        self.set_samples(samples)

    def set_samples(self, samples):
        self.n_samples = len(samples)
        for plan in self._plans.values():
            plan.setpts(*numpy.asarray(samples).T)

    def _leading(self):
        return (self.n_trans,) if self.n_trans > 1 else ()

    def op(self, coeffs_data, grid_data):
        lead = self._leading()
        return self._plans[2].execute(grid_data.reshape(*lead, *self.shape), coeffs_data.reshape(*lead, self.n_samples))

    def adj_op(self, coeffs_data, grid_data):
        lead = self._leading()
        return self._plans[1].execute(coeffs_data.reshape(*lead, self.n_samples), grid_data.reshape(*lead, *self.shape))


class MRIBracewell(FourierOperatorCPU):
    """Arguments as those of MRI-NUFFT's other operators; eps is the relative error."""

    backend = "bracewell"
    available = True

    def __init__(self, samples: Any, shape: Any, density: Any = False, n_coils: int = 1, n_batchs: int = 1, n_trans: int = 1,
                 smaps: Any = None, squeeze_dims: bool = True, eps: float = 1e-6):
        samples = numpy.asarray(_array_to_numpy(proper_trajectory(samples, normalize="pi")), order="F")
        self.raw_op = _Transforms(samples, shape, n_trans, eps)
        self._eps = eps
        super().__init__(samples, shape, density, n_coils=n_coils, n_batchs=n_batchs, n_trans=n_trans, smaps=smaps,
                         raw_op=self.raw_op, squeeze_dims=squeeze_dims)

    def update_samples(self, new_samples: Any, unsafe: bool = False) -> None:
        """Takes other samples."""
        self._samples = new_samples if unsafe else numpy.asarray(proper_trajectory(new_samples, normalize="pi"), order="F")
        self.raw_op.set_samples(self._samples)
        self.compute_density(self._density_method)

    def gram(self, image: Any) -> Any:
        """``adj_op(op(image))`` without maps of coils, complex of the operator's shape; the convolution is made at the first call."""
        if getattr(self, "_normal_of", None) is not self._samples:
            points = numpy.ascontiguousarray(numpy.asarray(self._samples)[:, ::-1], "float64") / (2 * numpy.pi)
            weights = None if self.density is None else numpy.ravel(self.density)
            self._normal, self._normal_of = ToeplitzNormal(points, self.shape, weights, tolerance=max(self._eps, 1e-6)), self._samples
        return self._normal.execute(image) / self.norm_factor**2
