# SPDX-License-Identifier: MIT
"""Iterative tomography in ten lines: a slice from 30 noisy projections, with no negative attenuation.

python iterative_tomography.py [FIGURE]
"""

import sys

import bracewell
import numpy as np


def reconstruct(sinogram, angles, iterations=100):
    """Nesterov's gradient descent on |project(x) - sinogram|^2 over x >= 0; the pair is exact, the step 1 / largest eigenvalue."""
    beam = bracewell.Tomography(angles, sinogram.shape[-1])
    measured = sinogram * np.float32(np.pi / len(angles))  # in the units of the transpose
    probe = beam.backproject(np.ones_like(sinogram))
    for _ in range(10):
        probe = beam.backproject(beam.project(probe / np.linalg.norm(probe)))
    x = y = np.zeros_like(probe)
    for k in range(iterations):
        step = y - beam.backproject(beam.project(y) - measured) / np.linalg.norm(probe)
        x, last = np.maximum(step, 0), x
        y = x + k / (k + 3) * (x - last)
    return x


def phantom(n):
    """Ellipses (x, y, half axes, turn, attenuation per pixel): their pixels, and their line integrals in closed form."""
    ellipses = [(0, 0, .68, .85, 0, 1.0), (0, 0, .62, .79, 0, -.7), (.22, 0, .12, .3, -.3, .5), (-.25, 0, .16, .4, .3, .35),
                (0, .35, .2, .22, 0, .4), (0, -.6, .05, .05, 0, .6), (.1, -.6, .04, .03, .8, .6)]
    y, x = (np.mgrid[:4 * n, :4 * n] + 0.5) / 2 / n - 1 - 1 / n
    image = np.zeros((4 * n, 4 * n), np.float32)
    for x0, y0, a, b, turn, value in ellipses:
        u, v = (x - x0) * np.cos(turn) + (y - y0) * np.sin(turn), (y - y0) * np.cos(turn) - (x - x0) * np.sin(turn)
        image += value * ((u / a)**2 + (v / b)**2 < 1)

    def integrals(angles):
        s = (np.arange(n) - n // 2) * 2 / n
        total = np.zeros((len(angles), n))
        for x0, y0, a, b, turn, value in ellipses:
            squared = (a * np.cos(angles - turn))**2 + (b * np.sin(angles - turn))**2
            t = s - (x0 * np.cos(angles) + y0 * np.sin(angles))[:, None]
            total += value * a * b * np.sqrt(np.maximum(squared[:, None] - t**2, 0)) / squared[:, None] * n
        return total.astype(np.float32)

    return image.reshape(n, 4, n, 4).mean(axis=(1, 3)), integrals


def main(figure=None):
    """Returns the errors of both methods, relative to the truth (L2)."""
    truth, integrals = phantom(128)
    angles = np.arange(30) * np.pi / 30
    sinogram = integrals(angles)
    sinogram += np.random.default_rng(1).normal(scale=0.02 * sinogram.max(), size=sinogram.shape).astype(np.float32)
    filtered = bracewell.Tomography(angles, 128).backproject(bracewell.filter_projections(sinogram, "hann"))
    iterative = reconstruct(sinogram, angles)
    errors = [float(np.linalg.norm(image - truth) / np.linalg.norm(truth)) for image in (filtered, iterative)]
    print(f"relative error: filtered back-projection {errors[0]:.3f}, iterative {errors[1]:.3f}")
    if figure:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
        for axis, image, title in zip(axes, (truth, filtered, iterative), ("truth", f"filtered: {errors[0]:.2f}",
                                                                          f"iterative: {errors[1]:.2f}")):
            axis.imshow(image, cmap="gray", vmin=0, vmax=1)
            axis.set(title=title, xticks=[], yticks=[])
        plt.savefig(figure, dpi=100)
    return errors


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["iterative_tomography.png"])
