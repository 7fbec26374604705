# SPDX-License-Identifier: MIT
"""Heterogeneous reconstruction by gradient descent through projections: a molecule with an arm that moves.

Image i shows V0 + t_i V1 in a known pose, with t_i unknown: mean, motion and all t_i are fitted at once to noisy images that are
made in closed form. The gradients of the squared error with respect to both volumes, and their curvatures, are one call of
`backproject`; that of t_i is a sum over its image.

python heterogeneous_reconstruction.py [FIGURE]
"""

import sys

import bracewell
import numpy as np

N, RADIUS, IMAGES = 32, 8, 300


def simulate(rng):
    """Half spectra of noisy images, rotations, and where the arm was in each, from -1 to 1."""
    body = rng.normal(scale=3.2, size=(12, 3))
    arm, along = np.array([[7.0, 0, 2], [8.5, 1, 3], [7.5, 2, 4.5]]), np.array([0, 6.0, -3.0])
    t = rng.uniform(-1, 1, IMAGES)
    turns = np.linalg.qr(rng.normal(size=(IMAGES, 3, 3)))[0]
    turns *= np.linalg.det(turns)[:, None, None]
    atoms = np.concatenate([np.broadcast_to(body, (IMAGES, 12, 3)), arm + t[:, None, None] * along], axis=1)
    seen = np.einsum("iba,inb->ina", turns, atoms)  # (x, y, z) in the frame of the image: the matrix leads back
    ky, kx = np.fft.fftfreq(N)[:, None], np.fft.rfftfreq(N)[None, :]
    phase = seen[..., 0, None, None] * kx + seen[..., 1, None, None] * ky
    images = np.exp(-2j * np.pi * phase).sum(axis=1) * np.exp(-2 * np.pi**2 * 1.5**2 * (kx**2 + ky**2))
    noise = np.fft.rfft2(rng.normal(size=(IMAGES, N, N)))
    images = images + noise * 0.5 * np.linalg.norm(images) / np.linalg.norm(noise)
    return images.astype(np.complex64)[None], turns.astype(np.float32)[None], t


def fit(images, turns, rng, iterations=60):
    """Mean, motion (half spectra [2, N, N, N/2+1]), coordinates of all images, and the loss of every iteration."""
    volumes = np.zeros((2, N, N, N // 2 + 1), np.complex64)
    t = rng.normal(size=IMAGES).astype(np.float32)
    inside = np.hypot(np.fft.fftfreq(N)[:, None], np.fft.rfftfreq(N)[None, :]) <= RADIUS / N
    options, losses = dict(interpolation="linear", radius=RADIUS), []
    for _ in range(iterations):
        mix = np.stack([np.ones_like(t), t])[:, :, None, None]
        views = bracewell.project(volumes, turns, **options)  # [2, images, N, N/2+1]
        residual = (images[0] - (mix * views).sum(axis=0)) * inside
        losses.append(float((abs(residual)**2).sum()))
        # The gradient of half the loss with respect to both volumes, over its curvature.
        weights = np.ascontiguousarray(np.broadcast_to(mix**2, views.shape))
        slope, curvature = bracewell.backproject(mix * residual, turns, weights=weights, **options)
        t += 0.7 * (residual.conj() * views[1]).real.sum(axis=(1, 2)) / ((abs(views[1])**2).sum(axis=(1, 2)) + 1e-9)
        volumes += 0.7 * bracewell.normalise(slope, curvature, wiener=0.5)
        shift, scale = t.mean(), t.std()  # coordinates of mean 0 and variance 1, which the volumes make up for
        t = (t - shift) / scale
        volumes[0] += shift * volumes[1]
        volumes[1] *= scale
    return volumes, t, losses


def main(figure=None):
    """Returns the correlation of the fitted coordinates with the true ones."""
    rng = np.random.default_rng(4)
    images, turns, truth = simulate(rng)
    volumes, t, losses = fit(images, turns, rng)
    correlation = float(abs(np.corrcoef(t, truth)[0, 1]))
    print(f"loss {losses[0]:.3g} -> {losses[-1]:.3g}; correlation of {IMAGES} fitted coordinates with the truth: {correlation:.3f}")
    if figure:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        maps = [np.fft.fftshift(np.fft.irfftn(volume)).sum(axis=0) for volume in volumes]
        _, axes = plt.subplots(1, 4, figsize=(16, 4.2), layout="constrained")
        axes[0].imshow(np.fft.fftshift(np.fft.irfft2(images[0, 0])), cmap="gray")
        axes[1].imshow(maps[0], cmap="gray")
        axes[2].imshow(maps[1], cmap="RdBu", vmin=-abs(maps[1]).max(), vmax=abs(maps[1]).max())
        axes[3].plot(truth, t, ".", ms=3)
        axes[3].set(xlabel="where the arm was", ylabel="fitted coordinate", title=f"correlation {correlation:.2f}")
        for axis, title in zip(axes[:3], ("an image", "mean (along z)", "motion (along z)")):
            axis.set(title=title, xticks=[], yticks=[])
        plt.savefig(figure, dpi=100)
    return correlation


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["heterogeneous_reconstruction.png"])
