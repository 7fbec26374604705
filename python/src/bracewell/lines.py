# SPDX-License-Identifier: MIT
"""Volumes along parallel lines in real space, as an exact pair with gradients of poses.

====================  =========================================================================================
volume                real ``[B, D, H, W]``, its centre at element floor(n/2) of each axis, zero outside
matrices, shifts      real ``[B, P, 3, 3]`` and ``[B, P, 2]`` (row, column), as for `project`
images                real ``[B, P, h, w]``
====================  =========================================================================================

``image(x, y)`` is the integral of ``volume(M (x - s_x, y - s_y, z))`` over z. Axes B and P of extent 1 are shared, that of images
excepted.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence

from . import _core
from ._arrays import Array, current_stream, empty, expect_writable, result, shape_of, wholes, words, zeros


def _of_rank(function: str, name: str, array: Array, axes: str) -> tuple[int, ...]:
    shape = shape_of(function, name, array)
    if len(shape) != 4:
        raise ValueError(f"bracewell.{function}: {name}: expected {axes}, found {list(shape)}")
    return shape


def project_lines(volume: Array, matrices: Array, *, shifts: Optional[Array] = None, shape: Optional[Sequence[int]] = None,
                  out: Optional[Array] = None, stream: Optional[int] = None) -> Array:
    """Sums of a volume along lines: one sample of every plane across the axis that a line is steepest to (Joseph 1982).

    Args:
        volume: real ``[B, D, H, W]``.
        matrices: real ``[B, P, 3, 3]``; the third column is the direction of view.
        shifts: real ``[B, P, 2]``.
        shape: of images (h, w); those of the volume's rows by default.
        out: where to write, ``[B, P, h, w]``.

    Returns:
        ``[B, P, h, w]``; NaN for poses that are not finite.
    """
    expect_writable("project_lines", out)
    sizes = _of_rank("project_lines", "volume", volume, "[B, D, H, W]")
    turns = _of_rank("project_lines", "matrices", matrices, "[B, P, 3, 3]")
    if out is None:
        moves = shape_of("project_lines", "shifts", shifts) if shifts is not None else (1, 1)
        batches, poses = (max(sizes[0], turns[0], moves[0]), max(turns[1], moves[1]))
        out = empty(volume, (batches, poses, *(sizes[2:] if shape is None else wholes("shape", shape))), "real")
    _core.project_lines(volume, matrices, shifts, out, current_stream(volume, stream))
    return result(out, volume)


def backproject_lines(images: Array, matrices: Array, *, shifts: Optional[Array] = None,
                      shape: Optional[Sequence[int]] = None, batches: Optional[int] = None, out: Optional[Array] = None,
                      stream: Optional[int] = None) -> Array:
    """The transpose of `project_lines`: adds images along their lines to a volume.

    Args:
        images: real ``[B, P, h, w]``.
        shape: sizes (D, H, W) of the volume that is made.
        batches: of that volume: B by default, or 1, the sum.
        out: a volume to add to, in place of one of zeros.

    Returns:
        The volume. The same input gives the same to the last bit.
    """
    expect_writable("backproject_lines", out)
    count = _of_rank("backproject_lines", "images", images, "[B, P, h, w]")[0]
    if out is None:
        if shape is None:
            raise ValueError("bracewell.backproject_lines: shape: expected the sizes of the volume, or out, found neither")
        out = zeros(images, (count if batches is None else batches, *wholes("shape", shape)), "real")
    _core.backproject_lines(images, matrices, shifts, out, current_stream(images, stream))
    return result(out, images)


class LineGradients(NamedTuple):
    """Derivatives of a loss; those that were not wanted are None."""

    volume: Optional[Array]
    matrices: Optional[Array]
    shifts: Optional[Array]


def project_lines_gradients(volume: Array, matrices: Array, cotangent: Array, *, shifts: Optional[Array] = None,
                            wanted: Sequence[str] = ("volume", "matrices"), stream: Optional[int] = None) -> LineGradients:
    """Exact derivatives of a loss with respect to what `project_lines` reads, from dL/d image. What is shared gets the sum.

    Args:
        cotangent: real ``[B, P, h, w]``.
        wanted: some of volume, matrices and shifts.
    """
    wanted = words("project_lines_gradients", "wanted", wanted, "volume", "matrices", "shifts")
    given = {"volume": volume, "matrices": matrices, "shifts": shifts}
    if shifts is None and "shifts" in wanted:
        raise ValueError("bracewell.project_lines_gradients: wanted: expected shifts where they are given, found none")
    of = {name: empty(volume, shape_of("project_lines_gradients", name, given[name]), "real") if name in wanted else None
          for name in given}
    _core.project_lines_gradients(volume, matrices, shifts, cotangent, of["volume"], of["matrices"], of["shifts"],
                                  current_stream(volume, stream))
    return LineGradients(*(result(of[name], volume) for name in given))
