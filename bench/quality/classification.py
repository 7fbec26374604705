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
from simulator import Contrast, Molecule, chain, even_views, fsc, read_mrc, rotation_about, soft_sphere, write_mrc

DIAMETER = 110  # Angstrom


SHARES = {2: (0.6, 0.4), 4: (0.4, 0.3, 0.2, 0.1)}  # of conformations


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


def simulate(folder, count, box, noise, conformation_count):
    random = generator(11)
    molecules, pixel = conformations(random, conformation_count), 160 / box
    classes = np.searchsorted(np.cumsum(SHARES[conformation_count])[:-1], random.uniform(size=count), side="right")
    angles, origins = even_views(random, count), random.uniform(-2, 2, (count, 2))
    mean, half = random.uniform(10000, 20000, count), random.uniform(0, 400, count) / 2
    defoci = np.c_[mean + half, mean - half, random.uniform(0, 180, count)]
    images = np.stack([molecules[classes[i]].image(box, pixel, angles[i], origins[i], Contrast(*defoci[i]))
                       for i in range(count)])
    deviation = np.sqrt(images.var(axis=(1, 2)).mean() / noise)
    images = (images + random.normal(0, deviation, images.shape)) / deviation
    folder.mkdir(parents=True, exist_ok=True)
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
    (folder / "set.json").write_text(json.dumps({"box": box, "pixel": pixel, "classes": classes.tolist()}))


def judge(folder, about, star, maps):
    """Share of particles in the right class, mean FSC and curves of classes, whichever class has which number."""
    names = [name.split("@")[0] for name in read_star(star)["rlnImageName"]]
    found = np.array([int(c) - 1 for c in read_star(star)["rlnClassNumber"]])
    truth = np.array(about["classes"])[[int(name) - 1 for name in names]]
    mask = soft_sphere(about["box"], DIAMETER / 2 / about["pixel"])
    curves = {}
    best = max(itertools.permutations(range(len(maps))),
               key=lambda order: sum((found == k).astype(int) @ (truth == c) for c, k in enumerate(order)))
    right = sum(((found == k) & (truth == c)).sum() for c, k in enumerate(best)) / len(found)
    for c, k in enumerate(best):
        curves[c] = fsc(read_mrc(maps[k]), read_mrc(folder / f"truth{c + 1}.mrc"), mask)
    return right, curves


def ours(folder, programs, classes, name, options):
    cost = run([programs / "bracewell-classify", "--star", "particles.star", "--reference", "mean.mrc", "--classes",
                classes, "--out", f"{name}.star", *options], folder)
    return folder / f"{name}.star", [folder / f"{name}_class{k + 1}.mrc" for k in range(classes)], cost


def relion(folder, classes, iterations, sampling, threads, limit):
    """3D classification as its window has it, for particles without poses."""
    order, reach, step = sampling
    name = f"relion_{order:g}_{reach:g}_{step:g}"
    (folder / name).mkdir(exist_ok=True)
    done = folder / name / f"done{iterations}"
    if not done.exists():
        done.write_text(json.dumps(run(
            ["relion_refine", "--o", f"{name}/run", "--i", "particles.star", "--ref", "mean.mrc", "--ini_high", 40, "--ctf",
             "--K", classes, "--iter", iterations, "--tau2_fudge", 4, "--particle_diameter", DIAMETER, "--flatten_solvent",
             "--zero_mask", "--oversampling", 1, "--healpix_order", int(order), "--offset_range", reach, "--offset_step",
             step, "--sym", "C1", "--norm", "--scale", "--pad", 2, "--dont_check_norm",
             "--dont_combine_weights_via_disc", "--preread_images", "--pool", max(1, threads), "--j", threads,
             "--random_seed", 1], folder, limit)))
    last = max(int(path.name[6:9]) for path in (folder / name).glob("run_it*_model.star"))
    print(f"RELION: {last} iterations", file=sys.stderr)
    stem = f"{name}/run_it{last:03d}"
    maps = [folder / f"{stem}_class{k + 1:03d}.mrc" for k in range(classes)]
    return folder / f"{stem}_data.star", maps, json.loads(done.read_text())


HEADER = ["| program | right class (%) | class | mean FSC | 4 | 8 | 12 | 16 | 20 | processor s | MB |", "|" + "---|" * 11]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bracewell", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for sets, results and the table")
    parser.add_argument("--classes", type=int, default=2, choices=sorted(SHARES), help="conformations, and classes")
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
    folder = arguments.out.resolve() / f"classify_{arguments.classes}_{arguments.particles}_{arguments.box}_{arguments.noise}"
    if not (folder / "set.json").exists():
        print("simulating", file=sys.stderr, flush=True)
        simulate(folder, arguments.particles, arguments.box, arguments.noise, arguments.classes)
    about, programs, classes = json.loads((folder / "set.json").read_text()), arguments.bracewell.resolve(), arguments.classes
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    results = {"bracewell": lambda: ours(folder, programs, classes, "bracewell", [])}
    if arguments.sampling:
        order, reach, step = arguments.sampling
        own = ["--healpix-order", int(order), "--offset-range", reach, "--offset-step", step]
        results["bracewell, this sampling"] = lambda: ours(folder, programs, classes, "sampled", own)
    for variant in arguments.variant:
        label, options = variant.split("=", 1)
        results[label] = lambda label=label, options=options: ours(folder, programs, classes, label, options.split())
    if with_relion:
        results["RELION"] = lambda: relion(folder, classes, arguments.iterations, arguments.sampling or (2, 5, 2),
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
