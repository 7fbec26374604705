# SPDX-License-Identifier: MIT
"""A day in a notebook, ptychography: load patterns, reconstruct, look, refine positions.   python day_ptychography.py [FIGURE]"""

import sys

import bracewell
import numpy as np


def load(size=80, m=32, step=6, counts=1e4):
    """Counts [N, m, m], positions as written and as they were, a rough probe, the object; of a file: h5py.File(name)["/data"][:]."""
    rng, k, centre = np.random.default_rng(3), np.fft.fftfreq(m), lambda a: np.fft.fftshift(np.fft.ifft2(a))
    phase = sum(rng.uniform(-0.7, 0.7) * (np.hypot(*(np.mgrid[:size, :size] - rng.uniform(10, size - 10, (2, 1, 1)))) < rng.uniform(4, 12))
                for _ in range(14))
    squared = k[:, None]**2 + k**2
    probes = [centre((squared < 0.2**2) * np.exp(1j * defocus * squared)) for defocus in (60, 50)]  # the true one, and a guess
    grid = np.arange(3, size - m - 2, step)
    true = np.array([(row, column) for row in grid for column in grid]) + rng.uniform(-2, 2, (len(grid)**2, 2))
    shift = np.exp(2j * np.pi * (true % 1 @ np.stack(np.meshgrid(k, k, indexing="ij")).reshape(2, -1))).conj().reshape(-1, m, m)
    windows = np.array([np.exp(1j * phase)[a:a + m, b:b + m] for a, b in true.astype(int)])
    waves = np.fft.fft2(windows * np.fft.ifft2(np.fft.fft2(probes[0]) * shift))
    patterns = rng.poisson(abs(waves)**2 * counts / (abs(waves)**2).sum(axis=(1, 2), keepdims=True)).astype(np.float32)
    return patterns, true + rng.normal(scale=0.7, size=true.shape), true, probes[1].astype(np.complex64), phase


def main(figure=None):
    """Returns the losses without and with positions that are refined, and the error of positions before and after."""
    patterns, written, true, probe, phase = load()

    def reconstruct(**options):
        loss = bracewell.PtychographyLoss(patterns, written, phase.shape, len(probe), scale="none", refine_positions=bool(options))
        schedule = bracewell.PtychographySchedule.of(loss.count, passes=24)
        solver = bracewell.PtychographySolver(loss, probe, schedule=schedule, **options)
        return solver, solver.run()

    plain, losses = reconstruct()
    print(f"{len(patterns)} patterns, loss {losses[0]:.3f} -> {losses[-1]:.3f}; phase {plain.phase.min():.2f} to {plain.phase.max():.2f}")  # look
    refined, better = reconstruct(position_rate=0.1)  # refine
    errors = [np.median(np.hypot(*(p - true - (p - true).mean(axis=0)).T)) for p in (written, written + refined.displacements)]
    print(f"positions refined: loss {better[-1]:.3f}, error of positions {errors[0]:.2f} -> {errors[1]:.2f} pixels")
    if figure:
        import matplotlib.pyplot as plt

        plt.imsave(figure, np.hstack([phase, *(s.phase - np.median(s.phase) for s in (plain, refined))]), cmap="gray", vmin=-1, vmax=1)
    return losses[-1], better[-1], *errors


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["day_ptychography.png"])
