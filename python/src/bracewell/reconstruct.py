# SPDX-License-Identifier: MIT
"""From maps to spectra and back: padding, roll-off, symmetry, normalisation, Fourier shell correlation."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Union

import numpy

from . import _core
from ._arrays import (Array, as_real, current_stream, each, empty, expect_writable, flag, is_complex, number, on_host, real, result, shape_of,
                      whole, wholes, word, zeros)


def pad_centre(centred: Array, shape: Sequence[int], *, stream: Optional[int] = None) -> Array:
    """Places a box whose centre is element floor(n/2) into a larger one whose origin is element 0, zeros elsewhere.

    Args:
        centred: real ``[B, (d,) h, w]``.
        shape: sizes ((D,) H, W) of the larger box.

    Returns:
        Real ``[B, (D,) H, W]``, ready for ``rfftn``.
    """
    batch = shape_of("pad_centre", "centred", centred)[:1]
    given, centred = centred, as_real(centred)
    out = empty(centred, (*batch, *wholes("shape", shape)), "real")
    _core.pad_centre(centred, out, current_stream(centred, stream))
    return result(out, given)


def crop_centre(padded: Array, shape: Sequence[int], scale: float = 1, *, stream: Optional[int] = None) -> Array:
    """The reverse of `pad_centre`: takes the centred box back out, times `scale`.

    Args:
        padded: real ``[B, (D,) H, W]``, origin at element 0.
        shape: sizes ((d,) h, w) of the box.
    """
    out = empty(padded, (*shape_of("crop_centre", "padded", padded)[:1], *wholes("shape", shape)), "real")
    _core.crop_centre(padded, out, real("scale", scale), current_stream(padded, stream))
    return result(out, padded)


def correct_rolloff(volume: Array, padded: Sequence[int], *, interpolation: str = "catmull_rom",
                    stream: Optional[int] = None) -> Array:
    """Divides by the transform of the interpolation kernel, about the centre floor(n/2), in place (O'Sullivan, IEEE Trans.
    Med. Imaging 4 (1985) 200). Apply it before the transform of what will be projected, after that of what was backprojected.

    Args:
        volume: real ``[B, (d,) h, w]``, changed in place.
        padded: sizes of the box that is interpolated.

    Returns:
        The volume.
    """
    _core.correct_rolloff(volume, list(wholes("padded", padded)), word("correct_rolloff", "interpolation", interpolation),
                          current_stream(volume, stream))
    return volume


def _batch_of_spectra(function: str, name: str, array: Array) -> tuple[int, ...]:
    shape = shape_of(function, name, array)
    if len(shape) not in (3, 4):
        raise ValueError(f"bracewell.{function}: {name}: expected [B, (D,) H, W/2+1], found {list(shape)}")
    return shape


def normalise(data: Array, weight: Array, *, wiener: float = 0, floor: Optional[float] = None, radius: Optional[float] = None,
              edge: float = 0, prior: Optional[Array] = None, interpolation: str = "catmull_rom", width: Optional[int] = None,
              stream: Optional[int] = None) -> Array:
    """A volume from what `backproject` gathered: data / max(weight + wiener + prior, floor (average weight of the shell + what
    is added)).

    Args:
        data: complex ``[B, (D,) H, W/2+1]``.
        weight: real, like data.
        wiener: noise power over signal power, in units of the weight.
        floor: least divisor, as a part of its shell's average. By default that of the kernel that inserted: 0.2 for catmull_rom,
            whose weights have signs, else 0.001.
        radius: frequencies beyond are zero; half the width by default.
        edge: frequencies less than this below the radius fall to zero by a cosine.
        prior: float64 ``[B, S]``, added to the weights of each shell, for instance `wiener_prior`.
        interpolation: the kernel that inserted.
        width: W, where it is odd.

    Returns:
        Complex, like data.
    """
    shape = _batch_of_spectra("normalise", "data", data)
    volume = empty(data, shape, "complex")
    averages = empty(data, shape_of("normalise", "prior", prior) if prior is not None else (shape[0], shape[-1]), "float64")
    _core.normalise(data, weight, whole("width", width, default=0), volume, averages, prior, real("wiener", wiener), real("edge", edge),
                    number("floor", floor), number("radius", radius), word("normalise", "interpolation", interpolation), current_stream(data, stream))
    return result(volume, data)


def symmetry_operators(name: str) -> numpy.ndarray:
    """Rotations of a point group in RELION's orientation: C4, D7, T, O, I, I1 and others.

    Returns:
        float64 ``[operators, 3, 4]``: matrices R, and shifts 0 behind them.
    """
    return numpy.array(_core.symmetry_operators(word("symmetry_operators", "name", name))).reshape(-1, 12)[:, _R_AND_T].reshape(-1, 3, 4)


def helical_operators(rise: float, twist: float, count: int, group: str = "C1") -> numpy.ndarray:
    """Motions of a helix along z, the identity first.

    Args:
        rise: pixels from one subunit to the next.
        twist: degrees, positive for a right-handed helix.
        count: subunits, odd.
        group: C<n> or D<n> about the axis.

    Returns:
        float64 ``[operators, 3, 4]``: matrices R with shifts t behind them; V(R x + t) = V(x), x = (x, y, z).
    """
    found = _core.helical_operators(real("rise", rise), real("twist", twist), whole("count", count), word("helical_operators", "group", group))
    return numpy.array(found).reshape(-1, 12)[:, _R_AND_T].reshape(-1, 3, 4)


_R_AND_T = [0, 1, 2, 9, 3, 4, 5, 10, 6, 7, 8, 11]


def symmetrise(spectrum: Array, operators: Union[str, Sequence[Sequence[Sequence[float]]]], *, interpolation: str = "linear",
               radius: Optional[float] = None, width: Optional[int] = None, stream: Optional[int] = None) -> Array:
    """Symmetry as one operation on what `backproject` gathered, data or weight: replaces F(k) by the sum over operators (R, t) of
    F(R k) exp(2 pi i (R k).t / N), in place. A weight, which is real, has no phase.

    Args:
        spectrum: real or complex ``[B, N, N, N/2+1]``, changed in place.
        operators: the name of a point group, or ``[operators, 3, 3]`` (R) or ``[operators, 3, 4]`` (R with t in pixels behind
            it), the identity first. Matrices that change lengths are refused.
        interpolation: best the kernel that inserted.
        radius: frequencies beyond are zero; (N-1)/2 by default.
        width: N, where it is odd.

    Returns:
        The spectrum.
    """
    table = symmetry_operators(operators) if isinstance(operators, str) else on_host(operators, "float64", "operators")
    if table.ndim != 3 or table.shape[1:] not in ((3, 3), (3, 4)):
        raise ValueError(f"bracewell.symmetrise: operators: expected [operators, 3, 3] or [operators, 3, 4], found {list(table.shape)}")
    products = numpy.einsum("nki,nkj->nij", table[:, :, :3], table[:, :, :3])
    if not (abs(products - numpy.eye(3)) < 1e-3).all():
        raise ValueError("bracewell.symmetrise: operators: expected rotations, found a matrix that is none")
    expect_writable("symmetrise", spectrum)
    scratch = empty(spectrum, shape_of("symmetrise", "spectrum", spectrum), "complex" if is_complex(spectrum) else "real")
    shifts = table[:, :, 3] if table.shape[2] == 4 else numpy.zeros((len(table), 3))
    numbers = numpy.concatenate([table[:, :, :3].reshape(-1, 9), shifts], axis=1).ravel().tolist()
    _core.symmetrise(spectrum, whole("width", width, default=0), scratch, is_complex(spectrum), numbers, word("symmetrise", "interpolation", interpolation),
                     number("radius", radius), current_stream(spectrum, stream))
    return spectrum


def half_set_moments(first_data: Array, first_weight: Array, second_data: Array, second_weight: Array, *,
                     prior: Optional[Array] = None, shells: Optional[int] = None, width: Optional[int] = None,
                     stream: Optional[int] = None) -> Array:
    """Sums over shells from which `signal_and_noise` tells the powers of signal and noise. With g = 1 / (W + prior), or 1 without
    a prior, they are Re D1 conj D2 g1 g2, W1 W2 g1 g2, abs(D1 g1)^2 + abs(D2 g2)^2, (W1 g1)^2 + (W2 g2)^2, W1 g1^2 + W2 g2^2,
    (W1 + W2) / 2, and 1.

    Args:
        first_data, second_data: complex ``[B, (D,) H, W/2+1]``, what `backproject` gathered of half of the images.
        first_weight, second_weight: real, like the data.
        prior: float64 ``[B, shells]``.
        shells: how many; W/2+1 by default.
        width: W, where it is odd.

    Returns:
        float64 ``[B, shells, 7]``.
    """
    shape = _batch_of_spectra("half_set_moments", "first_data", first_data)
    if shells is None:
        shells = (0, *shape_of("half_set_moments", "prior", prior))[-1] if prior is not None else shape[-1]
    moments = empty(first_data, (shape[0], whole("shells", shells, least=0), 7), "float64")
    _core.half_set_moments(first_data, first_weight, second_data, second_weight, whole("width", width, default=0), moments, prior,
                           current_stream(first_data, stream))
    return result(moments, first_data)


class SignalAndNoise(NamedTuple):
    """Powers per shell, float64 ``[S]``."""

    signal: numpy.ndarray
    """Of the volume."""
    noise: numpy.ndarray
    """Of a sample of weight 1."""
    weight: numpy.ndarray
    """The average of a half set."""


def signal_and_noise(moments: Array, *, interpolation: str = "catmull_rom", whole_shells: Optional[int] = None) -> SignalAndNoise:
    """Powers of signal and noise from the sums of one volume. The half sets have the signal in common; the rest is noise.

    Args:
        moments: ``[S, 7]`` of `half_set_moments`, on the host.
        interpolation: the kernel that inserted.
        whole_shells: how many shells have samples all around, which those beyond take the powers of; all by default.
    """
    table = on_host(moments, "float64", "moments")
    if table.ndim != 2 or table.shape[1] != 7:
        raise ValueError(f"bracewell.signal_and_noise: moments: expected [S, 7], found {list(table.shape)}")
    shells = None if whole_shells is None else whole("whole_shells", whole_shells, least=0)
    return SignalAndNoise(*map(numpy.array, _core.signal_and_noise(
        table.ravel().tolist(), word("signal_and_noise", "interpolation", interpolation), shells)))


def wiener_prior(powers: SignalAndNoise, oversampling: float, part: float) -> numpy.ndarray:
    """What `normalise` adds to the weights of each shell: part noise / (signal oversampling^3), at most fifty average weights
    (Scheres, J. Struct. Biol. 180 (2012) 519).

    Args:
        powers: of `signal_and_noise`.
        oversampling: padded over original box.
        part: of the box's volume in which there is signal.

    Returns:
        float64 ``[S]``.
    """
    lists = [on_host(one, "float64", "powers").tolist() for one in each("wiener_prior", "powers", powers, "signal, noise and weight")]
    if len(lists) != 3 or len({numpy.shape(one) for one in lists}) != 1 or numpy.ndim(lists[0]) != 1:
        raise ValueError("bracewell.wiener_prior: powers: expected signal, noise and weight of as many shells, found others")
    return numpy.array(_core.wiener_prior(*lists, real("oversampling", oversampling), real("part", part)))


def equalise(weight: Array, box: Sequence[int], *, prior: Optional[Array] = None, steps: int = 20, tolerance: float = 0.02,
             keep_power: bool = False, radius: Optional[float] = None, width: Optional[int] = None,
             stream: Optional[int] = None) -> Array:
    """What `normalise` takes for the weight, so that neighbours count as the cropped map mixes them (Pipe and Menon, Magn. Reson.
    Med. 41 (1999) 179): a divisor Q by which the weights are one on average around every frequency. C++ has the steps as
    `WeightEqualiser`.

    Args:
        weight: real ``[1, D, H, W/2+1]``, what `backproject` gathered.
        box: sizes (d, h, w) of the map that is cropped.
        prior: float64 ``[1, S]``, added to the weights of each shell.
        steps: at most.
        tolerance: how far weights may stay from one.
        keep_power: of half a map: directions have the power of the signal in the whole map.
        radius: frequencies beyond are left out; half the width by default.
        width: W, where it is odd.

    Returns:
        Real, like weight.
    """
    shape = shape_of("equalise", "weight", weight)
    if len(shape) != 4:
        raise ValueError(f"bracewell.equalise: weight: expected [1, D, H, W/2+1], found {list(shape)}")
    columns = whole("width", width, default=2 * (shape[-1] - 1), least=1)
    divisor, spectrum = zeros(weight, shape, "real"), empty(weight, shape, "complex")
    volume = empty(weight, (*shape[:3], columns), "real")
    averages = empty(weight, shape_of("equalise", "prior", prior) if prior is not None else (1, shape[-1]), "float64")
    _core.equalise(weight, whole("width", width, default=0), divisor, averages, spectrum, volume, empty(weight, (2,), "float64"), prior,
                   list(wholes("box", box)), whole("steps", steps, least=1), real("tolerance", tolerance), flag("keep_power", keep_power), number("radius", radius),
                   current_stream(weight, stream))
    return result(divisor, weight)


def fourier_shell_correlation(first: Array, second: Array, *, shells: Optional[int] = None, width: Optional[int] = None,
                              stream: Optional[int] = None) -> Array:
    """Correlation of two spectra in every shell of the full spectrum (Harauz and van Heel, Optik 73 (1986) 146).

    Args:
        first, second: complex ``[B, (D,) H, W/2+1]``.
        shells: how many; W/2+1 by default, up to Nyquist.
        width: W, where it is odd.

    Returns:
        float64 ``[B, shells]``; shell s holds s - 1/2 <= |k| < s + 1/2.
    """
    shape = shape_of("fourier_shell_correlation", "first", first)
    if len(shape) not in (3, 4):
        raise ValueError(f"bracewell.fourier_shell_correlation: first: expected [B, (D,) H, W/2+1], found {list(shape)}")
    out = empty(first, (shape[0], whole("shells", shells, default=shape[-1], least=0)), "float64")
    _core.fourier_shell_correlation(first, second, whole("width", width, default=0), out, current_stream(first, stream))
    return result(out, first)
