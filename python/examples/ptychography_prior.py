# SPDX-License-Identifier: MIT
"""Ptychography with a prior: few photons per pattern, and an object that is smooth but for its edges.

The data term and its gradient are Bracewell's; the prior, a smoothed total variation of the object, and its gradient are the ten
lines of `total_variation`. In PyTorch any module can take its place: see `bracewell.torch.PtychographyLoss`.

python ptychography_prior.py [FIGURE]
"""

import sys

import bracewell
import numpy as np

SIZE, PROBE, STEP, PHOTONS = 96, 32, 7, 300


def total_variation(image, soft=0.05):
    """sum_x sqrt(|grad f|^2 + soft^2), and its gradient, of a complex image."""
    down, right = np.diff(image, axis=0, append=image[-1:]), np.diff(image, axis=1, append=image[:, -1:])
    length = np.sqrt(abs(down)**2 + abs(right)**2 + soft**2)
    down, right = down / length, right / length
    gradient = -down - right
    gradient[1:] += down[:-1]
    gradient[:, 1:] += right[:, :-1]
    return length.sum(), gradient


def experiment(rng):
    """A phase object of discs, a defocused aperture, and Poisson counts of patterns, by NumPy alone."""
    y, x = np.mgrid[:SIZE, :SIZE]
    phase = np.zeros((SIZE, SIZE))
    for _ in range(14):
        centre, radius = rng.uniform(16, SIZE - 16, 2), rng.uniform(4, 13)
        phase[(y - centre[0])**2 + (x - centre[1])**2 < radius**2] += rng.uniform(-0.6, 0.6)
    truth = np.exp(1j * phase).astype(np.complex64)
    k = np.fft.fftfreq(PROBE)
    squared = k[:, None]**2 + k[None, :]**2
    probe = np.fft.fftshift(np.fft.ifft2((squared < 0.2**2) * np.exp(60j * squared)))
    probe = (probe / np.sqrt((abs(probe)**2).sum()) * np.sqrt(PHOTONS) / PROBE).astype(np.complex64)
    corners = np.arange(0, SIZE - PROBE + 1, STEP)
    positions = np.array([(row, column) for row in corners for column in corners], float)
    positions = np.clip(positions + rng.integers(-2, 3, positions.shape), 0, SIZE - PROBE)
    windows = [truth[row:row + PROBE, column:column + PROBE] for row, column in positions.astype(int)]
    patterns = rng.poisson(abs(np.fft.fft2(np.array(windows) * probe))**2).astype(np.float32)
    return truth, probe, positions, patterns


def reconstruct(patterns, positions, probe, strength, iterations=150):
    """Adam on amplitude loss + strength * total variation."""
    loss = bracewell.PtychographyLoss(patterns, positions, (SIZE, SIZE), PROBE, scale="none")
    object_ = np.ones((SIZE, SIZE), np.complex64)
    adam = bracewell.Adam([object_], 0.02)
    for _ in range(iterations):
        gradient = loss.evaluate(object_, probe, wanted=("object",)).object
        adam.step([(gradient + strength * total_variation(object_)[1]).astype(np.complex64)])
    return object_


def error(found, truth):
    """Relative L2 distance in the illuminated middle, but for a common phase."""
    a, b = (image[PROBE // 2:-PROBE // 2, PROBE // 2:-PROBE // 2] for image in (found, truth))
    overlap = np.vdot(a, b)
    return float(np.linalg.norm(a * overlap / abs(overlap) - b) / np.linalg.norm(b))


def main(figure=None):
    """Returns the errors without and with the prior."""
    truth, probe, positions, patterns = experiment(np.random.default_rng(2))
    images = [reconstruct(patterns, positions, probe, strength) for strength in (0, 6e-6)]
    errors = [error(image, truth) for image in images]
    print(f"relative error at {PHOTONS} photons per pattern: {errors[0]:.3f}, with the prior {errors[1]:.3f}")
    if figure:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
        for axis, image, title in zip(axes, (truth, *images), ("truth (phase)", f"data alone: {errors[0]:.2f}",
                                                              f"with the prior: {errors[1]:.2f}")):
            axis.imshow(np.angle(image * np.exp(-1j * np.angle(np.vdot(truth, image)))), cmap="gray", vmin=-1.2, vmax=1.2)
            axis.set(title=title, xticks=[], yticks=[])
        plt.savefig(figure, dpi=100)
    return errors


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["ptychography_prior.png"])
