#!/usr/bin/env python3
"""Runs the programs on small files with damages, byte by byte and in their sense: numbers that nothing has in files and options that
are whole, pipes in the place of files, datasets that refer to themselves. Each run has to end in time with 0 and values that
can be right, or with one sentence and 1 or 2, and without output then. The folders of runs that do not stay; the tenth of them ends the script.

    fuzz_programs.py --programs build/fuzz/examples --seeds SEEDS [--data DATA] [--runs N] [--seconds S] [--seed K]
                     [--jobs J]

SEEDS is a folder that fuzz_seeds wrote, DATA a folder with real files (cryoem/, tomography/, ptychography/)."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

try:
    import h5py  # for datasets; without it their bytes are damaged only
    import numpy
except ImportError:
    h5py = None

parser = argparse.ArgumentParser()
parser.add_argument("--programs", type=pathlib.Path, required=True)
parser.add_argument("--seeds", type=pathlib.Path, required=True)
parser.add_argument("--data", type=pathlib.Path)
parser.add_argument("--runs", type=int, default=10000)
parser.add_argument("--seconds", type=float, default=float("inf"))
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at a time, each with one thread")
parser.add_argument("--time-limit", type=int, default=60, help="seconds of processor that a run may take")
options = parser.parse_args()
options.programs = options.programs.resolve()
largest_memory = 2 << 20  # kB of a run; --memory-limit is below it

star = """data_optics
loop_
_rlnOpticsGroup
_rlnVoltage
_rlnSphericalAberration
_rlnAmplitudeContrast
_rlnImagePixelSize
_rlnImageSize
1 300 2.7 0.1 2 16

data_particles
loop_
_rlnOpticsGroup
_rlnImageName
_rlnAngleRot
_rlnAngleTilt
_rlnAnglePsi
_rlnOriginXAngst
_rlnOriginYAngst
_rlnDefocusU
_rlnDefocusV
_rlnDefocusAngle
_rlnRandomSubset
"""


def small_files(folder):
    """A map, a STAR file and its images in all modes that are read, and the seeds."""
    box = 16

    def mrc(sections, values, mode=2):
        header = bytearray(1024)
        struct.pack_into("<10i3f3f3i", header, 0, box, box, sections, mode, 0, 0, 0, box, box, sections, 2.0 * box,
                         2.0 * box, 2.0 * sections, 90, 90, 90, 1, 2, 3)
        struct.pack_into("<i", header, 88, 1)
        header[208:216] = b"MAP DD\0\0"
        return bytes(header) + struct.pack("<%d%s" % (len(values), "fh"[mode == 1]), *values)

    (folder / "map.mrc").write_bytes(mrc(box, [float(i * 37 % 101 % 13) for i in range(box**3)]))
    (folder / "p.mrcs").write_bytes(mrc(6, [i * 31 % 97 % 19 for i in range(6 * box**2)], 1))
    (folder / "m.mrc").write_bytes(mrc(1, [i * 31 % 97 % 19 for i in range(box**2)], 1))
    rows = ("1 %d@p.mrcs %d %d %d 1 -1 12000 11000 30 %d\n" % (i + 1, 40 * i, 20 * i, 9 * i, 1 + i % 2) for i in range(6))
    (folder / "p.star").write_text(star + "".join(rows))
    for seed in ("scan/scan.h5", "scan/scan.tif", "tiff/deflate.tif", "cxi/measurement.cxi", "cxi/plain.h5"):
        shutil.copy(options.seeds / seed, folder)


# Program, arguments, files that it reads.
commands = [
    ("project", "--map map.mrc --star p.star --ctf --out out.mrcs", ["map.mrc", "p.star"]),
    ("project", "--map map.mrc --star p.star --kernel linear --noise 1 --out out.mrcs", ["map.mrc", "p.star"]),
    ("reconstruct", "--star p.star --out out.mrc", ["p.star", "p.mrcs"]),
    ("reconstruct", "--star p.star --reference map.mrc --normalise --out out.mrc", ["p.star", "p.mrcs", "map.mrc"]),
    ("refine", "--map map.mrc --star p.star --iterations 2 --out out.star", ["map.mrc", "p.star", "p.mrcs"]),
    ("classify", "--reference map.mrc --star p.star --classes 2 --iterations 2 --out out.star", ["map.mrc", "p.star", "p.mrcs"]),
    ("match", "--map map.mrc --micrograph m.mrc --defocus 9000 --angular-step 60 --in-plane-step 60 --out out.star",
     ["map.mrc", "m.mrc"]),
    ("tomography", "--scan scan.h5 --centre 1.5 --out out.h5", ["scan.h5"]),
    ("tomography", "--scan scan.tif --centre 1.5 --method line --out out.tif", ["scan.tif"]),
    ("tomography", "--scan deflate.tif --centre 9.5 --out out.h5", ["deflate.tif"]),
    ("ptychography", "--data measurement.cxi --passes 2 --out out.h5", ["measurement.cxi"]),
    ("ptychography", "--data plain.h5 --passes 2 --object-pixel 1e-9 --out out.h5", ["plain.h5"]),
]
# The same on real files of up to 4 MB, for one run in ten.
real_commands = [
    ("project", "--map toymodel_small_nocenter.mrc --star rln_proj_64_centered.star --out out.mrcs",
     ["cryoem/toymodel_small_nocenter.mrc", "cryoem/rln_proj_64_centered.star"]),
    ("reconstruct", "--star relion31.star --out out.mrc", ["cryoem/relion31.star", "cryoem/relion31.mrcs"]),
    ("tomography", "--scan dendrites_sinogram.h5 --centre 100 --out out.h5", ["tomography/dendrites_sinogram.h5"]),
    ("tomography", "--scan sinogram_360_neutron_image.tif --centre 100 --out out.h5",
     ["tomography/sinogram_360_neutron_image.tif"]),
    ("ptychography", "--data PETRAIII_P25_Near_Field_Ptycho.cxi --passes 1 --out out.h5",
     ["ptychography/PETRAIII_P25_Near_Field_Ptycho.cxi"]),
]

telling_numbers = (0, 1, 2, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0x7FC00000, 1 << 24)


def damaged(content, chance):
    """Bytes that are changed, missing, doubled or moved, mostly near the beginning, where formats state sizes."""
    content = bytearray(content)

    def place():
        return chance.randrange(min(len(content), 2048) if chance.random() < 0.7 else len(content)) if content else 0

    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at, size, kind = place(), chance.choice((1, 4, 16, 256)), chance.randrange(7)
        if kind == 0 and content:
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and content:
            content[at] = chance.randrange(256)
        elif kind == 2:
            word = struct.pack(chance.choice("<>") + "I", chance.choice(telling_numbers))
            content[at:at + 4] = word
        elif kind == 3:
            del content[at:at + size]
        elif kind == 4:
            content[at:at] = content[place():][:size]
        elif kind == 5:
            content[at:at + size] = content[place():][:size]
        elif chance.random() < 0.3:
            del content[at:]
    return bytes(content)


absurd_numbers = ("1e308", "-1e308", "1e38", "-1e30", "1e-300", "0", "-1", "nan", "inf", "65536", "1e15", "360", "0.0174533")

# Options with a number each, at the end of a command.
absurd_options = {
    "project": ("--noise", "--pixel-size", "--oversampling", "--seed"),
    "reconstruct": ("--pixel-size", "--mask-diameter", "--wiener", "--floor", "--b-factor", "--oversampling"),
    "refine": ("--pixel-size", "--mask-diameter"),
    "classify": ("--pixel-size", "--particle-diameter", "--initial-low-pass", "--tau", "--starts"),
    "match": ("--resolution", "--voxel-size", "--pixel-size", "--false-positives", "--distance", "--b-factor"),
    "tomography": ("--hardening", "--zingers", "--span", "--first-angle", "--stripe-strength", "--roll"),
    "ptychography": ("--object-rate", "--probe-rate", "--wavelength", "--distance", "--object-pixel", "--rotation"),
}


def with_number(path, chance):
    """A whole file with one number, or a few, that its kind of quantity never has; returns what was done, for the log."""
    number = chance.choice(absurd_numbers)
    content = bytearray(path.read_bytes())
    if path.suffix == ".star":
        lines = content.decode(errors="replace").split("\n")
        rows = [i for i, line in enumerate(lines) if re.match(r"\s*[-+0-9]", line)]
        column = chance.randrange(12)
        for i in rows if chance.random() < 0.5 else chance.sample(rows, 1):
            words = lines[i].split()
            words[column % len(words)] = number
            lines[i] = " ".join(words)
        path.write_text("\n".join(lines))
    elif path.suffix in (".mrc", ".mrcs"):
        size = struct.unpack_from("<4i", content)
        if chance.random() < 0.4:  # of the cell: lengths and angles
            struct.pack_into("<f", content, 40 + 4 * chance.randrange(6), min(max(float(number), -3e38), 3e38))
        elif size[3] == 2:
            count = (len(content) - 1024) // 4
            for _ in range(chance.choice((1, 3, count))):
                struct.pack_into("<f", content, 1024 + 4 * chance.randrange(count),
                                 min(max(float(number), -3e38), 3e38))
        else:
            content[1024:] = bytes(len(content) - 1024)  # nothing in it
        path.write_bytes(content)
    elif path.suffix in (".tif", ".tiff"):
        place, = struct.unpack_from("<I", content, 4)
        count, = struct.unpack_from("<H", content, place)
        at = place + 2 + 12 * chance.randrange(count)
        struct.pack_into("<H", content, at + 8, chance.choice((0, 1, 2, 8, 9, 255, 65535)))  # a tag's value
        path.write_bytes(content)
    elif h5py:
        with h5py.File(path, "r+") as file:
            names = []
            file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) and item.size else None)
            name = chance.choice(names)
            dataset = file[name]
            if chance.random() < 0.2 and dataset.ndim:  # of itself, by another name or by its own
                layout = h5py.VirtualLayout(dataset.shape, dataset.dtype)
                layout[...] = h5py.VirtualSource(".", name, shape=dataset.shape)
                del file[name]
                file.create_virtual_dataset(name, layout)
                return f"{name} of itself"
            if chance.random() < 0.2:
                del file[name]
                file[name] = h5py.ExternalLink("pipe", name)
                os.mkfifo(path.parent / "pipe")
                return f"{name} in a pipe"
            if dataset.dtype.kind in "iuf":
                values = dataset[()]
                kind = dataset.dtype
                value = float(number)
                if kind.kind != "f":
                    limits = (0, 2**31 - 1) if kind.itemsize >= 4 else (0, 2**(8 * kind.itemsize - (kind.kind == "i")) - 1)
                    value = min(max(value if value == value else 0, limits[0]), limits[1])
                with numpy.errstate(over="ignore"):
                    value = kind.type(value)
                if dataset.ndim and chance.random() < 0.5:
                    values.reshape(-1)[chance.randrange(values.size)] = value
                else:
                    values = values * 0 + value
                dataset[()] = values
            return f"{name} {number}"
    return number


def senseless(path):
    """Whether an output that a run named has values that no result has."""
    if path.suffix in (".mrc", ".mrcs"):
        low, high = struct.unpack_from("<2f", path.read_bytes(), 76)
        # A sharpened map is the same everywhere where half maps have nothing in common, which is said.
        return not (abs(low) <= 1e15 and abs(high) <= 1e15 and (low < high or "_sharpened" in path.name))
    if path.suffix == ".h5" and h5py:
        with h5py.File(path) as file:
            for name in ("/exchange/data", "/object/amplitude"):
                if name in file:
                    values = file[name][()]
                    # An object of patterns that are alike is flat, which is said.
                    return not (abs(values).max() <= 1e15 and (values.min() < values.max() or "object" in name))
    return False


def complaint(program, arguments, folder, names):
    """What is wrong with a run, or nothing."""
    command = [str(options.programs / f"bracewell-{program}"), *arguments.split(), "--memory-limit", "500"]
    (folder / "command").write_text(" ".join(command) + "\n")
    out, err = folder / "stdout", folder / "stderr"
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        process = subprocess.Popen(command, cwd=folder, stdout=stdout, stderr=stderr,
                                   env={**os.environ, "OMP_NUM_THREADS": "1"})
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (options.time_limit, options.time_limit))
        end = time.monotonic() + 20 * options.time_limit  # one that waits
        done = 0
        while not done:
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
            if time.monotonic() > end:
                process.kill()
            time.sleep(0.002)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return f"still runs after {usage.ru_utime + usage.ru_stime:.0f} seconds of processor"
    text = err.read_text(errors="replace")
    if re.search(r"Sanitizer|runtime error", text):
        return "a report of a sanitizer"
    if usage.ru_maxrss > largest_memory:
        return f"took {usage.ru_maxrss // 1024} MB of memory"
    if "Bracewell::" in text:
        return "names a function"
    new = {path.name for path in folder.iterdir()} - set(names) - {"command", "stdout", "stderr"}
    if code == 0:
        outputs = [folder / name for name in new if name.startswith("out")]
        wrong = [path.name for path in outputs if senseless(path)]
        return (f"ended with 0, and {wrong[0]} makes no sense" if wrong else
                None if outputs else "ended with 0 without output")
    if code not in (1, 2):
        return f"ended with {code}"
    name = f"bracewell-{program}: "
    said = [line for line in text.splitlines() if not re.match(name + "(note|warning): ", line)]
    # Bytes of a file's text may be anything, line feeds too; progress is a line of its own.
    if not said or not any(line.startswith(name) for line in said):
        return f"ended with {code} without a sentence"
    return f"ended with {code} and left {sorted(new)}" if new else None


start = time.monotonic()
scratch = pathlib.Path(tempfile.mkdtemp(prefix="bracewell-fuzz-"))
originals = scratch / "originals"
originals.mkdir()
small_files(originals)
commands = [command for command in commands if all((originals / name).exists() for name in command[2])]
real_commands = [command for command in real_commands
                 if options.data and all((options.data / name).exists() for name in command[2])]
counts, findings = collections.Counter(), []


def run(number):
    """The run of this number, which its files depend on alone."""
    if time.monotonic() - start > options.seconds or len(findings) >= 10:
        return
    chance = random.Random(f"{options.seed} {number}")
    real = real_commands and chance.random() < 0.1
    program, arguments, files = chance.choice(real_commands if real else commands)
    sources = [(options.data if real else originals) / name for name in files]
    beside = [] if real else [originals / "p.mrcs"]
    folder = scratch / str(number)
    folder.mkdir()
    for path in {*sources, *beside}:
        shutil.copyfile(path, folder / path.name)
    victim = folder / chance.choice(sources).name
    kind = chance.random()
    if kind < 0.5 or real:
        victim.write_bytes(damaged(victim.read_bytes(), chance))
    elif kind < 0.9:
        with_number(victim, chance)
    elif kind < 0.93:
        victim.unlink()
        os.mkfifo(victim)
    else:
        arguments += f" {chance.choice(absurd_options[program])} {chance.choice(absurd_numbers)}"
    wrong = complaint(program, arguments, folder, [path.name for path in {*sources, *beside}] + ["pipe"])
    counts[program] += 1
    if wrong:
        findings.append(f"{wrong}: {folder} ({(folder / 'command').read_text().strip()})")
        print(f"fuzz_programs: {findings[-1]}", flush=True)
    else:
        shutil.rmtree(folder)


with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
    list(pool.map(run, range(options.runs)))
print(f"programs: {sum(counts.values())} runs in {time.monotonic() - start:.0f} s "
      f"({', '.join(f'{count} of {program}' for program, count in sorted(counts.items()))}), {len(findings)} findings")
if findings:
    sys.exit(1)
shutil.rmtree(scratch)
