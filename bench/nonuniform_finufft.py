#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Non-uniform FFTs on hosts beside FINUFFT: nonuniform_finufft.py [--quick] [--part I/N] NAME=PROGRAM ...

--part takes every Nth cell from the Ith (0 is the first) on, for several processes on idle processors. PROGRAM is nonuniform_cells, compiled with the flags that NAME says; {dim} and {real} in it become the cell's dimension and
precision, for programs that were compiled for one of each. FINUFFT comes from PyPI (pip install finufft). Both take as many
threads as OMP_NUM_THREADS says, by default one. Times are processor time, the least of many runs, ours and theirs in turn.
Prints a table: FINUFFT's milliseconds for a transform, and for new points with a transform, then how many times as fast each
program is at both, and at a new plan with its points; at the end the geometric means and what lies below 1.
"""

import os
import subprocess
import sys
import time

import finufft
import numpy as np

cells = []
for real, tolerances in (("double", (3, 6, 9, 12)), ("float", (3, 5))):
    for dim, sizes in ((1, (1000, 1000000)), (2, (32, 316)), (3, (10, 46))):
        for n in sizes:
            for kind in (1, 2, 3):
                for digits in tolerances:
                    cells.append((kind, dim, n**dim if dim < 3 or n == 10 else 100000, n, digits, 1, real))
cells += [(kind, 3, 1000000, 100, digits, 1, "double") for kind in (1, 2) for digits in (6, 12)]
cells += [(kind, 2, 100000, 316, 6, 8, real) for kind in (1, 2) for real in ("double", "float")]
cells += [(kind, 3, 100000, 46, 6, 8, "double") for kind in (1, 2)]
quick = [cell for cell in cells if cell[4] in (5, 6)]


def milliseconds():
    return 1e-6 * time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID)


def least(run):
    best, total, runs = 1e300, 0, 0
    while runs < 3 or (total < 500 and runs < 2000):
        begin = milliseconds()
        run()
        taken = milliseconds() - begin
        best, total, runs = min(best, taken), total + taken, runs + 1
    return best


def theirs(cell):
    """Transform, new points, and plan with points."""
    kind, dim, points, n, digits, transforms, precision = cell
    real, number = (np.float64, np.complex128) if precision == "double" else (np.float32, np.complex64)
    random = np.random.default_rng(1)
    at = [random.uniform(-np.pi, np.pi, points).astype(real) for _ in range(dim)]
    to = [random.uniform(-n / 2, n / 2, points).astype(real) for _ in range(dim)] if kind == 3 else []
    given = at + [None] * (3 - dim) + to if kind == 3 else at
    many = (transforms,) if transforms > 1 else ()

    def values(shape):
        return (random.uniform(-1, 1, shape) + 1j * random.uniform(-1, 1, shape)).astype(number)

    samples, images = many + (points,), many + (n,) * dim
    source = values(images if kind == 2 else samples)
    result = np.empty(images if kind == 1 else samples, number)

    def plan():
        made = finufft.Plan(kind, dim if kind == 3 else (n,) * dim, transforms, 10.0**-digits, -1 if kind == 2 else 1,
                            nthreads=int(os.environ["OMP_NUM_THREADS"]), dtype=np.dtype(number).name)
        made.setpts(*given)
        return made

    made = plan()
    return least(lambda: made.execute(source, out=result)), least(lambda: made.setpts(*given)), least(plan)


def ours(program, cell):
    command = program.format(dim=cell[1], real=cell[6])
    out = subprocess.run([command, ":".join(map(str, cell))], check=True, capture_output=True, text=True).stdout
    row = out.split()
    error = float(row[5])
    if error > 10.0 ** -cell[4] and error > (1e-9 if cell[6] == "double" else 3e-5):
        print(f"beyond the tolerance: {out}", file=sys.stderr)
    return [float(number) for number in row[1:4]]


def main():
    arguments = sys.argv[1:]
    rows = quick if "--quick" in arguments else cells
    if "--part" in arguments:
        at = arguments.index("--part")
        part, parts = map(int, arguments[at + 1].split("/"))
        rows = rows[part::parts]
        del arguments[at:at + 2]
    programs = [argument.split("=", 1) for argument in arguments if argument != "--quick"]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_PROC_BIND", "false")
    titles = ["type, points, pixels along an axis, tolerance", "FINUFFT", "with new points"]
    titles += [f"{name}{what}" for name, _ in programs for what in (" at a transform", ", new points", ", new plan")]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    ratios = {name: [] for name, _ in programs}
    for cell in rows:
        kind, dim, points, n, digits, transforms, precision = cell
        run, points_set, planned = theirs(cell)
        columns = [f"{dim}D {kind}, {points}, {n}, 1e-{digits}, {precision}" + (f", {transforms} at once" if transforms > 1 else ""),
                   f"{run:.3g}", f"{run + points_set:.3g}"]
        for name, program in programs:
            own, own_set, own_planned = ours(program, cell)
            ratio = run / own, (run + points_set) / (own + own_set), planned / own_planned
            ratios[name].append((columns[0], *ratio))
            columns += [f"{x:.2f}" for x in ratio]
        print("| " + " | ".join(columns) + " |", flush=True)
    for name, _ in programs:
        for what, column in (("a transform", 1), ("new points", 2), ("a new plan", 3)):
            all_of = [row[column] for row in ratios[name]]
            below = [f"{row[0]} {row[column]:.2f}" for row in ratios[name] if row[column] < 1]
            print(f"{name}, {what}: {np.exp(np.mean(np.log(all_of))):.2f} in the mean, {min(all_of):.2f} at least"
                  + (f"; below 1: {'; '.join(below)}" if below else ""))


if __name__ == "__main__":
    main()
