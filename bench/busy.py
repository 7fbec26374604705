#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs beside processes that spin: busy.py [--spinners N] [--repeat N] [--settle S] [--only PROGRAM...] FOLDER

FOLDER has the programs. Each runs with one thread on the idle machine, and then as it comes beside N processes that do nothing
but spin, by default four for each processor (eight on two). The share of one thread there is its idle seconds times
(N + 1) / processors. Prints a table: the least seconds of idle runs, the share, the median seconds beside the others and the
ratio to the share, which ought to be at most 1.3. The first S seconds let the load average rise, which programs look at.
Says so where the machine was not idle before.
"""

import argparse
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

most = 1.3
ways = {
    "bracewell-reconstruct": ["--star", "data/particles.star", "--out", "map.mrc"],
    "bracewell-project": ["--map", "data/truth.mrc", "--star", "data/particles.star", "--out", "images.mrcs"],
    "bracewell-refine": ["--star", "data/particles.star", "--rounds", "1", "--out", "refined.star"],
    "bracewell-star": ["--particles", "data/particles.star", "--out", "checked.star"],
    "bracewell-tomography": ["--demo", "slices", "--demo-angles", "100"],
    "bracewell-ptychography": ["--demo", "object", "--passes", "5"],
}
of_threads = ("OMP_NUM_THREADS", "KOKKOS_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def spin():
    while True:
        pass


def seconds(command, threads=None):
    environment = {name: value for name, value in os.environ.items() if name not in of_threads}
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"busy.py: {' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description="Programs beside processes that spin.")
    parser.add_argument("folder", type=pathlib.Path, help="with the programs")
    parser.add_argument("--spinners", type=int, help="by default four for each processor")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind")
    parser.add_argument("--settle", type=float, default=60, help="seconds before programs run beside the others")
    parser.add_argument("--only", nargs="+", choices=ways, metavar="PROGRAM", default=list(ways), help="some of the programs")
    options = parser.parse_args()
    processors = os.cpu_count()
    spinners = 4 * processors if options.spinners is None else options.spinners
    load = os.getloadavg()[0]
    if load > 0.3 * processors:
        print(f"The machine is not idle: its load is {load:.1f} on {processors} processors.")
    folder = options.folder.resolve()
    commands = {name: [str(folder / name), *rest] for name, rest in ways.items()
                if name in options.only and (folder / name).exists()}
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        if (folder / "bracewell-reconstruct").exists():
            seconds([str(folder / "bracewell-reconstruct"), "--demo", "data"])
        else:
            commands = {name: command for name, command in commands.items() if "--demo" in command}
        idle = {name: min(seconds(command, 1) for _ in range(options.repeat)) for name, command in commands.items()}
        others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(spinners)]
        for other in others:
            other.start()
        time.sleep(options.settle)
        print(f"| {processors} processors, {spinners} spin, load {os.getloadavg()[0]:.0f} | one thread, idle, s | its share, s | "
              "beside the others, s | ratio |\n|---|---|---|---|---|")
        worst = 0
        for name, command in commands.items():
            share = idle[name] * max(1, (spinners + 1) / processors)
            busy = statistics.median(seconds(command) for _ in range(options.repeat))
            worst = max(worst, busy / share)
            print(f"| `{name}` | {idle[name]:.2f} | {share:.2f} | {busy:.2f} | {busy / share:.2f} |", flush=True)
        for other in others:
            other.terminate()
    print(f"The largest ratio is {worst:.2f}; at most {most} was wanted.")
    return worst > most


if __name__ == "__main__":
    sys.exit(main())
