# SPDX-License-Identifier: MIT
"""A day in a notebook, tomography: load a raw scan, reconstruct a slice, look at it, refine it.   python day_tomography.py [FIGURE]"""

import sys

import bracewell
import numpy as np


def load(views=60, width=96, axis=45.3, photons=3000):
    """Counts [views, rows, width] of discs, dark and flat frame, angles, truth; of a file: h5py.File(name)["/exchange/data"][:]."""
    discs = [(0, 0, 38, 0.02), (-12, 10, 9, 0.03), (14, -6, 12, -0.015), (5, 20, 4, 0.06)]  # x, y, radius, attenuation per pixel
    angles, y, x = np.arange(views) * np.pi / views, *(np.mgrid[:width, :width] - width // 2)
    places = [np.arange(width) - axis - (a * np.cos(angles) + b * np.sin(angles))[:, None] for a, b, _, _ in discs]
    paths = sum(2 * value * np.sqrt(np.maximum(r**2 - s**2, 0)) for s, (_, _, r, value) in zip(places, discs))
    raw = np.random.default_rng(1).poisson(photons * np.exp(-paths) + 50)[:, None].astype(np.float32)
    truth = sum(value * (np.hypot(x - a, y - b) < r) for a, b, r, value in discs)
    return raw, np.full((1, width), 50, np.float32), np.full((1, width), photons + 50, np.float32), angles, truth


def main(figure=None):
    """Returns the error of the axis in pixels, and the relative errors of both images."""
    raw, dark, flat, angles, truth = load()
    sinogram = bracewell.normalise_projections(raw, dark, flat)[0]

    axis = bracewell.find_centre(sinogram, angles)  # reconstruct
    pair = bracewell.Tomography(angles, sinogram.shape[-1], centre=axis, units="line_integrals")
    image = pair.backproject(bracewell.filter_projections(sinogram))

    errors = [np.linalg.norm(image - truth) / np.linalg.norm(truth)]  # look
    print(f"axis at {axis:.2f}, attenuation {image.min():.3f} to {image.max():.3f}, error {errors[0]:.3f}")

    solver = bracewell.LeastSquaresSolver(pair, method="total_variation")  # refine
    refined = solver.solve(sinogram, start=image, iterations=40, nonnegative=True, total_variation=0.1)
    errors.append(np.linalg.norm(refined - truth) / np.linalg.norm(truth))
    print(f"after 40 iterations with total variation: error {errors[1]:.3f}")
    if figure:
        import matplotlib.pyplot as plt

        plt.imsave(figure, np.hstack([truth, image, refined]), cmap="gray", vmin=0, vmax=0.06)
    return abs(axis - 45.3), *errors


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["day_tomography.png"])
