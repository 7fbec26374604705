#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what the documents behind Bracewell claim, and leaves one file of results for this machine.

`./dev seeds` calls it. It runs the benchmarks of a build, and, by an interpreter that has them, bracewell and torch
(doors.py, interpolation.py). What is not there is skipped with a sentence. page.py makes docs/claims.md of all files of results.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parents[1]

# Benchmarks: part, program, filter on a GPU, filter on a host, filter of --quick, options.
kernels = "(linear|catmull_rom)"
sizes = "box:(32|128|256)/batch:(1|8)/poses:(8|128|2048)/"
host_sizes = "box:(32|128)/batch:1/poses:(8|128)/"
fives = "n:(362|724|1448|1840|2896)/angles:[0-9]*/slices:64"
operators = "(project|project_gradients_reconstruction|backproject|backproject_gradients)/(2d|3d)_to_(2d|3d)/"
BENCHMARKS = [
    ("operators", "bench_projectors", f"^{operators}{kernels}/{sizes}", f"^{operators}{kernels}/{host_sizes}",
     "^project/2d_to_2d/linear/box:32/batch:1/poses:8/", "0"),
    ("volumes", "bench_projectors", "/3d_to_3d/.*/box:(32|64)/", "/3d_to_3d/.*/box:32/batch:1/poses:8/", None, "0"),
    ("references", "bench_projectors", "/poses:1/", None, None, "0"),
    ("gridding", "bench_gridding", f"gridding/spread(_tiles|_pruned|_atomic)?/{fives}", "gridding/spread(_pruned|_atomic)?/n:362/.*/slices:2/",
     None, "0.02"),
    ("tomography", "bench_tomography", f"tomography/(fourier|log_polar|line)/backproject/{fives}",
     "tomography/(fourier|log_polar|line)/backproject/n:362/", None, "0.02"),
    ("ptychography", "bench_ptychography", "ptychography/iteration/", "ptychography/iteration/", None, "0.1"),
    ("precision", "bench_ptychography", "ptychography/accuracy/", "ptychography/accuracy/", None, "0.01"),
    ("ptychography with 99 KB", "bench_ptychography_99_kb", "ptychography/iteration/", None, None, "0.1"),
    ("calls", "bench_calls", ".", ".", ".", "0.05"),
    ("calls through C", "bench_calls_c", ".", ".", ".", "0.05"),
]
SCRIPTS = {"interpolation": ("interpolation.py", "bracewell"), "doors": ("doors.py", "bracewell, torch")}


def say(text):
    print(f"seeds: {text}", file=sys.stderr, flush=True)


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def machine():
    """What the numbers were measured on."""
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M) if os.path.exists("/proc/cpuinfo") else None
    gpu = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    return {"gpu": gpu[0].split(", ")[0] if gpu else None, "driver": gpu[0].split(", ")[1] if gpu else None, "gpus": len(gpu),
            "cpu": cpu.group(1) if cpu else platform.processor(), "processors": len(os.sched_getaffinity(0)),
            "load": round(os.getloadavg()[0], 1)}


def run_benchmark(program, pattern, seconds, limit):
    """Rows of a Google Benchmark program: what is finished within the limit."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.csv"
        command = [str(program), f"--benchmark_filter={pattern}", f"--benchmark_min_time={seconds}", "--benchmark_format=csv"]
        environment = {"OMP_PROC_BIND": "spread", "OMP_PLACES": "threads", **os.environ}
        with out.open("w") as file:
            try:
                ended = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=limit, env=environment)
                note = "" if ended.returncode == 0 else f"ended with {ended.returncode}: {ended.stderr[-300:]}"
            except subprocess.TimeoutExpired:
                note = f"was stopped after {limit:.0f} s"
        return rows_of(out.read_text()), note


def rows_of(text):
    """Name, milliseconds and counters of every line of the CSV."""
    import csv
    lines, rows = text.splitlines(), []
    start = next((i for i, line in enumerate(lines) if line.startswith("name,")), len(lines))
    to_ms = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
    for line in csv.DictReader(lines[start:]):
        if not line.get("real_time"):
            continue
        row = {"name": line["name"].removesuffix("/real_time"), "ms": float(f'{float(line["real_time"]) * to_ms[line["time_unit"]]:.6g}')}
        for key, value in line.items():
            if key not in ("name", "iterations", "real_time", "cpu_time", "time_unit", "bytes_per_second", "items_per_second", "label",
                           "error_occurred", "error_message") and value:
                row[key] = float(f"{float(value):.5g}")
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, help="the folder with bench_projectors and the others")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with bracewell and torch, and what starts it")
    parser.add_argument("--results", type=pathlib.Path, default=here / "results", help="where results go")
    parser.add_argument("--name", help="of the file of results; by default the GPU's or processor's")
    parser.add_argument("--parts", default="", help="some of operators,volumes,references,gridding,tomography,ptychography,precision,calls,calls through C,"
                        "doors,interpolation; all by default")
    parser.add_argument("--limit", type=float, default=480, help="seconds for all of it; what does not fit is left out, and said")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether all runs")
    arguments = parser.parse_args()
    known = [part for part, *_ in BENCHMARKS] + list(SCRIPTS)
    wanted = arguments.parts.split(",") if arguments.parts else known
    for part in wanted:
        if part not in known:
            parser.error(f"--parts: expected some of {', '.join(known)}, found {part}")
    found, started, python = machine(), time.monotonic(), shlex.split(arguments.python)
    on_gpu = found["gpu"] is not None
    name = arguments.name or re.sub(r"[^a-z0-9]+", "-", (found["gpu"] or found["cpu"]).lower()).strip("-")
    path = arguments.results / f"{name}.json"
    # A part that is not measured now keeps its numbers.
    results = json.loads(path.read_text()) if path.exists() else {"parts": {}}
    results["machine"] = found
    today, commit = time.strftime("%Y-%m-%d"), output_of("git", "-C", str(root), "rev-parse", "--short", "HEAD")

    def left():
        return arguments.limit - (time.monotonic() - started)

    def store(part, rows, command, note=""):
        results["parts"][part] = {"date": today, "commit": commit, "command": command, "note": note, **rows}
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(results, indent=1)
        for pattern in (r"\{\s+(\"name\"[^{}]*?)\s+\}", r"\[\s+([^][{}]*?)\s+\]"):  # a row in a line
            text = re.sub(pattern, lambda m: m[0][0] + re.sub(r"\s*\n\s*", " ", m[1]) + m[0][-1], text)
        path.write_text(text + "\n")
        say(f"{part}: {note or 'done'}")

    def benchmark(part, program, gpu_filter, host_filter, quick_filter, seconds):
        pattern = quick_filter if arguments.quick else gpu_filter if on_gpu else host_filter
        if pattern is None:
            return
        file = arguments.programs / program if arguments.programs else None
        if file is None or not file.exists():
            say(f"{part}: {program} is not built: skipped")
            return
        rows, note = run_benchmark(file, pattern, seconds, left())
        store(part, {"rows": rows}, f"{program} --benchmark_filter='{pattern}' --benchmark_min_time={seconds}", note)

    def script(part, file, needed):
        if subprocess.run([*python, "-c", f"import {needed}"], capture_output=True).returncode != 0:
            say(f"{part}: {arguments.python} does not have {needed}: skipped")
            return
        command = [*python, str(here / file)] + (["--quick"] if arguments.quick else [])
        if part == "doors":
            command += ["--until", f"{max(left() - 60, 1):.0f}"]
        try:
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=left())
        except subprocess.TimeoutExpired:
            say(f"{part}: was stopped, as no time was left")
            return
        if ended.returncode != 0:
            say(f"{part}: ended with {ended.returncode}: skipped")
            return
        rows = json.loads(ended.stdout.splitlines()[-1])
        store(part, rows, f"python bench/seeds/{file}{' --quick' if arguments.quick else ''}", "; ".join(rows.pop("notes", [])))

    benchmarks = {part: rest for part, *rest in BENCHMARKS}
    for part in wanted:
        if left() < 5:
            say(f"{part}: no time is left: skipped")
        elif part in benchmarks:
            benchmark(part, *benchmarks[part])
        else:
            script(part, *SCRIPTS[part])
    say(f"{path}: {time.monotonic() - started:.0f} s")


main()
