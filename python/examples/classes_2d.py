# SPDX-License-Identifier: MIT
"""2D classes by likelihood: images against K class averages at all angles in the plane and shifts, with CTF, from single images.

Every image counts in all classes, angles and shifts by its posterior (`bracewell.Expectation` with images as references; Scheres et
al., J. Mol. Biol. 348 (2005) 139). Averages are regularised by the signal that all classes have in common, shell by shell. Each start
lets three single images for each class compete; of all classes the ones stay that explain the images best together. The images are
simulated views of a molecule from some directions, so that the share of images in the right class is known. For the same with files see
bracewell-classify --dimensions 2.

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
    """Averages [K, n, n] of the sums of two half sets, regularised by the signal that all classes have in common."""
    (d1, w1), (d2, w2) = halves
    shells = shells_of(size)

    def total(values):
        return np.bincount(shells.ravel(), values.reshape(len(d1), -1).sum(0))

    mean = total(w1 + w2) / np.bincount(shells.ravel()) / (2 * len(d1))
    g1, g2 = (1 / (w + mean[shells] + 1e-9) for w in (w1, w2))
    one, two = d1 * g1, d2 * g2
    signal = total((one * two.conj()).real) / (total(w1 * g1 * w2 * g2) + 1e-9)
    noise = (total(abs(one)**2 + abs(two)**2) - signal * total((w1 * g1)**2 + (w2 * g2)**2)) / (total(w1 * g1**2 + w2 * g2**2) + 1e-9)
    # Of a sample of weight one; the doubled box has four elements for each of the image's.
    prior = np.clip(np.maximum(noise, 0) / np.maximum(signal, 1e-9) / 4, 1e-3 * mean, 50 * mean)
    volume = np.fft.fftshift(np.fft.irfft2((d1 + d2) / (w1 + w2 + prior[shells] + 1e-9), s=(2 * size, 2 * size)), axes=(1, 2))
    at = slice(size - size // 2, 2 * size - size // 2)
    fall = np.sinc((np.arange(size) - size // 2) / (2 * size))**2
    return volume[:, at, at] / np.outer(fall, fall)


class Classification:
    """Images, and what they are compared at."""

    def __init__(self, spectra, ctf, angles=30, reach=2.0):
        count, self.size = spectra.shape[:2]
        self.spectra, self.ctf = spectra, ctf
        turns = np.arange(angles) * 2 * np.pi / angles
        self.matrices = np.stack([[np.cos(turns), -np.sin(turns)], [np.sin(turns), np.cos(turns)]]).transpose(2, 0, 1).astype(
            np.float32, order="C")
        steps = np.arange(-reach, reach + 1)
        shifts = np.stack(np.meshgrid(steps, steps, indexing="ij"), -1).reshape(-1, 2).astype(np.float32)
        self.half = [slice(0, count // 2), slice(count // 2, count)]
        self.first_noise = np.repeat((np.abs(spectra)**2).mean() / 2, self.size).astype(np.float32)[None]
        self.noise = self.first_noise
        self.steps = [bracewell.Expectation(spectra[part], self.noise, shifts, filters=ctf[part], best=0, oversampling=2,
                                            radius=self.size / 2 - 1) for part in self.half]

    def run(self, averages, sizes, wanted, temperature=1):
        reference = bracewell.PreparedReference(padded(averages), interpolation="linear")
        for part, step in zip(self.half, self.steps):
            step.set_images(self.spectra[part], np.float32(temperature) * self.noise, self.ctf[part])
            yield step.run(reference, self.matrices, class_priors=sizes.astype(np.float32), wanted=wanted)

    def evidence(self, average):
        """Log-evidence of every image in one class."""
        return np.concatenate([found.log_evidence for found in self.run(average[None], np.ones(1), ("log_evidence",))])

    def iterate(self, averages, sizes, temperature=1):
        """New averages, class shares of images, and log-evidence."""
        found = list(self.run(averages, sizes, ("log_evidence", "class_shares", "volumes", "shell_sums"), temperature))
        sums = sum(one.shell_sums.sum(0) for one in found) @ [1, -2, 1]
        of_shell = 2 * len(self.spectra) * self.steps[0].shell_sizes
        self.noise = self.noise.copy()
        self.noise[0, :len(sums)] = np.where(of_shell > 0, sums / np.maximum(of_shell, 1), self.noise[0, :len(sums)])
        shares = np.concatenate([one.class_shares for one in found])
        return maximise([(one.data, one.weight) for one in found], self.size), shares, sum(one.log_evidence.sum() for one in found)


def best_together(evidence, wanted):
    """The columns of evidence [N, M] that explain the rows best, each row by its best column: one by one, then by exchanges."""
    chosen = []

    def add():
        free = (k for k in range(evidence.shape[1]) if k not in chosen)
        chosen.append(max(free, key=lambda k: evidence[:, chosen + [k]].max(1).sum()))
        return evidence[:, chosen].max(1).sum()

    most = [add() for _ in range(wanted)][-1]
    unchanged = 0
    while unchanged < wanted:
        chosen.pop(0)
        now = add()
        unchanged = unchanged + 1 if now <= most else 0
        most = max(most, now)
    return chosen


def classify(spectra, ctf, classes, starts=3, iterations=12, seed=0):
    """Averages, class shares of images and log-evidence of every start."""
    rng = np.random.default_rng(seed)
    work = Classification(spectra, ctf)
    size, worst, results = spectra.shape[1], np.arange(len(spectra)), []
    for start in range(starts):
        work.noise = work.first_noise
        seeds = rng.choice(worst, 3 * classes, replace=False)
        single = np.fft.irfft2(spectra[seeds] * ctf[seeds] / (ctf[seeds]**2 + 1), s=(size, size))
        averages, sizes = np.fft.fftshift(single, axes=(1, 2)), np.full(len(seeds), 1 / len(seeds))
        for temperature in (1, 1.5, 1, 1):
            averages, shares, _ = work.iterate(averages, sizes, temperature)
            sizes = shares.mean(0)
        if results:
            averages = np.concatenate([averages, max(results, key=lambda one: one[2])[0]])
        evidence = np.stack([work.evidence(one) for one in averages], 1)
        chosen = best_together(evidence, classes)
        worst = np.argsort(evidence[:, chosen].max(1))[:len(spectra) // 2]  # are seeds of the next start
        averages, sizes = averages[chosen], np.full(classes, 1 / classes)
        for _ in range(iterations):
            averages, shares, total = work.iterate(averages, sizes)
            sizes = shares.mean(0)
        results.append((averages, shares, total))
    return results


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
    results = classify(spectra, ctf, directions, starts)
    for start, (_, shares, evidence) in enumerate(results):
        print(f"start {start + 1}: log-evidence {evidence:.0f}, {100 * right_share(shares, which)[0]:.1f} % in the right class")
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
