#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How good maps are beside RELION's: Fourier shell correlation with the truth, shell by shell.

    bench/quality/quality.py --bracewell build/openmp/examples --out FOLDER

makes nine sets of particles (sets.py), reconstructs them with bracewell-reconstruct as it is and with relion_reconstruct
(plain, and regularised by the correlation of its half maps, --fsc), compares all with the truth within the same soft
sphere, and writes FOLDER/quality.md, FOLDER/shells.txt and FOLDER/results.json. Without RELION it says so and compares ours
alone. With --realisations each set is made anew with other molecules, views and noise: a shell's correlation is the mean over
them, and so is its distance to the better of RELION's modes, with a standard error. --from gathers runs that had a part each.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import numpy as np

import sets
from sets import MORE, SETS, write_star
from simulator import fsc, read_mrc, soft_sphere

MARGIN = 0.005  # of a shell


def made(out, name, realisation):
    """The folder of a set, which is made where it is missing; and what is known about it."""
    folder = out / (f"{name}_{realisation}" if realisation else name)
    if not (folder / "set.json").exists():
        print(f"{folder.name}: simulating", file=sys.stderr, flush=True)
        sets.realisation = realisation
        {**SETS, **MORE}[name](folder)
    return folder, json.loads((folder / "set.json").read_text())


def run(command, folder):
    """Runs a program, with processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (folder / "log.txt").open("a").write(f"$ {' '.join(map(str, command))}\n{result.stdout}{result.stderr}\n")
    if result.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def ours(folder, about, program, name, options):
    symmetry = ["--symmetry", about["symmetry"]] if "symmetry" in about else []
    if "helix" in about and b"--helical-rise" in subprocess.run([program, "--help"], capture_output=True).stdout:
        twist, rise, _ = about["helix"]
        symmetry = ["--helical-twist", twist, "--helical-rise", rise]
    seconds = run([program, "--star", "particles.star", "--out", f"{name}.mrc", *symmetry, *options], folder)
    return read_mrc(folder / f"{name}.mrc"), seconds


def relion(folder, about, mask, regularised):
    """relion_reconstruct: plain, or with the correlation of its own half maps under the mask."""
    base = ["relion_reconstruct", "--i", "particles.star", "--ctf", "--sym", about.get("symmetry", "C1").lower(), *about.get("relion", [])]
    if "helix" in about:
        twist, rise, units = about["helix"]
        base += ["--nr_helical_asu", units, "--helical_twist", twist, "--helical_rise", rise]
    if not regularised:
        seconds = run([*base, "--o", "relion.mrc"], folder)
        return read_mrc(folder / "relion.mrc"), seconds
    seconds = 0
    for half in (1, 2):
        seconds += run([*base, "--subset", half, "--o", f"relion_half{half}.mrc"], folder)
    halves = fsc(read_mrc(folder / "relion_half1.mrc"), read_mrc(folder / "relion_half2.mrc"), mask)
    write_fsc(folder / "relion_fsc.star", halves, about)
    seconds += run([*base, "--fsc", "relion_fsc.star", "--o", "relion_fsc.mrc"], folder)
    return read_mrc(folder / "relion_fsc.mrc"), seconds


def write_fsc(path, halves, about):
    box, pixel = about["box"], about["pixel"]
    shells = np.append(halves, 0.0)
    with open(path, "w") as file:
        file.write("\ndata_fsc\n\nloop_\n_rlnSpectralIndex #1\n_rlnResolution #2\n_rlnAngstromResolution #3\n"
                   "_rlnGoldStandardFsc #4\n")
        for shell, value in enumerate(shells):
            file.write(f"{shell} {shell / (box * pixel):.6f} {box * pixel / shell if shell else 999:.6f} "
                       f"{max(0.0, value) if shell else 1:.6f}\n")


def compared(name, curves):
    """Lines of the table. Curves are of [realisations, shells]: means over shells, and where the first of them is further
    below the better of RELION's modes than the margin. A shell is surely below if that is twice its standard error, too."""
    lines = []
    theirs = [c for c in curves if c.startswith("RELION")]
    for label, (all_curves, seconds) in curves.items():
        curve = all_curves.mean(axis=0)
        cells = [f"{curve[1:].mean():.4f}", *(f"{curve[s]:.3f}" for s in (4, 8, 12, 16, 20, 24, 28)), f"{seconds:.1f}"]
        verdict = ["", "", ""]
        if theirs and label not in theirs:
            better = max(theirs, key=lambda t: curves[t][0][:, 1:].mean())
            gaps = np.array([all_curves - curves[t][0] for t in theirs])[:, :, 1:]
            nearest = gaps.mean(axis=1).argmin(axis=0), np.arange(gaps.shape[2])
            gap = gaps.mean(axis=1)[nearest]
            error = gaps.std(axis=1, ddof=1)[nearest] / len(all_curves) ** 0.5 if len(all_curves) > 1 else 0 * gap
            below, worst = gap < -MARGIN, int(gap.argmin())
            verdict = [f"{curve[1:].mean() - curves[better][0][:, 1:].mean():+.4f}",
                       f"{gap[worst]:+.4f} ± {error[worst]:.4f} at {1 + worst}" if error.any() else
                       f"{gap[worst]:+.4f} at {1 + worst}",
                       ", ".join(f"{1 + s}" + ("" if gap[s] + 2 * error[s] < -MARGIN else "?") for s in np.flatnonzero(below))
                       or "none"]
        lines.append("| " + " | ".join([name, label, *cells, *verdict]) + " |")
    return lines


PAGE = ["| set | ours | RELION | RELION `--fsc` | over the better | worst shell | there | its error | shells below |",
        "|" + "---|" * 9]


def row_of_page(name, lines):
    """What docs/quality.md has of a set: from the lines of the table."""
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    cells = {row[1]: row for row in cells}
    own, plain, better = (cells[c] for c in ("bracewell", "RELION", "RELION --fsc"))
    there, error, shell = re.fullmatch(r"(\S+)(?: ± (\S+))? at (\d+)", own[-2]).groups(default="")
    return "| " + " | ".join([name, own[2], plain[2], better[2], own[-3], shell, there, error, own[-1]]) + " |"


def write_page(path, rows):
    """Replaces the table of the page's section "Maps"."""
    head, section = path.read_text().split("## Maps\n")
    begin = section.index("| set |")
    end = section.index("\n\n", begin)
    path.write_text(head + "## Maps\n" + section[:begin] + "\n".join(PAGE + rows) + section[end:])


HEADER = ["| set | program | mean | 4 | 8 | 12 | 16 | 20 | 24 | 28 | processor s | mean over the better of RELION's | worst shell | shells below |",
          "|" + "---|" * 14]


def measured(arguments, name, with_relion):
    """What a set's maps correlate with the truth in every realisation, and seconds: {label: [(curve, seconds), ...]}."""
    program = (arguments.bracewell / "bracewell-reconstruct").resolve()
    found = {}
    for realisation in range(arguments.first, arguments.first + arguments.realisations):
        folder, about = made(arguments.out.resolve(), name, realisation)
        truth, mask = read_mrc(folder / "truth.mrc"), soft_sphere(about["box"], about["radius"])
        maps = {"bracewell": ours(folder, about, program, "bracewell", [])}
        for variant in arguments.variant:
            label, options = variant.split("=", 1)
            maps[label] = ours(folder, about, program, label, options.split())
        if with_relion:
            for regularised in (False, True):
                cached = folder / f"relion{'_fsc' * regularised}_result.npz"
                if not cached.exists():
                    volume, seconds = relion(folder, about, mask, regularised)
                    np.savez(cached, map=volume, seconds=seconds)
                stored = np.load(cached)
                maps["RELION --fsc" if regularised else "RELION"] = stored["map"], float(stored["seconds"])
        for label, (volume, seconds) in maps.items():
            found.setdefault(label, []).append((fsc(volume, truth, mask).tolist(), seconds))
    return found


def gathered(paths):
    """Results of several runs: {set: {label: [(curve, seconds), ...]}}."""
    results = {}
    for path in paths:
        for name, found in json.loads(path.read_text()).items():
            for label, runs in found.items():
                results.setdefault(name, {}).setdefault(label, []).extend(runs)
    return {name: results[name] for name in sorted(results, key=[*SETS, *results].index)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bracewell", type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for sets, maps and tables")
    parser.add_argument("--sets", default=",".join(SETS), help="some of " + ", ".join([*SETS, *MORE]))
    parser.add_argument("--realisations", type=int, default=1, help="of each set")
    parser.add_argument("--first", type=int, default=0, help="realisation")
    parser.add_argument("--from", dest="files", type=pathlib.Path, nargs="+", metavar="FILE",
                        help="tables of the results.json of other runs, of other sets and realisations; runs nothing")
    parser.add_argument("--page", type=pathlib.Path, help="docs/quality.md, whose table of maps is made anew")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=OPTIONS",
                        help="bracewell-reconstruct once more with options")
    arguments = parser.parse_args()
    if not arguments.bracewell and not arguments.files:
        parser.error("--bracewell or --from is required")
    with_relion = shutil.which("relion_reconstruct") is not None
    if not with_relion and not arguments.files:
        print("relion_reconstruct is not installed: ours alone is compared with the truth")
    results = gathered(arguments.files) if arguments.files else {}
    table, shells, page = list(HEADER), [], []
    print("\n".join(HEADER), flush=True)
    for name in results or arguments.sets.split(","):
        found = results.get(name) or measured(arguments, name, with_relion)
        results[name] = found
        curves = {label: (np.array([c for c, _ in runs]), np.mean([s for _, s in runs])) for label, runs in found.items()}
        lines = compared(name, curves)
        print("\n".join(lines), flush=True)
        table += lines
        if "RELION" in curves:
            page.append(row_of_page(name, lines))
        shells.append(f"# {name}: shell, " + ", ".join(curves))
        shells += [" ".join([str(s)] + [f"{c[:, s].mean():.4f}" for c, _ in curves.values()])
                   for s in range(1, next(iter(curves.values()))[0].shape[1])]
    if arguments.page and page:
        write_page(arguments.page, page)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.json").write_text(json.dumps(results))
    (arguments.out / "quality.md").write_text("\n".join(table) + "\n")
    (arguments.out / "shells.txt").write_text("\n".join(shells) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
