# SPDX-License-Identifier: MIT
"""2D classes by likelihood: images against K class averages at all angles in the plane and shifts, with CTF, from random splits.

Every image counts in all classes, angles and shifts by its posterior (`bracewell.Expectation` with images as references; Scheres et
al., J. Mol. Biol. 348 (2005) 139). Averages are regularised by the signal and noise of half sets, shell by shell. The images are
simulated views of a molecule from some directions, so that the share of images in the right class is known.

python classes_2d.py [IMAGES SIZE SNR PICTURE], by default 240 24 0.2 and no picture; a picture is a PGM file: a row of true views
and one of averages
"""

import sys

import numpy as np

import bracewell

PIXEL = 4  # Angstrom


def views(rng, count, size, directions, noise_to_signal):
    """Images [N, n, n] of Gaussian atoms, their spectra, CTFs, and the direction of each."""
    atoms = np.cumsum(rng.normal(size=(60, 3)), axis=0)
    atoms *= size / 5 / np.abs(atoms - atoms.mean(0)).max()
    frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    axes = [frame[list(pair)] for pair in ((0, 1), (1, 2), (2, 0))][:directions]
    which = rng.integers(directions, size=count)
    angles, moves = rng.uniform(0, 2 * np.pi, count), rng.uniform(-1.5, 1.5, (count, 2))
    grid = np.arange(size) - size // 2

    def draw(points):
        rows, columns = (np.exp(-(grid[:, None] - points[:, axis])**2 / (2 * 1.3**2)) for axis in (0, 1))
        return rows @ columns.T

    flat = [(atoms - atoms.mean(0)) @ axis.T for axis in axes]
    turns = np.stack([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]).transpose(2, 0, 1)
    clean = np.stack([draw(flat[d] @ turn.T + move) for d, turn, move in zip(which, turns, moves)])
    ctf = bracewell.evaluate_ctf(bracewell.CTFParameters(rng.uniform(8000, 16000, count), rng.uniform(8000, 16000, count), 30, 300,
                                                         2.7, 0.1), (size, size), PIXEL, np.zeros(1, np.float32))
    spectra = np.fft.rfft2(np.fft.ifftshift(clean, axes=(1, 2))) * ctf
    deviation = np.sqrt(np.fft.irfft2(spectra, s=(size, size)).var(axis=(1, 2)).mean() * noise_to_signal)
    spectra += np.fft.rfft2(rng.normal(0, deviation, clean.shape))
    return spectra.astype(np.complex64), ctf.astype(np.float32), which, np.stack([draw(points) for points in flat])


def padded(averages):
    """Spectra [K, 2n, n+1] of averages [K, n, n] in twice the box, within a soft disc."""
    size = averages.shape[-1]
    grid = np.arange(size) - size // 2
    distance = np.hypot(grid[:, None], grid)
    disc = np.clip((size / 2 - distance) / 3, 0, 1)
    fall = np.sinc(grid / (2 * size))**2  # of linear interpolation
    volume = np.zeros((len(averages), 2 * size, 2 * size))
    at = slice(size - size // 2, 2 * size - size // 2)
    volume[:, at, at] = averages * disc / np.outer(fall, fall)
    return np.fft.rfft2(np.fft.ifftshift(volume, axes=(1, 2))).astype(np.complex64)


def shells_of(size):
    """The shell of every frequency of the doubled box, in steps of the image's."""
    rows = np.fft.fftfreq(2 * size) * 2 * size
    return np.minimum(np.rint(np.hypot(rows[:, None], np.arange(size + 1)) / 2).astype(int), size // 2)


def maximise(halves, size):
    """Averages [K, n, n] of the sums of two half sets, regularised by what these have in common."""
    (first, w1), (second, w2) = halves
    shells = shells_of(size)
    result = []
    for d1, d2, a, b in zip(first, second, w1, w2):
        mean = np.bincount(shells.ravel(), (a + b).ravel()) / np.bincount(shells.ravel())
        one, two = d1 / (a + mean[shells] / 10 + 1e-9), d2 / (b + mean[shells] / 10 + 1e-9)
        cross, p1, p2 = (np.bincount(shells.ravel(), x.ravel()) for x in ((one * two.conj()).real, abs(one)**2, abs(two)**2))
        correlation = np.clip(cross / np.sqrt(p1 * p2 + 1e-30), 0.01, 0.999)
        prior = mean * (1 - correlation) / (2 * correlation)  # over signal, both halves
        volume = np.fft.fftshift(np.fft.irfft2((d1 + d2) / (a + b + prior[shells] + 1e-9), s=(2 * size, 2 * size)))
        at = slice(size - size // 2, 2 * size - size // 2)
        fall = np.sinc((np.arange(size) - size // 2) / (2 * size))**2
        result.append(volume[at, at] / np.outer(fall, fall))
    return np.stack(result)


def classify(spectra, ctf, classes, seed, iterations=20, angles=30, reach=2.0):
    """Averages, class shares of images and log-evidence, from a random split."""
    rng = np.random.default_rng(seed)
    count, size = spectra.shape[:2]
    turns = np.arange(angles) * 2 * np.pi / angles
    matrices = np.stack([[np.cos(turns), -np.sin(turns)], [np.sin(turns), np.cos(turns)]]).transpose(2, 0, 1).astype(np.float32, order="C")
    steps = np.arange(-reach, reach + 1)
    shifts = np.stack(np.meshgrid(steps, steps, indexing="ij"), -1).reshape(-1, 2).astype(np.float32)
    half = [slice(0, count // 2), slice(count // 2, count)]
    noise = np.repeat((np.abs(spectra)**2).mean() / 2, size).astype(np.float32)[None]
    sizes = np.full(classes, 1 / classes, np.float32)
    # Random classes at random angles: nearly round averages.
    split, angle = rng.integers(classes, size=count), rng.integers(angles, size=count)
    halves = []
    for part in half:
        sums = [bracewell.backproject((ctf * spectra)[part][split[part] == k][None], matrices[angle[part][split[part] == k]][None],
                                      weights=(ctf**2)[part][split[part] == k][None], shape=(2 * size, 2 * size),
                                      oversampling=2, interpolation="linear") for k in range(classes)]
        halves.append(tuple(np.concatenate(arrays) for arrays in zip(*sums)))
    steps = [bracewell.Expectation(spectra[part], noise, shifts, filters=ctf[part], best=0, oversampling=2, radius=size / 2 - 1)
             for part in half]
    averages = maximise(halves, size)
    for iteration in range(iterations):
        temperature = (3, 2, 1.5)[iteration] if iteration < 3 else 1
        reference = bracewell.PreparedReference(padded(averages), interpolation="linear")
        halves, shares, sums, evidence = [], np.zeros((count, classes)), 0, 0.0
        for part, step in zip(half, steps):
            step.set_images(spectra[part], np.float32(temperature) * noise, ctf[part])
            found = step.run(reference, matrices, class_priors=sizes,
                             wanted=("log_evidence", "class_shares", "volumes", "shell_sums"))
            halves.append((found.data, found.weight))
            shares[part] = found.class_shares
            sums = sums + found.shell_sums.sum(0) @ [1, -2, 1]
            evidence += found.log_evidence.sum()
        of_shell = 2 * count * steps[0].shell_sizes
        noise[0, :len(sums)] = np.where(of_shell > 0, sums / np.maximum(of_shell, 1), noise[0, :len(sums)])
        sizes = shares.mean(0).astype(np.float32)
        averages = maximise(halves, size)
    return averages, shares, evidence


def right_share(shares, which):
    """Of images in a class that most others of their direction are in, one class for each direction."""
    table = np.zeros((shares.shape[1], which.max() + 1), int)
    np.add.at(table, (shares.argmax(1), which), 1)
    right, order = 0, []
    for _ in range(min(table.shape)):
        k, d = np.unravel_index(table.argmax(), table.shape)
        order.append((d, k))
        right += table[k, d]
        table[k], table[:, d] = -1, -1
    return right / len(which), [k for _, k in sorted(order)]


def main(count=240, size=24, snr=0.2, picture=None, directions=3, starts=3):
    spectra, ctf, which, truth = views(np.random.default_rng(5), count, size, directions, 1 / snr)
    results = [classify(spectra, ctf, directions, seed) for seed in range(starts)]
    for seed, (_, shares, evidence) in enumerate(results):
        print(f"start {seed + 1}: log-evidence {evidence:.0f}, {100 * right_share(shares, which)[0]:.1f} % in the right class")
    averages, shares, _ = max(results, key=lambda one: one[2])
    right, order = right_share(shares, which)
    print(f"{count} images of {size} pixels, signal over noise {snr:g}: {100 * right:.1f} % in the right class")
    if picture:
        rows = np.concatenate([np.concatenate([(one - one.min()) / np.ptp(one) for one in row], 1) for row in (truth, averages[order])])
        with open(picture, "wb") as file:
            file.write(b"P5 %d %d 255\n" % rows.shape[::-1] + (255 * rows).astype(np.uint8).tobytes())
    return right


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*(kind(value) for kind, value in zip((int, int, float, str), given)))
