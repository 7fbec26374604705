#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Slices of bracewell-tomography beside those of ASTRA, algotom and scikit-image: accuracy, time and memory on one core.

    bench/quality/tomography.py --bracewell BUILD/examples [--peers PYTHON] [--width 511] [--views 720] [--slices 8] [--noise 0]
                                [--page docs/performance.md]

The scan is the head phantom of Shepp and Logan with one more ellipse, so that its mirror image differs, whose line integrals are
known (means over pixels of the detector, no code of the library). The width is odd: the middles of all programs agree. All
filter with the ramp. A line tells

    error      |slices - truth| / |truth| in 0.9 of the disc, up to one turn over: "mirrored" says where y goes down
    seconds    of a processor per slice, one thread: of bracewell-tomography the whole program, files included; of others calls
               when everything is compiled and planned, of all slices or as many as 20 seconds hold
    MB         the largest resident memory of the process

--axis instead looks for the rotation axis of 32 scans (objects, places of the axis, half and whole turns, objects beyond the
detector, noise) and counts axes that are more than half a pixel off, and these of which the program did not warn.

--page makes the table of the page's section "Slices on one core" anew.

Needs numpy and h5py. --peers names the Python interpreter of an environment with astra-toolbox, algotom and scikit-image
(pip install astra-toolbox algotom scikit-image); what is missing there is left out.
"""
import argparse, json, os, pathlib, re, resource, subprocess, sys, tempfile, time

import numpy as np

ELLIPSES = [(1, .69, .92, 0, 0, 0), (-.8, .6624, .874, 0, -.0184, 0), (-.2, .11, .31, .22, 0, -18), (-.2, .16, .41, -.22, 0, 18),
            (.1, .21, .25, 0, .35, 0), (.1, .046, .046, 0, .1, 0), (.1, .046, .046, 0, -.1, 0), (.1, .046, .023, -.08, -.605, 0),
            (.1, .023, .023, 0, -.606, 0), (.1, .023, .046, .06, -.605, 0), (.3, .08, .05, .35, .45, 30)]
ITERATIONS = {"cgls": 20, "sirt": 100, "tv": 200}


def ellipses(width):
    """Value, half axes, middle (x right, y up) in pixels, turn; attenuation per pixel."""
    r = 0.45 * width
    return [(v / width, a * r, b * r, x * r, y * r, np.radians(turn)) for v, a, b, x, y, turn in ELLIPSES]


def projections(width, angles, samples=8):
    """[views, width], s = x cos + y sin + (width - 1) / 2."""
    return line_integrals(ellipses(width), width, angles, (width - 1) / 2, samples)


def line_integrals(parts, width, angles, axis, samples):
    s = (np.arange(width * samples) + 0.5) / samples - 0.5 - axis
    rows = np.zeros((len(angles), width))
    for value, a, b, x, y, turn in parts:
        for row, angle in zip(rows, angles):
            half = np.hypot(a * np.cos(angle - turn), b * np.sin(angle - turn))
            t = s - x * np.cos(angle) - y * np.sin(angle)
            chord = 2 * value * a * b / half**2 * np.sqrt(np.maximum(0, half**2 - t**2))
            row += chord.reshape(width, samples).mean(1)
    return rows


def scans_for_axis():
    """Name, width, right axis, angles and rows [views, width] of 32 scans."""
    random = np.random.default_rng(7)
    for kind in ("head", "small", "wide", "foam"):
        for place, off in enumerate((0, 0.04, -0.11, 0.2)):
            for turn in (np.pi, 2 * np.pi):
                width = (128, 200, 256, 161)[place]
                axis = (width - 1) / 2 + off * width + (0.25, -0.4, 0.1, 0)[place]
                room = min(axis, width - 1 - axis)  # what the detector sees on either side
                r = {"head": 0.95, "wide": 1.7, "small": 0.2, "foam": 0.85}[kind] * room
                if kind in ("head", "wide"):
                    parts = [(v, a * r, b * r, x * r, y * r, np.radians(t)) for v, a, b, x, y, t in ELLIPSES]
                elif kind == "small":  # beside the axis
                    parts = [(1, r, 0.8 * r, 0.55 * room, 0.3 * room, 0.4), (-0.5, 0.3 * r, 0.3 * r, 0.6 * room, 0.3 * room, 0)]
                else:
                    parts = [(1, r, r, 0, 0, 0)]
                    for _ in range(40):
                        t, q, hole = random.uniform(0, 2 * np.pi), np.sqrt(random.uniform()), random.uniform(0.02, 0.09) * r
                        parts.append((-0.6, hole, hole, q * 0.85 * r * np.cos(t), q * 0.85 * r * np.sin(t), 0))
                views = int(width * (0.9 if turn < 4 else 1.8))
                angles = np.arange(views) * turn / views
                rows = line_integrals(parts, width, angles, axis, 4)
                rows *= 1.5 / rows.max()
                noise = (0, 0.01)[place % 2]
                rows += noise * rows.max() * random.normal(size=rows.shape)
                name = f"{kind}, {width} columns, {'half' if turn < 4 else 'whole'} turn, noise {noise:g}"
                yield name, width, axis, angles, rows


def search_axes(options):
    import h5py
    wrong = silent = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number, (label, width, axis, angles, rows) in enumerate(scans_for_axis()):
            with h5py.File(folder / "scan.h5", "w") as file:
                file["exchange/data"] = rows[:, None, :].astype(np.float32)
                file["exchange/theta"] = np.degrees(angles)
            found = subprocess.run([str(pathlib.Path(options.bracewell) / "bracewell-tomography"), "--scan",
                                    str(folder / "scan.h5"), "--no-log", "--out", "/dev/null"], capture_output=True, text=True)
            value = re.search(r"centre ([0-9.]+)", found.stdout)
            warned = "the axis" in found.stderr and ("warning: " in found.stderr or found.returncode == 2)
            off = abs(float(value[1]) - axis) if value else np.inf
            wrong += off > 0.5
            silent += off > 0.5 and not warned
            print(f"{number + 1:2} {label:48} right {axis:7.2f} found {value[1] if value else 'none':>7} "
                  f"{'WRONG ' if off > 0.5 else ''}{'said' if warned else ''}", flush=True)
    print(f"{wrong} of 32 are wrong, {silent} of them in silence")


def image(width, samples=4):
    """Means over pixels, y up: row 0 is at the top."""
    at = (np.arange(width * samples) + 0.5) / samples - 0.5 - (width - 1) / 2
    x, y = np.meshgrid(at, -at)
    values = np.zeros_like(x)
    for value, a, b, x0, y0, turn in ellipses(width):
        u = (x - x0) * np.cos(turn) + (y - y0) * np.sin(turn)
        v = (y - y0) * np.cos(turn) - (x - x0) * np.sin(turn)
        values += value * ((u / a)**2 + (v / b)**2 < 1)
    return values.reshape(width, samples, width, samples).mean((1, 3))


def error(slices, truth):
    """And whether the mirror image is nearer."""
    at = np.arange(len(truth)) - len(truth) // 2
    disc = np.hypot(at[:, None], at) < 0.45 * len(truth)
    off = [np.linalg.norm((turned - truth)[:, disc]) / np.linalg.norm(truth[disc]) / np.sqrt(len(slices))
           for turned in (slices, slices[:, ::-1])]
    return min(off), off[1] < off[0]


# ---- the page

NAMES = {"bracewell: Fourier": "**Fourier**", "bracewell: log-polar": "**log-polar**", "bracewell: line": "**line**",
         "astra: FBP": "ASTRA, FBP", "astra: FBP strip": "ASTRA, FBP, strips", "algotom: fbp": "algotom, FBP",
         "algotom: dfi": "algotom, DFI", "skimage: iradon": "scikit-image, `iradon`",
         "bracewell: CGLS, Fourier": "**CGLS, Fourier**, 20", "bracewell: CGLS, line": "**CGLS, line**",
         "astra: CGLS": "ASTRA, CGLS", "bracewell: SIRT, line": "**SIRT, line**, 100", "astra: SIRT": "ASTRA, SIRT",
         "skimage: sart": "scikit-image, SART, 2",
         "bracewell: TV, Fourier": "**TV, Fourier**, 200"}  # in the order of the page


def seconds_text(value):
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def write_page(path, found, options):
    """Replaces the table and what stands below it; rows that were not measured are left out."""
    rows = [f"| {name} | {found[label][0]:.4f} | {seconds_text(found[label][1])} | {found[label][2]:.0f} |"
            for label, name in NAMES.items() if label in found]
    versions = "none"
    if options.peers:
        code = ("from importlib.metadata import version as v; "
                "print(', '.join(f'{n} {v(n)}' for n in ('astra-toolbox', 'algotom', 'scikit-image')))")
        versions = subprocess.run([options.peers, "-c", code], capture_output=True, text=True).stdout.strip()
    processor = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), "a processor")
    noise = f"noise {options.noise:g}, " if options.noise else ""
    note = (f"*{time.strftime('%Y-%m-%d')}, {options.width} x {options.width} pixels, {options.views} views, {noise}{processor}; processor seconds, "
            f"ours with files.\n{versions}. `bench/quality/tomography.py --bracewell BUILD/examples --peers PYTHON "
            f"--width {options.width} --views {options.views} --page docs/performance.md`.*")
    head, section = path.read_text().split("## Slices on one core\n")
    begin, end = section.index("| | error |"), section.index("\n## ")
    table = ["| | error | seconds per slice | memory, MB |", "|---|---|---|---|", *rows]
    path.write_text(f"{head}## Slices on one core\n{section[:begin]}" + "\n".join(table) + f"\n\n{note}\n" + section[end:])


# ---- bracewell-tomography

def run_bracewell(options, folder, scan, settings):
    out = folder / "slices.h5"
    command = [str(pathlib.Path(options.bracewell) / "bracewell-tomography"), "--scan", str(scan), "--no-log", "--centre",
               str((options.width - 1) / 2), "--out", str(out), *settings.split()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
    code = ("import resource, subprocess, sys; r = subprocess.run(sys.argv[1:], capture_output=True, text=True); "
            "u = resource.getrusage(resource.RUSAGE_CHILDREN); "
            "print(r.returncode, u.ru_utime + u.ru_stime, u.ru_maxrss); print(r.stderr)")
    text = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, env=environment).stdout
    returned, seconds, memory = text.splitlines()[0].split()
    if int(returned) != 0:
        return None, text.strip().splitlines()[-1]
    import h5py
    with h5py.File(out) as file:
        return file["exchange/data"][()], float(seconds) / options.slices, float(memory) / 1024


# ---- peers, in a process of their own

def peer(name, folder):
    """Reconstructs what is in the folder; writes slices and prints seconds and memory."""
    rows = np.load(folder / "rows.npy")
    angles = np.load(folder / "angles.npy")
    slices, views, width = rows.shape
    library, method = name.split(":")
    if library == "astra":
        import astra
        of_volume = astra.create_vol_geom(width, width)
        of_rows = astra.create_proj_geom("parallel", 1.0, width, angles)
        projector = astra.create_projector("linear" if method != "FBP strip" else "strip", of_rows, of_volume)

        def one(row, iterations=ITERATIONS.get(method.lower(), 1)):
            data, volume = astra.data2d.create("-sino", of_rows, row), astra.data2d.create("-vol", of_volume)
            config = astra.astra_dict(method.split()[0])
            config.update(ReconstructionDataId=volume, ProjectionDataId=data, ProjectorId=projector)
            if method.startswith("FBP"):
                config["option"] = {"FilterType": "Ram-Lak"}
            algorithm = astra.algorithm.create(config)
            astra.algorithm.run(algorithm, iterations)
            found = astra.data2d.get(volume)
            astra.algorithm.delete(algorithm)
            astra.data2d.delete([data, volume])
            return found
    elif library == "skimage":
        from skimage.transform import iradon, iradon_sart

        def one(row, passes=2):
            if method == "iradon":
                return iradon(row.T, np.degrees(angles), filter_name="ramp", circle=True)
            found = None
            for _ in range(passes):
                found = iradon_sart(row.T.astype(float), np.degrees(angles), image=found)
            return found
    else:
        import algotom.rec.reconstruction as reconstruction

        def one(row, _=None):
            if method == "dfi":
                return reconstruction.dfi_reconstruction(row, (width - 1) / 2, angles=angles, filter_name=None, apply_log=False)
            return reconstruction.fbp_reconstruction(row, (width - 1) / 2, angles=angles, filter_name=None, apply_log=False, gpu=False)
    one(rows[0], 1)  # what is compiled and planned at the first call does not count
    start, found = time.process_time(), []
    while len(found) < slices and time.process_time() - start < 20:
        found.append(one(rows[len(found)]))
    seconds = (time.process_time() - start) / len(found)
    np.save(folder / "found.npy", np.array(found, np.float32))
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def run_peer(options, folder, name):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    found = subprocess.run([options.peers, __file__, "--peer", name, "--folder", str(folder)], capture_output=True, text=True,
                           env=environment)
    if found.returncode != 0:
        return None, found.stderr.strip().splitlines()[-1] if found.stderr.strip() else "failed"
    seconds, memory = json.loads(found.stdout.splitlines()[-1])
    return np.load(folder / "found.npy"), seconds, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bracewell", help="folder of the programs")
    parser.add_argument("--peers", help="Python interpreter with astra-toolbox, algotom and scikit-image")
    parser.add_argument("--width", type=int, default=511)
    parser.add_argument("--views", type=int, default=720)
    parser.add_argument("--slices", type=int, default=8)
    parser.add_argument("--noise", type=float, default=0, help="standard deviation over the largest line integral")
    parser.add_argument("--axis", action="store_true", help="the axes of 32 scans")
    parser.add_argument("--only", default="", help="lines whose name matches")
    parser.add_argument("--page", type=pathlib.Path, help="docs/performance.md, whose table is made anew")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return peer(options.peer, options.folder)
    if options.axis:
        if not options.bracewell:
            parser.error("--axis: expected --bracewell")
        return search_axes(options)
    program = pathlib.Path(options.bracewell or ".") / "bracewell-tomography"
    if options.bracewell and not os.access(program, os.X_OK):
        parser.error(f"--bracewell: expected a folder with bracewell-tomography, found {options.bracewell}")
    if options.page and not (options.bracewell and options.peers and not options.only):
        parser.error("--page: expected --bracewell and --peers, and no --only")
    if options.width % 2 == 0:
        parser.error(f"--width: expected an odd number, found {options.width}")
    angles = np.arange(options.views) * np.pi / options.views
    truth = image(options.width)
    row = projections(options.width, angles)
    random = np.random.default_rng(0)
    rows = np.stack([row + options.noise * row.max() * random.normal(size=row.shape) for _ in range(options.slices)])
    lines = []
    if options.bracewell:
        for name, settings in (("Fourier", ""), ("log-polar", "--method log-polar"), ("line", "--method line"),
                               ("CGLS, Fourier", f"--solver cgls --iterations {ITERATIONS['cgls']}"),
                               ("CGLS, line", f"--solver cgls --method line --iterations {ITERATIONS['cgls']}"),
                               ("SIRT, line", f"--solver sirt --method line --iterations {ITERATIONS['sirt']}"),
                               ("TV, Fourier", f"--solver fista-tv --nonnegative --iterations {ITERATIONS['tv']}")):
            lines.append(("bracewell: " + name, settings + ("" if "solver" in settings else " --filter ramp"), None))
    if options.peers:
        lines += [(name.replace(":", ": "), None, name) for name in
                  ("astra:FBP", "astra:FBP strip", "astra:CGLS", "astra:SIRT", "algotom:fbp", "algotom:dfi", "skimage:iradon",
                   "skimage:sart")]
    print(f"{options.width} x {options.width}, {options.views} views, {options.slices} slices, noise {options.noise:g}")
    print(f"{'':28} {'error':>8} {'seconds':>9} {'MB':>6}")
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "rows.npy", rows.astype(np.float32))
        np.save(folder / "angles.npy", angles)
        if options.bracewell:
            import h5py
            with h5py.File(folder / "scan.h5", "w") as file:
                file["exchange/data"] = rows.transpose(1, 0, 2).astype(np.float32)
                file["exchange/theta"] = np.degrees(angles)
        for label, settings, of_peer in lines:
            if not re.search(options.only, label):
                continue
            result = run_peer(options, folder, of_peer) if of_peer else run_bracewell(options, folder, folder / "scan.h5", settings)
            if result[0] is None:
                print(f"{label:28} {result[1]}")
                continue
            off, mirrored = error(result[0], truth)
            found[label] = off, result[1], result[2]
            print(f"{label:28} {off:8.4f} {result[1]:9.4f} {result[2]:6.0f}{'  mirrored' if mirrored else ''}", flush=True)

    if options.page:
        write_page(options.page, found, options)


if __name__ == "__main__":
    main()
