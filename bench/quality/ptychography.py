#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How good reconstructions by the defaults of bracewell-ptychography are, beside pty-chi's LSQ-ML and rPIE, and PtyRAD.

    bench/quality/ptychography.py [--cases NAME ...] [--passes N ...] [--options "..."] [--star FILE] [--python PYTHON]

A NumPy simulation (no code of the library) makes seven scans: objects of Gaussian blobs, a defocused probe, a raster with
jitter, Poisson noise. A measured one joins them: the Siemens star (siemens-star-small.h5). Per case a line tells

    error      of the object against truth, after the best complex factor, phase ramp and shift, where there was light
    ring       correlation of the Fourier rings with truth, mean over all rings up to Nyquist
    residual   sum (|model| - sqrt counts)^2 / sum counts; ours by Poisson's loss: half the deviance instead
    seconds    of processors, of the whole program; for others without reading and imports

and for positions the median distance from the true ones, for modes their powers. Needs numpy, scipy and h5py; --python takes
the interpreter of an environment that has pty-chi and PtyRAD. They run on the same data for the same passes and, where --passes
is not given, once more for as many passes as take our seconds.
"""
import argparse, os, pathlib, re, resource, subprocess, sys, tempfile

import h5py
import numpy as np
from scipy.optimize import minimize

HERE = pathlib.Path(__file__).resolve()
PROBE, OBJECT, SIDE, STEP, MARGIN = 64, 192, 13, 8, 10
DEFOCUS = 1.3  # phase pi DEFOCUS k^2 / PROBE at the frequency k


# ---- simulation

def make_object(seed=0):
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:OBJECT, :OBJECT]
    phase, absorption = np.zeros((2, OBJECT, OBJECT))
    for _ in range(250):
        (row, column), width = random.uniform(0, OBJECT, 2), random.uniform(1.2, 7)
        blob = np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * width ** 2)) * min(1, 3 / width + 0.2)
        phase += random.uniform(0.2, 1) * random.choice([1, 1, -1]) * blob
        absorption += random.uniform(0, 1) * blob
    return (1 - 0.2 * absorption / absorption.max()) * np.exp(0.45j * np.pi * phase / abs(phase).max())


def make_probe(defocus=DEFOCUS):
    """A lens' focus, moved: [m, m] of unit energy, its origin in the middle."""
    k = np.fft.fftfreq(PROBE, 1 / PROBE)
    radius = np.hypot(k[:, None], k)
    aperture = 1 / (1 + np.exp((radius - 0.175 * PROBE) / 0.7))
    probe = np.fft.fftshift(np.fft.ifft2(aperture * np.exp(1j * np.pi * defocus * radius ** 2 / PROBE)))
    return probe / np.linalg.norm(probe)


def make_positions(whole=True, seed=1):
    random = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(range(SIDE), range(SIDE), indexing="ij"), -1).reshape(-1, 2) * float(STEP)
    positions = grid + random.uniform(-2, 2, grid.shape) + MARGIN
    return np.round(positions) if whole else positions


def shifted(array, by):
    ky, kx = (np.fft.fftfreq(n) for n in array.shape)
    return np.fft.ifft2(np.fft.fft2(array) * np.exp(-2j * np.pi * (ky[:, None] * by[0] + kx * by[1])))


def make_patterns(obj, modes, positions, fresnel=None):
    """Expected counts [N, n, n], zero frequency at [0, 0] (near field: as a camera has them)."""
    patterns = []
    m = modes[0].shape[-1]
    k = np.fft.fftfreq(m, 1 / m)
    for position in positions:
        corner = np.floor(position + 0.5).astype(int)
        window = obj[corner[0]:corner[0] + m, corner[1]:corner[1] + m]
        waves = [window * (shifted(mode, position - corner) if (position != corner).any() else mode) for mode in modes]
        if fresnel:
            free = np.exp(-1j * np.pi * (k[:, None] ** 2 + k ** 2) / fresnel)
            waves = [np.fft.ifft2(free * np.fft.fft2(wave)) for wave in waves]
        else:
            waves = [np.fft.fft2(wave) for wave in waves]
        patterns.append(sum(abs(wave) ** 2 for wave in waves))
    return np.array(patterns)


class Case:
    """A scan: what the file has, the truth, and the options a user would give."""

    seed = 7  # of noise, errors of positions, and the beam of the near field

    def __init__(self, name, counts=1e5, start=None, modes=None, errors=0.0, near=False, options=""):
        random = np.random.default_rng(self.seed)
        self.name, self.options, self.object, self.fresnel = name, options, make_object(), None
        self.modes = [make_probe()] if modes is None else modes
        self.true = make_positions(whole=errors == 0)
        if near:  # a cone of light with features, on the whole detector
            self.fresnel = 40.0
            y, x = np.mgrid[:PROBE, :PROBE] - PROBE / 2
            rough = np.fft.ifft2(np.fft.fft2(random.normal(size=(PROBE, PROBE))) * np.exp(-(np.fft.fftfreq(PROBE)[:, None] ** 2 + np.fft.fftfreq(PROBE) ** 2) * 300)).real
            envelope = 1 / (1 + np.exp((np.hypot(y, x) - 24) / 1.5))
            self.modes = [envelope * np.exp(1j * rough / rough.std())]
        patterns = make_patterns(self.object, self.modes, self.true, self.fresnel)
        scale = counts / patterns.sum((1, 2)).mean()
        self.patterns = random.poisson(patterns * scale).astype(np.uint32)
        self.modes = [mode * np.sqrt(scale) for mode in self.modes]
        self.written = self.true + random.uniform(-errors, errors, self.true.shape)
        self.start = self.modes[0] if start is None else start

    def write(self, path):
        with h5py.File(path, "w") as file:
            if not self.fresnel:
                file["data"], file["scan"], file["probe"] = self.patterns, self.written, self.start.astype("c8")
                return
            # A camera so far away that the window has the Fresnel number; a parallel beam, nearly.
            pixel, wavelength, focus = 1e-6, 1e-10, 1e6
            entry = file.create_group("entry_1")
            detector = entry.create_group("instrument_1/detector_1")
            detector["distance"] = (PROBE * pixel) ** 2 / (wavelength * self.fresnel)
            detector["x_pixel_size"] = detector["y_pixel_size"] = pixel
            entry["instrument_1/source_1/wavelength"] = wavelength
            entry["instrument_1/source_1/illumination"] = self.start.astype("c8")
            entry["data_1/data"] = self.patterns
            entry["data_1/translation"] = np.c_[self.written[:, 1], self.written[:, 0], 0 * self.written[:, 0]] * pixel
            self.options += f" --focus-distance {focus}"

    def corner(self):
        """Of the program's object in that of the simulation, which begins where windows begin."""
        return self.written.min(0)


class Star:
    """A measured scan: no truth, only residuals."""

    name, options, fresnel = "star", "", None

    def __init__(self, path):
        with h5py.File(path) as file:
            self.patterns, self.written, self.start = (file[name][()] for name in ("data", "scan", "probe"))
        if self.start.dtype.names:
            self.start = self.start["r"] + 1j * self.start["i"]


def cases():
    disc = (np.hypot(*(np.mgrid[:PROBE, :PROBE] - PROBE // 2)) < 10).astype(complex)
    wide = make_probe()
    second = shifted(wide, (8, 0)) - shifted(wide, (-8, 0))
    second *= np.sqrt(0.2 / 0.8) * np.linalg.norm(wide) / np.linalg.norm(second)
    near_start = 1 / (1 + np.exp((np.hypot(*(np.mgrid[:PROBE, :PROBE] - PROBE / 2)) - 24) / 1.5)) + 0j
    return {
        **{f"dose-{counts:g}": lambda counts=counts: Case(f"dose-{counts:g}", counts=counts, start=make_probe(1.1 * DEFOCUS))
           for counts in (300, 2000, 4000)},
        "dose-1e3": lambda: Case("dose-1e3", counts=1e3, start=make_probe(1.1 * DEFOCUS)),
        "dose-1e6": lambda: Case("dose-1e6", counts=1e6, start=make_probe(1.1 * DEFOCUS)),
        "disc": lambda: Case("disc", start=disc),
        "defocus-10": lambda: Case("defocus-10", start=make_probe(1.1 * DEFOCUS)),
        "defocus-50": lambda: Case("defocus-50", start=make_probe(1.5 * DEFOCUS)),
        "modes": lambda: Case("modes", modes=[wide, second], start=wide, options="--modes 2"),
        "positions": lambda: Case("positions", errors=2.0, options="--refine-positions"),
        "near": lambda: Case("near", start=near_start, near=True),
    }


# ---- judgement

def light(case, shape, corner):
    sum_of = np.zeros((OBJECT, OBJECT))
    intensity = sum(abs(mode) ** 2 for mode in case.modes)
    for row, column in np.floor(case.true + 0.5).astype(int):
        sum_of[row:row + PROBE, column:column + PROBE] += intensity
    return sum_of


def compare(found, truth, weights):
    """Relative error after the best factor, ramp and shift, and truth with them."""
    rows, columns = truth.shape
    y, x = np.mgrid[:rows, :columns] / np.array([rows, columns])[:, None, None] - 0.5

    def aligned(q):
        t = shifted(truth, q[:2]) * np.exp(1j * (q[2] * y + q[3] * x))
        return t * (weights * found * t.conj()).sum() / (weights * abs(t) ** 2).sum()

    def error(q):
        t = aligned(q)
        return np.sqrt((weights * abs(found - t) ** 2).sum() / (weights * abs(t) ** 2).sum())

    starts = []
    for row in range(-3, 4):
        for column in range(-3, 4):
            cross = np.fft.fft2(weights * found * np.roll(truth, (row, column), (0, 1)).conj())
            at = np.unravel_index(np.argmax(abs(cross)), cross.shape)
            ramp = [2 * np.pi * (k if 2 * k < n else k - n) for k, n in zip(at, cross.shape)]
            starts.append((-abs(cross[at]), [row, column, *ramp]))
    best = None
    for _, start in sorted(starts)[:3]:
        simplex = np.vstack([start, *(np.array(start) + step for step in np.diag([0.4, 0.4, 1, 1]))])
        result = minimize(error, start, method="Nelder-Mead", options=dict(xatol=1e-3, fatol=1e-6, maxiter=600, initial_simplex=simplex))
        if best is None or result.fun < best.fun:
            best = result
    return best.fun, aligned(best.x)


def ring_correlation(a, b):
    a, b = np.fft.fft2(a), np.fft.fft2(b)
    n = min(a.shape)
    ring = np.minimum((np.hypot(*(np.meshgrid(*(np.fft.fftfreq(k) for k in a.shape), indexing="ij"))) * n).astype(int), n // 2)
    total = lambda values: np.bincount(ring.ravel(), values.ravel(), n // 2 + 1)[:n // 2]
    return (total((a * b.conj()).real) / np.sqrt(total(abs(a) ** 2) * total(abs(b) ** 2))).mean()


def judge(case, found, modes, positions, corner):
    """`found` lies in the simulation's object from `corner` on."""
    light_of = light(case, found.shape, corner)
    row, column = np.floor(np.asarray(corner) + 0.5).astype(int)
    top, left = max(0, -row), max(0, -column)
    found = found[top:, left:][:OBJECT - max(row, 0), :OBJECT - max(column, 0)]
    box = np.s_[max(row, 0):max(row, 0) + found.shape[0], max(column, 0):max(column, 0) + found.shape[1]]
    weights = (light_of[box] > 0.1 * light_of.max()).astype(float)
    error, truth = compare(found, case.object[box], weights)
    result = {"error": error, "ring": ring_correlation(weights * found, weights * truth)}
    if positions is not None:
        moved = (positions - case.true) - np.median(positions - case.true, 0)
        result["positions off"] = float(np.median(np.hypot(*moved.T)))
    if modes is not None and len(modes) > 1:
        power = np.sort(np.linalg.svd(modes.reshape(len(modes), -1), compute_uv=False) ** 2)[::-1]
        result["powers"] = [round(float(p), 3) for p in power / power.sum()]
    return result


def residual_of(case, found, modes, corners):
    """Sum (|model| - sqrt counts)^2 / sum counts of windows that begin at `corners` of the object, after the best factor."""
    modes, squares, products, measured = modes.reshape(-1, *modes.shape[-2:]), 0.0, 0.0, 0.0
    for corner, counts in zip(corners, case.patterns):
        model = np.sqrt(make_patterns(found, modes, corner[None], case.fresnel)[0])
        squares, products, measured = squares + (model ** 2).sum(), products + (model * np.sqrt(counts)).sum(), measured + counts.sum()
    return 1 - products ** 2 / (squares * measured)


# ---- programs

def run_timed(command):
    """The finished process, and the seconds of processors that it took: machines have other work, too."""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    start = used()
    done = subprocess.run(command, capture_output=True, text=True)
    return done, used() - start


def run_bracewell(program, path, options, folder):
    out = folder / "out.h5"
    command = [program, "--data", str(path), "--out", str(out), *options.split()]
    done, seconds = run_timed(command)
    if done.returncode:
        sys.exit(" ".join(command) + "\n" + done.stderr)
    with h5py.File(out) as file:
        found = file["object/amplitude"][()] * np.exp(1j * file["object/phase"][()])
        probe, positions = file["probe"][()], file["positions"][()]
    if probe.dtype.names:
        probe = probe["r"] + 1j * probe["i"]
    residual = re.search(r"(?:amplitude|Poisson) residual ([-+.e0-9]+)", done.stdout)
    return found, probe, positions, float(residual.group(1)) if residual else np.nan, seconds, done.stderr


PTYCHI = r"""
import sys, json, time, numpy as np, h5py, torch, ptychi.api as api
from ptychi.api.task import PtychographyTask
method, path, passes, modes, refine, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), sys.argv[6]
case = np.load(path)
data, scan, probe, fresnel = (case[name] for name in ('data', 'scan', 'probe', 'fresnel'))
near = fresnel > 0
if probe.ndim == 2:
    probe = probe[None]
m = probe.shape[-1]
probe = probe * np.sqrt(data.sum((1, 2)).mean() / (1 if near else data.shape[-1]**2) / (abs(probe)**2).sum())
while len(probe) < modes:
    probe = np.concatenate([probe, 0.3 * probe[:1] * (np.arange(m)[:, None] / m - 0.5)])
scan = scan - scan.min(0)
shape = tuple(int(v) for v in np.ceil(scan.max(0)) + m + 12)
centre = (scan.max(0) + m) / 2
options = api.LSQMLOptions() if method == 'lsqml' else api.RPIEOptions()
options.data_options.data = data if near else np.fft.fftshift(data, axes=(1, 2))
options.data_options.fft_shift = not near
if near:
    options.data_options.wavelength_m = 1e-10
    options.data_options.free_space_propagation_distance_m = (m * 1e-6)**2 / (1e-10 * float(fresnel))
options.reconstructor_options.num_epochs = passes
options.reconstructor_options.batch_size = -(-len(data) // max(1, len(data) // 16))
options.reconstructor_options.default_device = api.Devices.CPU
options.object_options.initial_guess = torch.ones((1, *shape), dtype=torch.complex64)
options.object_options.pixel_size_m = 1e-6 if near else 1.0
options.object_options.optimizable = True
options.probe_options.initial_guess = torch.tensor(probe[None].astype('c8'))
options.probe_options.optimizable = True
positions = scan + m / 2 - centre
options.probe_position_options.position_x_px = positions[:, 1]
options.probe_position_options.position_y_px = positions[:, 0]
options.probe_position_options.optimizable = bool(refine)
start = time.process_time()
task = PtychographyTask(options)
task.run()
seconds = time.process_time() - start
found = task.get_data_to_cpu('object', as_numpy=True)[0]
final = np.stack([task.get_probe_positions_y(as_numpy=True), task.get_probe_positions_x(as_numpy=True)], 1)
corner = np.round(centre) - np.array(found.shape) // 2
np.savez(out, found=found, probe=task.get_data_to_cpu('probe', as_numpy=True)[0], positions=final + centre - m / 2, seconds=seconds, corner=corner)
"""

PTYRAD = r"""
import sys, time, tempfile, numpy as np, torch
from ptyrad.params import PtyRADParams
from ptyrad.solver import PtyRADSolver
_, path, passes, modes, refine, out = sys.argv[1:7]
case = np.load(path)
data, scan, probe = (case[name] for name in ('data', 'scan', 'probe'))
if case['fresnel'] > 0:
    sys.exit('the near field is not there')
scan = scan - scan.min(0)
settings = {
    'init_params': dict(
        probe_kv=200, probe_conv_angle=10, probe_aberrations={}, meas_Npix=data.shape[-1], pos_N_scans=len(scan),
        pos_N_scan_slow=len(scan), pos_N_scan_fast=1, pos_scan_step_size=1.0, pos_scan_rand_std=0.0, probe_pmode_max=int(modes),
        obj_Nlayer=1, obj_slice_thickness=1.0, meas_calibration={'mode': 'dx', 'value': 0.2}, meas_source='custom',
        meas_params=np.fft.fftshift(data, axes=(1, 2)), probe_source='custom', probe_params=probe.reshape(-1, *probe.shape[-2:]).astype('c8'),
        pos_source='custom', pos_params=scan + 12),
    'recon_params': dict(NITER=int(passes), BATCH_SIZE={'size': 16}, SAVE_ITERS=None, output_dir=tempfile.mkdtemp(), save_result=[],
                         selected_figs=[], copy_params=False)}
settings = PtyRADParams(**settings).model_dump()
if not int(refine):  # found by default
    settings['model_params']['update_params']['probe_pos_shifts']['lr'] = 0
solver = PtyRADSolver(settings, device='cpu', seed=1)
start = time.process_time()
solver.reconstruct()
seconds = time.process_time() - start
model = solver.reconstruct_results
numpy = lambda tensor: tensor.detach().numpy()
found = (numpy(model.opt_obja) * np.exp(1j * numpy(model.opt_objp)))[0, 0]
first = solver.init.init_variables['crop_pos'] + solver.init.init_variables['probe_pos_shifts']
corner = np.median(scan - first, 0)
positions = numpy(model.crop_pos) + numpy(model.opt_probe_pos_shifts) + corner
np.savez(out, found=found, probe=numpy(torch.view_as_complex(model.opt_probe)), positions=positions, seconds=seconds, corner=corner)
"""

PEERS = {"pty-chi lsqml": PTYCHI, "pty-chi rpie": PTYCHI, "PtyRAD": PTYRAD}


def run_peer(python, peer, passes, case, folder):
    path = folder / "case.npz"
    np.savez(path, data=case.patterns.astype("f4"), scan=case.written, probe=case.start, fresnel=case.fresnel or 0)
    out = folder / "peer.npz"
    modes = 2 if "--modes" in case.options else 1
    done = subprocess.run([python, "-c", PEERS[peer], peer.split()[-1], str(path), str(passes), str(modes), str(int("--refine" in case.options)), str(out)],
                          capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    return np.load(out), ""


def show(name, who, passes, result):
    text = "  ".join(f"{key} {value:.4g}" if not isinstance(value, list) else f"{key} {value}" for key, value in result.items())
    print(f"{name:11} {who:16} {passes:>4} passes  {text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="*", default=["dose-1e3", "dose-1e6", "disc", "defocus-10", "defocus-50", "modes", "positions", "near", "star"],
                        help="dose-300, dose-2000 and dose-4000 there are, too: where the losses change")
    parser.add_argument("--seed", type=int, default=7, help="of the simulations")
    parser.add_argument("--passes", type=int, nargs="*", help="by default the program's own number; the star has 12")
    parser.add_argument("--options", default="", help="more options of the program")
    parser.add_argument("--program", default=str(HERE.parents[2] / "build/openmp/examples/bracewell-ptychography"))
    parser.add_argument("--star", help="siemens-star-small.h5; by default below BRACEWELL_TEST_DATA")
    parser.add_argument("--python", metavar="PYTHON", help="interpreter that has the peers")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--say", action="store_true", help="print what the program warns of")
    given = parser.parse_args()
    Case.seed = given.seed
    star = given.star or os.environ.get("BRACEWELL_TEST_DATA", "") + "/data/ptychography/siemens-star-small.h5"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case_name in given.cases:
            passes = given.passes or [None]
            if case_name == "star":
                case, path, passes = Star(star), star, given.passes or [12]
            else:
                case = cases()[case_name]()
                path = folder / (case_name + (".cxi" if case.fresnel else ".h5"))
                case.write(path)
            for count in passes:
                options = case.options + (f" --passes {count}" if count else "") + " " + given.options
                found, probe, positions, residual, seconds, said = run_bracewell(given.program, path, options, folder)
                result = {} if case_name == "star" else judge(case, found, probe, *frame(case, positions))
                show(case_name, "bracewell", count or 0, {**result, "residual": residual, "seconds": seconds})
                if given.say:
                    print("".join("    " + line + "\n" for line in said.splitlines() if "warning" in line), end="")
                for peer in given.peers if given.python else ():
                    compare_peer(given, case, peer, count or 60, None if given.passes else seconds, folder)


def frame(case, positions):
    """Positions where they were searched for, and the first row and column of the program's object, in the simulation's object."""
    if "--refine" not in case.options:
        return None, case.corner()
    corner = np.round(-np.median(positions - case.written, 0))  # the program's object has a margin
    return positions + corner, corner


def compare_peer(given, case, peer, passes, our_seconds, folder):
    """With `our_seconds` also for the passes that take as long."""
    theirs, failure = run_peer(given.python, peer, passes, case, folder)
    if theirs is None:
        print(f"{case.name:11} {peer}: {failure}")
        return
    seconds, offset = float(theirs["seconds"]), case.written.min(0)
    corner, found_at = offset + theirs["corner"], offset + theirs["positions"]
    truth = isinstance(case, Case)
    result = judge(case, theirs["found"], theirs["probe"], found_at if "--refine" in case.options else None, corner) if truth else {}
    left = residual_of(case, theirs["found"], theirs["probe"], found_at - corner)
    show(case.name, peer, passes, {**result, "residual": left, "seconds": seconds})
    if our_seconds:
        compare_peer(given, case, peer, max(1, round(passes * our_seconds / seconds)), None, folder)


if __name__ == "__main__":
    main()
