# SPDX-License-Identifier: MIT
"""Parallel-beam tomography as an operator of CIL, whose algorithms and regularisers take it::

    from bracewell.hubs.cil import ProjectionOperator
    A = ProjectionOperator(image_geometry, acquisition_geometry)
    SIRT(initial=image_geometry.allocate(0), operator=A, data=data).run(20)

It takes the place of ``cil.plugins.astra.ProjectionOperator``, on the CPU. ``adjoint`` is the exact transpose of ``direct``.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy
from cil.optimisation.operators import LinearOperator

from ..tomography import Tomography

__all__ = ["ProjectionOperator"]


def _expect(name: str, found: Any, expected: Any) -> None:
    same = numpy.allclose(found, expected) if isinstance(expected, (list, float)) else str(found) == str(expected)
    if not same:
        raise ValueError(f"bracewell.hubs.cil.ProjectionOperator: {name}: expected {expected}, found {found}")


class ProjectionOperator(LinearOperator):
    """Line integrals of images, in the units of length of the geometries.

    CIL's view at angle theta sees the pixel (x, y), measured from the middle of the image, at x cos(theta) - y sin(theta) from the axis.

    Args:
        image_geometry: square slices, ``[y, x]`` or ``[vertical, y, x]``, of voxels as large as the detector's pixels.
        acquisition_geometry: a parallel beam, with axes angle and horizontal, and in three dimensions vertical, in any order. The
            axis of rotation may be beside the middle of the detector.
        options: method, tolerance and slices of `bracewell.Tomography`.

    Raises:
        ValueError: on other geometries.
    """

    def __init__(self, image_geometry: Any, acquisition_geometry: Any, **options: Any):
        super().__init__(domain_geometry=image_geometry, range_geometry=acquisition_geometry)
        system, panel, angles = (getattr(acquisition_geometry.config, name) for name in ("system", "panel", "angles"))
        volume = len(acquisition_geometry.shape) == 3
        _expect("geometry", str(acquisition_geometry.geom_type).lower(), "parallel")
        _expect("origin of the panel", panel.origin, "bottom-left")
        _expect("direction of rays", list(system.ray.direction), [0.0, 1.0, 0.0][:2 + volume])
        _expect("direction of rows", list(system.detector.direction_x), [1.0, 0.0, 0.0][:2 + volume])
        if volume:
            _expect("direction of columns", list(system.detector.direction_y), [0.0, 0.0, 1.0])
            _expect("direction of the axis", list(system.rotation_axis.direction), [0.0, 0.0, 1.0])
            _expect("slices", image_geometry.voxel_num_z, panel.num_pixels[1])
        width, size = int(panel.num_pixels[0]), float(panel.pixel_size[0])
        side = int(image_geometry.voxel_num_x)
        _expect("rows of a slice", image_geometry.voxel_num_y, side)
        _expect("size of voxels", [image_geometry.voxel_size_x, image_geometry.voxel_size_y], [size, size])
        _expect("centre of the image", [image_geometry.center_x, image_geometry.center_y], [0.0, 0.0])

        theta = numpy.asarray(angles.angle_data, numpy.float64) + float(angles.initial_angle)
        theta = -(numpy.radians(theta) if str(angles.angle_unit) == "degree" else theta)
        # CIL turns about the middle of images and detectors; ours are about pixel n // 2.
        lag = side // 2 - (side - 1) / 2
        axis = (float(system.rotation_axis.position[0]) - float(system.detector.position[0])) / size
        self._pair = Tomography(theta, width, degrees=False, image=side, centre=(width - 1) / 2 + axis,
                                shifts=lag * (numpy.cos(theta) + numpy.sin(theta)), units="line_integrals", **options)
        self._size, self._factor = size, numpy.float32(size * len(theta) / math.pi)
        labels = list(acquisition_geometry.dimension_labels)
        self._order = [labels.index(label) for label in (["vertical"] if volume else []) + ["angle", "horizontal"]]

    def direct(self, x: Any, out: Optional[Any] = None) -> Any:
        """Line integrals, ``AcquisitionData``."""
        rows = self._pair.project(numpy.ascontiguousarray(x.as_array(), numpy.float32)) * numpy.float32(self._size)
        return self._filled(numpy.transpose(rows, numpy.argsort(self._order)), self.range_geometry(), out)

    def adjoint(self, x: Any, out: Optional[Any] = None) -> Any:
        """The transpose of `direct`, ``ImageData``."""
        rows = numpy.transpose(numpy.asarray(x.as_array(), numpy.float32), self._order)
        return self._filled(self._pair.backproject(numpy.ascontiguousarray(rows) * self._factor), self.domain_geometry(), out)

    @staticmethod
    def _filled(values, geometry, out):
        out = geometry.allocate(None) if out is None else out
        out.fill(numpy.ascontiguousarray(values))
        return out
