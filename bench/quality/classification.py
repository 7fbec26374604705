#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How well particles are sorted into classes beside RELION's 3D classification: share of particles in the right class, the
Fourier shell correlation of each class with its conformation, processor seconds and memory.

    bench/quality/classification.py --bracewell build/openmp/examples --out FOLDER

simulates a molecule in two conformations (a domain turned about a hinge, sixty and forty parts of a hundred; or in four, with
--classes 4) at a signal to noise of 0.05; classifies the particles with bracewell-classify as it is and with relion_refine (3.1.3 of Debian), both from
the mean of all conformations, low-passed, with no poses known; and writes FOLDER/classification.md. Without RELION it says
so. RELION takes hours of processor time with its usual sampling (order 2, offsets 5 by 2); --sampling gives both programs
another one, and --relion-seconds ends RELION after some time: its last whole iteration counts. What it has made is kept.

    bench/quality/classification.py --dimensions 2 --classes 3 --particles 600 --noise 0.1 --bracewell ... --out FOLDER

does the same for 2D classes: views of one molecule from three directions (3 to 5), turned and moved in the plane by chance.
Averages are turned and moved onto the true views before they are correlated.
"""
import argparse
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np

from sets import OPTICS, generator, read_star, write_star
import sets
from simulator import Contrast, Molecule, chain, euler, even_views, fsc, read_mrc, rotation_about, soft_sphere, write_mrc

DIAMETER = 110  # Angstrom


SHARES = {2: (0.6, 0.4), 4: (0.4, 0.3, 0.2, 0.1)}  # of conformations
VIEWS = {3: (0.45, 0.33, 0.22), 4: (0.4, 0.3, 0.2, 0.1), 5: (0.3, 0.25, 0.2, 0.15, 0.1)}  # of directions


def conformations(random, count):
    """A chain, and the same with the part beyond a hinge turned by 50 degrees, and by other angles."""
    one = chain(random, 1500, 45)
    hinge = np.array([12.0, 0, 0])
    domain = one.positions[:, 0] > hinge[0]
    molecules = []
    for angle in (0, 50, -50, 100)[:count]:
        moved = one.positions.copy()
        moved[domain] = (moved[domain] - hinge) @ rotation_about((0.2, 1, 0.3), angle).T + hinge
        molecules.append(Molecule(moved, one.weights, one.width))
    return molecules


def run(command, folder, limit=None):
    """Runs a program, for some seconds at most, with its processor seconds and the most megabytes that it held."""
    with open(folder / "log.txt", "a") as log:
        log.write(f"$ {' '.join(map(str, command))}\n")
        log.flush()
        process = subprocess.Popen([str(c) for c in command], cwd=folder, stdout=log, stderr=log)
        timer = threading.Timer(limit or 0, process.terminate)
        if limit:
            timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
    if status and not (limit and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM):
        raise SystemExit(f"{command[0]}: failed, see {folder / 'log.txt'}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def directions(random, count):
    """Angles of views that are 40 degrees or more from each other, and from what is seen from behind."""
    found = []
    while len(found) < count:
        one = even_views(random, 1)[0]
        if all(abs(euler(*one)[2] @ euler(*other)[2]) < np.cos(np.deg2rad(40)) for other in found):
            found.append(one)
    return np.array(found)


def simulate(folder, count, box, noise, kinds, dimensions):
    random, pixel = generator(11 if dimensions == 3 else 12), 160 / box
    shares = (SHARES if dimensions == 3 else VIEWS)[kinds]
    molecules = conformations(random, kinds) if dimensions == 3 else [chain(random, 1500, 45)] * kinds
    classes = np.searchsorted(np.cumsum(shares)[:-1], random.uniform(size=count), side="right")
    angles, origins = even_views(random, count), random.uniform(-2, 2, (count, 2))
    views = directions(random, kinds) if dimensions == 2 else None
    if dimensions == 2:
        angles[:, :2] = views[classes, :2]
    mean, half = random.uniform(10000, 20000, count), random.uniform(0, 400, count) / 2
    defoci = np.c_[mean + half, mean - half, random.uniform(0, 180, count)]
    images = np.stack([molecules[classes[i]].image(box, pixel, angles[i], origins[i], Contrast(*defoci[i]))
                       for i in range(count)])
    deviation = np.sqrt(images.var(axis=(1, 2)).mean() / noise)
    images = (images + random.normal(0, deviation, images.shape)) / deviation
    folder.mkdir(parents=True, exist_ok=True)
    if dimensions == 2:
        write_mrc(folder / "truth.mrcs", np.stack([molecules[0].image(box, pixel, view, (0, 0)) for view in views]), pixel, stack=True)
    else:
        maps = [molecule.map(box, pixel) for molecule in molecules]
        for i, one in enumerate(maps):
            write_mrc(folder / f"truth{i + 1}.mrc", one, pixel)
        write_mrc(folder / "mean.mrc", sum(maps) / len(maps), pixel)
    write_mrc(folder / "particles.mrcs", images, pixel, stack=True)
    columns = {"rlnImageName": [f"{i + 1:06d}@particles.mrcs" for i in range(count)],
               "rlnMicrographName": ["micrograph%d.mrc" % (i // 50) for i in range(count)]}
    for name, values in zip(("DefocusU", "DefocusV", "DefocusAngle"), defoci.T):
        columns["rln" + name] = [float(v) for v in values]
    columns.update(rlnPhaseShift=[0.0] * count, rlnOpticsGroup=[1] * count)
    write_star(folder / "particles.star", dict(OPTICS, rlnImagePixelSize=pixel, rlnImageSize=box), columns)
    (folder / "set.json").write_text(json.dumps({"box": box, "pixel": pixel, "classes": classes.tolist(), "dimensions": dimensions}))


def disc(n, radius, edge=5):
    return soft_sphere(n, radius, edge)[n // 2]


def turned(image, degrees, shift):
    """An image turned about its centre and moved by pixels (row, column), by cubic interpolation (Keys)."""
    n = len(image)
    grid = np.arange(n) - n // 2
    y, x = np.meshgrid(grid - shift[0], grid - shift[1], indexing="ij")
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    row, column = c * y - s * x + n // 2, s * y + c * x + n // 2
    r0, c0 = np.floor(row).astype(int), np.floor(column).astype(int)

    def weight(t):
        t = abs(t)
        return np.where(t <= 1, (1.5 * t - 2.5) * t * t + 1, np.where(t < 2, ((-0.5 * t + 2.5) * t - 4) * t + 2, 0))

    padded = np.pad(image, n)  # zeros around
    return sum(weight(row - r0 - i) * weight(column - c0 - j) * padded[np.clip(r0 + i + n, 0, 3 * n - 1), np.clip(c0 + j + n, 0, 3 * n - 1)]
               for i in range(-1, 3) for j in range(-1, 3))


def ring_correlation(one, other, mask):
    """Fourier ring correlation of two images, and their correlation at all."""
    n = len(one)
    k = np.fft.fftfreq(n, 1 / n)
    kx = np.arange(n // 2 + 1)
    ring = np.rint(np.hypot(k[:, None], kx)).astype(int).ravel()
    times = np.broadcast_to(np.where((kx == 0) | (2 * kx == n), 1.0, 2.0), (n, len(kx))).ravel()
    a, b = (np.fft.rfft2(m * mask).ravel() for m in (one, other))
    total = lambda x: np.bincount(ring, times * x, minlength=n)[:n // 2]
    return total((a * b.conj()).real) / np.sqrt(total(abs(a) ** 2) * total(abs(b) ** 2) + 1e-300)


def aligned(average, truth):
    """An average turned and moved onto a true view: all angles and whole pixels, then finer about the best."""
    mask = disc(len(truth), 0.45 * len(truth))
    spectrum = np.conj(np.fft.rfft2(truth * mask))

    def best_shift(degrees):
        product = np.fft.irfft2(np.fft.rfft2(turned(average * mask, degrees, (0, 0))) * spectrum, s=truth.shape)
        place = np.unravel_index(product.argmax(), product.shape)
        return product.max(), degrees, [-((p + len(truth) // 2) % len(truth) - len(truth) // 2) for p in place]

    _, degrees, shift = max((best_shift(d) for d in range(0, 360, 4)), key=lambda one: one[0])
    at, step = np.array([degrees, *shift], float), np.array([2, 0.5, 0.5])
    value = lambda p: (turned(average * mask, p[0], p[1:]) * truth * mask).sum()
    for _ in range(5):
        for axis in (0, 1, 2, 0, 1, 2):
            tries = [at + sign * step * (np.arange(3) == axis) for sign in (-1, 0, 1)]
            at = max(tries, key=value)
        step /= 2
    return turned(average, at[0], at[1:])


def judge(folder, about, star, maps):
    """Share of particles in the right class, mean FSC and curves of classes, whichever class has which number."""
    names = [name.split("@")[0] for name in read_star(star)["rlnImageName"]]
    found = np.array([int(c) - 1 for c in read_star(star)["rlnClassNumber"]])
    truth = np.array(about["classes"])[[int(name) - 1 for name in names]]
    mask = soft_sphere(about["box"], DIAMETER / 2 / about["pixel"])
    curves = {}
    plane = about.get("dimensions", 3) == 2
    if plane:
        averages, views = read_mrc(maps[0]), read_mrc(folder / "truth.mrcs")
        maps = list(averages)
    best = max(itertools.permutations(range(len(maps))),
               key=lambda order: sum((found == k).astype(int) @ (truth == c) for c, k in enumerate(order)))
    right = sum(((found == k) & (truth == c)).sum() for c, k in enumerate(best)) / len(found)
    for c, k in enumerate(best):
        if plane:
            curves[c] = ring_correlation(aligned(averages[k], views[c]), views[c], disc(about["box"], DIAMETER / 2 / about["pixel"]))
            continue
        curves[c] = fsc(read_mrc(maps[k]), read_mrc(folder / f"truth{c + 1}.mrc"), mask)
    return right, curves


def ours(folder, programs, about, classes, name, options):
    plane = about.get("dimensions", 3) == 2
    kind = ["--dimensions", 2] if plane else ["--reference", "mean.mrc"]
    cost = run([programs / "bracewell-classify", "--star", "particles.star", "--classes", classes, "--out", f"{name}.star",
                *kind, *options], folder)
    maps = [folder / f"{name}_classes.mrcs"] if plane else [folder / f"{name}_class{k + 1}.mrc" for k in range(classes)]
    return folder / f"{name}.star", maps, cost


def relion(folder, about, classes, iterations, sampling, threads, limit):
    """2D or 3D classification as its window has it, for particles without poses."""
    reach, step = sampling[1:]
    plane = about.get("dimensions", 3) == 2
    if plane:
        name = f"relion_{reach:g}_{step:g}"
        own = ["--tau2_fudge", 2, "--psi_step", 12, "--center_classes"]
    else:
        name = f"relion_{sampling[0]:g}_{reach:g}_{step:g}"
        own = ["--ref", "mean.mrc", "--ini_high", 40, "--tau2_fudge", 4, "--healpix_order", int(sampling[0]), "--sym", "C1"]
    (folder / name).mkdir(exist_ok=True)
    done = folder / name / f"done{iterations}"
    if not done.exists():
        done.write_text(json.dumps(run(
            ["relion_refine", "--o", f"{name}/run", "--i", "particles.star", "--ctf", "--K", classes, "--iter", iterations,
             "--particle_diameter", DIAMETER, "--flatten_solvent", "--zero_mask", "--oversampling", 1, "--offset_range", reach,
             "--offset_step", step, "--norm", "--scale", "--pad", 2, "--dont_check_norm", "--dont_combine_weights_via_disc",
             "--preread_images", "--pool", max(1, threads), "--j", threads, "--random_seed", 1, *own], folder, limit)))
    last = max(int(path.name[6:9]) for path in (folder / name).glob("run_it*_model.star"))
    print(f"RELION: {last} iterations", file=sys.stderr)
    stem = f"{name}/run_it{last:03d}"
    maps = [folder / f"{stem}_classes.mrcs"] if plane else [folder / f"{stem}_class{k + 1:03d}.mrc" for k in range(classes)]
    return folder / f"{stem}_data.star", maps, json.loads(done.read_text())


HEADER = ["| program | right class (%) | class | mean FSC | 4 | 8 | 12 | 16 | 20 | processor s | MB |", "|" + "---|" * 11]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bracewell", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for sets, results and the table")
    parser.add_argument("--dimensions", type=int, default=3, choices=(2, 3), help="of the classes")
    parser.add_argument("--classes", type=int, default=2, choices=sorted({*SHARES, *VIEWS}),
                        help="conformations (2 or 4) or directions (3 to 5), and classes")
    parser.add_argument("--realisation", type=int, default=0, help="another molecule, other views and noise")
    parser.add_argument("--particles", type=int, default=1000)
    parser.add_argument("--box", type=int, default=64)
    parser.add_argument("--noise", type=float, default=0.05, help="signal to noise")
    parser.add_argument("--iterations", type=int, default=25, help="of RELION")
    parser.add_argument("--sampling", type=float, nargs=3, metavar=("ORDER", "RANGE", "STEP"),
                        help="Healpix order, range and step of offsets in pixels, of both programs")
    parser.add_argument("--threads", type=int, default=2, help="of both programs")
    parser.add_argument("--relion-seconds", type=float, help="after which RELION is ended")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=OPTIONS",
                        help="bracewell-classify once more with options")
    parser.add_argument("--no-relion", action="store_true", help="ours alone")
    arguments = parser.parse_args()
    with_relion = not arguments.no_relion and bool(shutil.which("relion_refine"))
    if not with_relion:
        print("relion_refine is not installed, or not wanted: ours alone is compared with the truth")
    if arguments.classes not in (SHARES if arguments.dimensions == 3 else VIEWS):
        parser.error("--classes: expected 2 or 4 with three dimensions, 3 to 5 with two")
    sets.realisation = arguments.realisation
    kind = "classify" if arguments.dimensions == 3 else "plane"
    more = f"_{arguments.realisation}" if arguments.realisation else ""
    folder = arguments.out.resolve() / f"{kind}_{arguments.classes}_{arguments.particles}_{arguments.box}_{arguments.noise}{more}"
    if not (folder / "set.json").exists():
        print("simulating", file=sys.stderr, flush=True)
        simulate(folder, arguments.particles, arguments.box, arguments.noise, arguments.classes, arguments.dimensions)
    about, programs, classes = json.loads((folder / "set.json").read_text()), arguments.bracewell.resolve(), arguments.classes
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    results = {"bracewell": lambda: ours(folder, programs, about, classes, "bracewell", [])}
    if arguments.sampling:
        order, reach, step = arguments.sampling
        own = ["--offset-range", reach, "--offset-step", step]
        own += ["--healpix-order", int(order)] if arguments.dimensions == 3 else []
        results["bracewell, this sampling"] = lambda: ours(folder, programs, about, classes, "sampled", own)
    for variant in arguments.variant:
        label, options = variant.split("=", 1)
        results[label] = lambda label=label, options=options: ours(folder, programs, about, classes, label, options.split())
    if with_relion:
        results["RELION"] = lambda: relion(folder, about, classes, arguments.iterations, arguments.sampling or (2, 5, 2 if about.get("dimensions", 3) == 3 else 1),
                                           arguments.threads, arguments.relion_seconds)
    table = list(HEADER)
    print("\n".join(HEADER), flush=True)
    for label, make in results.items():
        star, maps, (seconds, megabytes) = make()
        right, curves = judge(folder, about, star, maps)
        for c, curve in curves.items():
            first = c == 0
            table.append(f"| {label if first else ''} | {f'{100 * right:.1f}' if first else ''} | {c + 1} | "
                         f"{curve[1:].mean():.4f} | "
                         + " | ".join(f"{curve[s]:.3f}" for s in (4, 8, 12, 16, 20)) +
                         f" | {f'{seconds:.0f} | {megabytes:.0f}' if first else ' | '} |")
            print(table[-1], flush=True)
    (arguments.out / "classification.md").write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
