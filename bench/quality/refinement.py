#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How good refined poses are beside RELION's auto-refine: errors of poses, and of the maps that follow from them.

    bench/quality/refinement.py --bracewell build/openmp/examples --out FOLDER

makes 1000 particles at a signal to noise of 0.05, without symmetry and with C4 (sets.py), whose poses are off by 4.6
degrees; refines them with bracewell-refine as it is and with relion_refine_mpi (local auto-refine, two followers, about
five minutes of processor time a set; its results are kept), and writes FOLDER/refinement.md. Without RELION it says so.
"""
import argparse
import os
import pathlib
import shutil
import sys

import numpy as np

import json
from quality import run
from sets import REFINED, poses_of, read_star
from simulator import SYMMETRIES, euler, fsc, read_mrc, soft_sphere


def errors(star, truth, about):
    """Angles, the least over the symmetry, in degrees, and distances in pixels."""
    order = {name: i for i, name in enumerate(truth["rlnImageName"])}
    found = read_star(star)
    rows = [order[name.split("@")[0] + "@particles.mrcs"] for name in found["rlnImageName"]]
    (angles, origins), (right, places) = poses_of(found), poses_of(truth)
    group = np.array(SYMMETRIES[about["symmetry"]]())
    degrees = []
    for a, row in zip(angles, rows):
        traces = np.einsum("ij,gjk,ik->g", euler(*a), group, euler(*right[row]))
        degrees.append(np.rad2deg(np.arccos(np.clip((traces.max() - 1) / 2, -1, 1))))
    return np.array(degrees), np.hypot(*(origins - places[rows]).T) / about["pixel"]


def relion(folder, about):
    """Local auto-refine from the poses of start.star and their map."""
    if not (folder / "relion" / "done").exists():
        (folder / "relion").mkdir(exist_ok=True)
        symmetry = about["symmetry"]
        seconds = run(["relion_reconstruct", "--i", "start.star", "--ctf", "--sym", symmetry, "--o", "relion/start.mrc"], folder)
        seconds += run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 3, "relion_refine_mpi", "--o", "relion/run",
                        "--auto_refine", "--split_random_halves", "--i", "start.star", "--ref", "relion/start.mrc",
                        "--ini_high", 20, "--ctf", "--ctf_corrected_ref", "--particle_diameter", 110, "--flatten_solvent",
                        "--zero_mask", "--oversampling", 1, "--healpix_order", 4, "--auto_local_healpix_order", 4,
                        "--sigma_ang", 3, "--offset_range", 3, "--offset_step", 2, "--sym", symmetry,
                        "--low_resol_join_halves", 40, "--norm", "--scale", "--pad", 2, "--dont_check_norm",
                        "--dont_combine_weights_via_disc", "--preread_images", "--random_seed", 1], folder)
        (folder / "relion" / "done").write_text(str(seconds))
    return folder / "relion/run_data.star", read_mrc(folder / "relion/run_class001.mrc"), float(
        (folder / "relion" / "done").read_text())


def ours(folder, about, programs, name, options):
    symmetry = ["--symmetry", about["symmetry"]] if about["symmetry"] != "C1" else []
    seconds = run([programs / "bracewell-refine", "--star", "start.star", "--out", f"{name}.star", *symmetry, *options], folder)
    return folder / f"{name}.star", reconstructed(folder, about, programs, name), seconds


def reconstructed(folder, about, programs, name):
    run([programs / "bracewell-reconstruct", "--star", f"{name}.star", "--out", f"{name}_map.mrc", "--symmetry",
         about["symmetry"]], folder)
    return read_mrc(folder / f"{name}_map.mrc")


HEADER = ["| set | poses | angle: median, 90 % (degrees) | distance: median, 90 % (pixels) | mean FSC | 8 | 12 | 16 | 20 | 24 | processor s |",
          "|" + "---|" * 11]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bracewell", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for sets, results and the table")
    parser.add_argument("--sets", default=",".join(REFINED), help="some of " + ", ".join(REFINED))
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=OPTIONS",
                        help="bracewell-refine once more with options")
    parser.add_argument("--no-relion", action="store_true", help="ours alone")
    arguments = parser.parse_args()
    programs = arguments.bracewell.resolve()
    with_relion = not arguments.no_relion and bool(shutil.which("relion_refine_mpi") and shutil.which("mpirun"))
    if not with_relion:
        print("relion_refine_mpi is not installed, or not wanted: ours alone is compared with the truth")
    table = list(HEADER)
    print("\n".join(HEADER), flush=True)
    for name in arguments.sets.split(","):
        folder = arguments.out.resolve() / f"refine_{name}"
        if not (folder / "start.star").exists():
            print(f"{name}: simulating", file=sys.stderr, flush=True)
            REFINED[name](folder)
        about, truth = json.loads((folder / "set.json").read_text()), read_star(folder / "particles.star")
        density, mask = read_mrc(folder / "truth.mrc"), soft_sphere(about["box"], about["radius"])
        results = {"true": (folder / "particles.star", reconstructed(folder, about, programs, "particles"), 0),
                   "start": (folder / "start.star", reconstructed(folder, about, programs, "start"), 0),
                   "bracewell": ours(folder, about, programs, "bracewell", [])}
        for variant in arguments.variant:
            label, options = variant.split("=", 1)
            results[label] = ours(folder, about, programs, label, options.split())
        if with_relion:
            results["RELION"] = relion(folder, about)
        for label, (star, volume, seconds) in results.items():
            degrees, pixels = errors(star, truth, about)
            curve = fsc(volume, density, mask)
            table.append(f"| {name} | {label} | {np.median(degrees):.2f}, {np.quantile(degrees, 0.9):.2f} | "
                         f"{np.median(pixels):.3f}, {np.quantile(pixels, 0.9):.3f} | {curve[1:].mean():.4f} | "
                         + " | ".join(f"{curve[s]:.3f}" for s in (8, 12, 16, 20, 24)) + f" | {seconds:.1f} |")
            print(table[-1], flush=True)
    (arguments.out / "refinement.md").write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
