# SPDX-License-Identifier: MIT
"""A day in a notebook, cryo-EM: load particles, reconstruct a map, look at it, refine the poses.   python day_cryoem.py"""

import bracewell
import numpy as np

N, OPTIONS = 32, dict(interpolation="linear", radius=12)


def load(count=400):
    """Spectra of noisy images, coarse and true rotations, true map; of a file: rfft2(ifftshift(mrcfile.open(name).data, axes=(1, 2)))."""
    rng, k = np.random.default_rng(4), [np.fft.fftfreq(N)[:, None], np.fft.rfftfreq(N)]
    atoms, true = rng.normal(scale=4, size=(14, 3)), turn(rng.normal(scale=2, size=(count, 3)))
    seen = np.einsum("iba,nb->ina", true, atoms)  # (x, y, z) in the frame of the image: the matrix leads back
    phase = seen[..., 0, None, None] * k[1] + seen[..., 1, None, None] * k[0]
    images = np.exp(-2j * np.pi * phase).sum(axis=1) * np.exp(-2 * np.pi**2 * 1.5**2 * (k[0]**2 + k[1]**2))
    noise = np.fft.rfft2(rng.normal(size=(count, N, N)))
    images += noise * np.linalg.norm(images) / np.linalg.norm(noise)
    places = np.stack(np.meshgrid(*3 * [np.arange(N) - N // 2], indexing="ij")[::-1], axis=-1)
    truth = sum(np.exp(-((places - atom)**2).sum(axis=-1) / 2 / 1.5**2) for atom in atoms)
    return images.astype(np.complex64)[None], (true @ turn(rng.normal(scale=0.12, size=(count, 3)))).astype(np.float32)[None], true, truth


def turn(v):
    """Rotations by vectors (Rodrigues)."""
    angle = np.linalg.norm(v, axis=-1)[:, None, None] + 1e-12
    k = np.cross(v[:, None], np.eye(3)).swapaxes(1, 2) / angle
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def main():
    """Returns the correlation of the map with the truth and the median error of poses in degrees, before and after."""
    (images, turns, true, truth), results = load(), []
    for step in range(31):
        data, weight = bracewell.backproject(images, turns, weights=np.ones(images.shape, np.float32), **OPTIONS)  # reconstruct
        spectrum = bracewell.normalise(data, weight, wiener=1, radius=12)
        density = np.fft.fftshift(np.fft.irfftn(spectrum[0]))
        angles = np.degrees(np.arccos(np.clip((np.einsum("nij,nij->n", turns[0], true) - 1) / 2, -1, 1)))
        results.append((np.corrcoef(density.ravel(), truth.ravel())[0, 1], np.median(angles)))  # look
        error = bracewell.project(spectrum, turns, **OPTIONS) - images  # refine: against the map of all, along the gradients
        slopes = bracewell.project_gradients(spectrum, turns, error, wanted=("matrices",), **OPTIONS).matrices[0]
        t = turns[0].swapaxes(1, 2) @ slopes
        v = np.stack([t[:, 2, 1] - t[:, 1, 2], t[:, 0, 2] - t[:, 2, 0], t[:, 1, 0] - t[:, 0, 1]], axis=-1)
        turns = (turns @ turn(-0.04 * 0.93**step * v / np.sqrt((v**2).mean()))).astype(np.float32)
    print("map and truth correlate by {:.3f}, poses are {:.1f} degrees off -> {:.3f}, {:.1f}".format(*results[0], *results[-1]))
    return *results[0], *results[-1]


if __name__ == "__main__":
    main()
