# SPDX-License-Identifier: MIT
"""Half spectra and images at lists of points, with exact gradients of values and points.

====================  =========================================================================================
grid                  complex ``[B, (D,) H, W/2+1]``, a half spectrum, continued by Hermitian symmetry and
                      periodicity; or real ``[B, (D,) H, W]``, an image or a volume, zero outside
points                real ``[B, N, d]``, positions (x, y[, z]) in elements: frequencies, or indices of an image
values                of the grid's type, ``[B, N]``
====================  =========================================================================================

An axis B of extent 1 of grid or points is shared. Kernels are ``linear``, ``catmull_rom`` and ``cubic_bspline``. ``mates`` is of
half spectra: ``single``, or ``both``, with which a value is inserted at +q and its conjugate at -q, as `backproject` does.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence

from . import _core
from ._arrays import Array, brief, current_stream, empty, expect_writable, is_complex, result, shape_of, whole, wholes, word, words, zeros
from .projection import _half, _sizes


def _grid_width(function: str, grid: Array, width: Optional[int]) -> int:
    """The full width of a half spectrum; 0 of an image, which has none to state."""
    if is_complex(grid):
        return _sizes(function, "grid", grid, 1, width)[-1]
    if width is not None:
        raise ValueError(f"bracewell.{function}: width: expected none where the grid is real, an image, found {brief(width)}")
    return 0


def _batches(*arrays: Array) -> int:
    return max(array.shape[0] for array in arrays)


def _words(function: str, interpolation: str, mates: str) -> tuple[str, str]:
    return word(function, "interpolation", interpolation), word(function, "mates", mates)


def _points_of(function: str, points: Array) -> tuple[int, ...]:
    shape = shape_of(function, "points", points)
    if len(shape) != 3:
        raise ValueError(f"bracewell.{function}: points: expected [B, N, d], found {list(shape)}")
    return shape


def sample(grid: Array, points: Array, *, width: Optional[int] = None, interpolation: str = "catmull_rom",
           mates: str = "single", out: Optional[Array] = None, stream: Optional[int] = None) -> Array:
    """The grid at points: ``values[b, i] = F_b(points[b, i])``, interpolated by the kernel.

    Args:
        grid: complex ``[B, (D,) H, W/2+1]`` or real ``[B, (D,) H, W]``.
        points: real ``[B, N, d]``.
        width: W of a half spectrum, where it is odd.
        out: where to write, ``[B, N]``.

    Returns:
        ``[B, N]`` of the grid's type; NaN where a point is not finite.
    """
    expect_writable("sample", out)
    shape_of("sample", "grid", grid)
    full = _grid_width("sample", grid, width)
    count = _points_of("sample", points)[1]
    if out is None:
        out = empty(grid, (_batches(grid, points), count), "complex" if is_complex(grid) else "real")
    _core.sample(grid, full, points, out, is_complex(grid), *_words("sample", interpolation, mates), current_stream(grid, stream))
    return result(out, grid)


def insert(values: Array, points: Array, *, shape: Optional[Sequence[int]] = None, interpolation: str = "catmull_rom",
           mates: str = "single", batches: Optional[int] = None, out: Optional[Array] = None,
           width: Optional[int] = None, stream: Optional[int] = None) -> Array:
    """The transpose of `sample`: every value times its weights is added to the elements around its point.

    Args:
        values: complex (to a half spectrum) or real (to an image) ``[B, N]``.
        points: real ``[B, N, d]``.
        shape: full sizes ((D,) H, W) of the grid that is made.
        batches: of that grid: B by default, or 1, the sum.
        out: a grid to add to, in place of one of zeros.
        width: W of `out`, where it is odd.

    Returns:
        The grid.
    """
    expect_writable("insert", out)
    shape_of("insert", "values", values)
    _points_of("insert", points)
    half = is_complex(values)
    if out is None:
        if shape is None:
            raise ValueError("bracewell.insert: shape: expected the sizes of the grid, or out, found neither")
        sizes = wholes("shape", shape)
        if not sizes:
            raise ValueError("bracewell.insert: shape: expected ((D,) H, W), found none")
        count = whole("batches", batches, default=(*values.shape, 0)[0], least=0)
        out = zeros(values, (count, *(_half(sizes) if half else sizes)),
                    "complex" if half else "real")
        full = sizes[-1] if half else 0
    else:
        shape_of("insert", "out", out)
        full = _grid_width("insert", out, width) if half else 0
    _core.insert(values, points, out, full, half, *_words("insert", interpolation, mates), current_stream(values, stream))
    return result(out, values)


class SampleGradients(NamedTuple):
    """Derivatives of a loss; those that were not wanted are None."""

    grid: Optional[Array]
    points: Optional[Array]


class InsertGradients(NamedTuple):
    """Derivatives of a loss; those that were not wanted are None."""

    values: Optional[Array]
    points: Optional[Array]


def sample_gradients(grid: Array, points: Array, cotangent: Array, *, wanted: Sequence[str] = ("grid", "points"),
                     width: Optional[int] = None, interpolation: str = "catmull_rom", mates: str = "single",
                     stream: Optional[int] = None) -> SampleGradients:
    """Exact derivatives of a real loss with respect to what `sample` reads, from dL/dRe + i dL/dIm of its values. What is shared
    over batches gets the sum.

    Args:
        cotangent: ``[B, N]`` of the grid's type.
        wanted: grid, points or both.

    The other arguments are those of `sample`.
    """
    wanted = words("sample_gradients", "wanted", wanted, "grid", "points")
    shape_of("sample_gradients", "grid", grid)
    full = _grid_width("sample_gradients", grid, width)
    of_grid = empty(grid, grid.shape, "complex" if is_complex(grid) else "real") if "grid" in wanted else None
    of_points = empty(grid, _points_of("sample_gradients", points), "real") if "points" in wanted else None
    _core.sample_gradients(grid, full, points, cotangent, of_grid, of_points, is_complex(grid), *_words("sample_gradients", interpolation, mates),
                           current_stream(grid, stream))
    return SampleGradients(result(of_grid, grid), result(of_points, grid))


def insert_gradients(values: Array, points: Array, cotangent: Array, *, wanted: Sequence[str] = ("values", "points"),
                     width: Optional[int] = None, interpolation: str = "catmull_rom", mates: str = "single",
                     stream: Optional[int] = None) -> InsertGradients:
    """Exact derivatives of a real loss with respect to what `insert` reads, from the cotangent of its grid.

    Args:
        cotangent: like the grid.
        wanted: values, points or both.
        width: W of a half spectrum, where it is odd.
    """
    wanted = words("insert_gradients", "wanted", wanted, "values", "points")
    shape_of("insert_gradients", "cotangent", cotangent)
    full = _grid_width("insert_gradients", cotangent, width)
    shape = shape_of("insert_gradients", "values", values)
    of_values = empty(values, shape, "complex" if is_complex(cotangent) else "real") if "values" in wanted else None
    of_points = empty(values, _points_of("insert_gradients", points), "real") if "points" in wanted else None
    _core.insert_gradients(values, points, cotangent, full, of_values, of_points, is_complex(cotangent),
                           *_words("insert_gradients", interpolation, mates), current_stream(values, stream))
    return InsertGradients(result(of_values, values), result(of_points, values))
