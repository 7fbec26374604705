#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figure 1 of the paper, measured: turns white noise within a disc by `bracewell.project` from references of several paddings, and
compares spectra with the exact transform at the turned frequencies, images with its inverse. Prints one JSON object.

Per kernel and padding: the ring correlation of spectra (rings of frequency), and of images the ratio of root mean squares (rings of
radius).
"""
import argparse
import json

import numpy

import bracewell

KERNELS = ("linear", "catmull_rom", "cubic_bspline")


def rings(n, half):
    """The ring of every stored frequency, or of every pixel."""
    y = numpy.fft.fftfreq(n, 1 / n)
    x = numpy.fft.rfftfreq(n, 1 / n) if half else y
    return numpy.rint(numpy.hypot(y[:, None], x[None, :])).astype(int)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, turns = (16, 4) if quick else (64, 48)
    random = numpy.random.default_rng(54)
    pixel = numpy.arange(n) - n // 2
    disc = numpy.hypot(pixel[:, None], pixel[None, :]) < n / 2 - 1
    image = random.standard_normal((n, n)) * disc
    angles = 2 * numpy.pi * random.random(turns)
    matrices = numpy.stack([numpy.cos(angles), -numpy.sin(angles), numpy.sin(angles), numpy.cos(angles)], -1).reshape(1, turns, 2, 2)
    ky, kx = numpy.meshgrid(numpy.fft.fftfreq(n, 1 / n), numpy.fft.rfftfreq(n, 1 / n), indexing="ij")
    exact = numpy.empty((turns, n, n // 2 + 1), complex)
    for t in range(turns):  # frequencies (x, y) to those of the reference
        qx = matrices[0, t, 0, 0] * kx + matrices[0, t, 0, 1] * ky
        qy = matrices[0, t, 1, 0] * kx + matrices[0, t, 1, 1] * ky
        along = numpy.exp(-2j * numpy.pi / n * qx[..., None] * pixel)
        down = numpy.exp(-2j * numpy.pi / n * qy[..., None] * pixel)
        exact[t] = numpy.einsum("abj,abj->ab", down, numpy.einsum("abi,ji->abj", along, image))
    of_frequency, of_radius = rings(n, True), rings(n, False)
    within = numpy.hypot(ky, kx) <= n / 2
    exact *= within
    true = numpy.fft.irfft2(exact, s=(n, n))
    rows = []
    for kernel in KERNELS:
        for padding in (1, 1.5, 2):
            side = int(n * padding)
            start = (side - n) // 2
            padded = numpy.zeros((side, side))
            padded[start:start + n, start:start + n] = image
            reference = numpy.fft.rfft2(numpy.fft.ifftshift(padded))
            found = bracewell.project(reference[None], matrices, interpolation=kernel, shape=(n, n), oversampling=padding,
                                      radius=n / 2)[0] * within
            image_of = numpy.fft.irfft2(found, s=(n, n))
            correlations, ratios = [], []
            for ring in range(1, n // 2):
                a, b = found[:, of_frequency == ring], exact[:, of_frequency == ring]
                correlations.append(abs(numpy.vdot(a, b)) / numpy.sqrt(numpy.vdot(a, a).real * numpy.vdot(b, b).real))
                a, b = image_of[:, of_radius == ring], true[:, of_radius == ring]
                ratios.append(numpy.sqrt((a * a).sum() / (b * b).sum()))
            rows.append([kernel, padding, [round(float(v), 5) for v in correlations], [round(float(v), 5) for v in ratios]])
    print(json.dumps({"columns": ["kernel", "padding", "ring correlation", "ratio of root mean squares"], "box": n, "turns": turns,
                      "rows": rows}))


main()
