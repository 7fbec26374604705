# SPDX-License-Identifier: MIT
"""Calls every function and plan with arguments out of range. `python python/tests/fuzz_arguments.py [CALLS] [SEED] [JOURNAL]`: each
call ends in a result, or in an error of one sentence; after a crash the journal names the seed, the function and what was changed.
`./dev check calls [CALLS] [SEED]` does so with a module that was built for sanitizers."""

import faulthandler
import os
import sys
import warnings

import numpy as np

import bracewell
from bracewell import cufinufft, finufft

KINDS = [np.float32, np.float64, np.complex64, np.complex128, np.int32, np.int64, np.uint8, bool, np.float16, object, ">f4"]
WORDS = ["linear", "fourier", "line", "log_polar", "amplitude", "poisson", "none", "ramp", "edge", "zero", "sorting", "wavelet", "all",
         "offset", "paganin", "weak_object", "sirt", "total_variation", "pattern", "signed", "", "x" * 50, "reconstruction", "matrices"]
NUMBERS = [0, 1, -1, 2, 3, 5, 0.5, -0.5, 1e-3, 1e3, 1e9, -1e9, 1e30, float("nan"), float("inf"), -float("inf"), True, None]
SMALL = [0, 1, 2, 3, 4, 5, 8, 9]


class Arguments:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def pick(self, values):
        return values[self.random.integers(len(values))]

    def array(self, shape=None, kind=None):
        shape = tuple(self.pick(SMALL) for _ in range(self.random.integers(0, 6))) if shape is None else shape
        kind = self.pick(KINDS) if kind is None else kind
        values = np.asarray(self.random.normal(size=shape)) * self.pick([0, 1, 1, 1, 1e6, 1e30])
        if self.random.random() < 0.1 and values.size:
            values.flat[0] = self.pick([np.nan, np.inf, -1])
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.array(values.astype(kind))
        if self.random.random() < 0.05:
            array.flags.writeable = False
        if self.random.random() < 0.05:
            array = np.ma.masked_array(array)
        return array[..., ::2] if self.random.random() < 0.05 and array.ndim else array

    def anything(self):
        choice = self.random.random()
        if choice < 0.55:
            return self.array()
        if choice < 0.75:
            return self.pick(NUMBERS)
        if choice < 0.85:
            return self.pick(WORDS)
        return tuple(self.pick(SMALL + [-1, 10**6, 0.5]) for _ in range(self.random.integers(0, 4)))


def likely(some):
    """Calls that would be right but for a changed argument, by name: a function, and its arguments."""
    n, poses = some.pick([4, 5, 8]), some.pick([1, 2, 3])
    real, wave = some.pick([(np.float32, np.complex64), (np.float64, np.complex128)])
    half = (n, n // 2 + 1)
    volume, images = some.array((1, n, *half), wave), some.array((1, poses, *half), wave)
    matrices = np.linalg.qr(some.random.normal(size=(1, poses, 3, 3)))[0].astype(real)
    poses_ = dict(matrices=matrices, shifts=some.array((1, poses, 2), real), filters=some.array((1, poses, *half), real), width=n)
    angles = np.arange(6) * np.pi / 6
    beam, rows, image = dict(angles=angles, width=n), some.array((2, 6, n), real), some.array((2, n, n), real)
    points = some.random.uniform(-0.5, 0.5, (7, 2))
    patterns, positions = abs(some.array((3, n, n), real)), some.random.uniform(0, 2, (3, 2))
    optics = bracewell.CTFParameters(9000.0, 8000.0)

    def plan(kind, made, method, **arguments):
        def call(**given):
            built = {name: given.pop(name) for name in list(given) if name in made}
            return getattr(kind(**built), method)(**given)

        call.__qualname__ = f"{kind.__name__}.{method}"
        return call, {**made, **arguments}

    def ptychography(object, probe, subset, **given):
        return bracewell.PtychographyLoss(**given).evaluate(object, probe, subset=subset)

    def solver(probe, subset, patterns, steps, object_rate, probe_rate, regularisation, **given):
        loss = bracewell.PtychographyLoss(patterns, scale="none", **given)
        made = bracewell.PtychographySolver(loss, probe, steps=steps, object_rate=object_rate, probe_rate=probe_rate,
                                            regularisation=regularisation)
        made.step(subset)
        return made.amplitude, made.losses()

    scan = dict(patterns=patterns, positions=positions, object_shape=(n + 3, n + 3), probe_size=n, modes=1)
    yield bracewell.project, dict(reconstruction=volume, **poses_)
    yield bracewell.project_gradients, dict(reconstruction=volume, cotangent=images, shape=(n, n), **poses_)
    yield bracewell.backproject, dict(projections=images, weights=abs(some.array(images.shape, real)), **poses_)
    yield bracewell.backproject_gradients, dict(projections=images, data=volume, shape=(n, n, n), **poses_)
    yield plan(bracewell.PreparedReference, dict(reconstruction=volume, width=n, interpolation="linear"), "project", matrices=matrices)
    yield plan(bracewell.Tomography, dict(beam, method="fourier", centre=None, shifts=None), "backproject", sinograms=rows)
    yield plan(bracewell.Tomography, dict(beam, method="line", units="transpose", image=n, slices=None), "project", images=image)
    yield plan(bracewell.FourierNormal, dict(beam), "normal", images=image)
    yield plan(bracewell.ViewSlopes, dict(beam), "gradients", images=image, cotangents=rows)
    yield plan(bracewell.Laminography, dict(beam, rows=4, tilt=0.3, method="fourier", depth=4), "project",
               volume=some.array((4, n, n), real))
    yield plan(bracewell.NonuniformFFT, dict(points=points, shape=(n, n), tolerance=1e-4, oversampling=None), "adjoint",
               samples=some.array((2, 7), wave))
    yield plan(bracewell.ToeplitzNormal, dict(points=points, shape=(n, n), weights=None), "execute", images=image)
    yield plan(bracewell.NonuniformFFT, dict(points=points, shape=(n, n)), "point_gradients", images=some.array((n, n), wave),
               samples=some.array((7,), wave))
    yield plan(bracewell.NonuniformSums, dict(points=points, targets=points), "forward", values=some.array((7,), wave))
    places = some.array((1, 6, 3), real)
    lists = dict(points=places, interpolation="linear", mates="single")
    yield bracewell.sample, dict(lists, grid=volume, width=n)
    yield bracewell.sample_gradients, dict(lists, grid=volume, cotangent=some.array((1, 6), wave), wanted=("grid", "points"), width=n)
    yield bracewell.insert, dict(lists, values=some.array((1, 6), wave), shape=(n, n, n), batches=None)
    yield bracewell.insert_gradients, dict(lists, values=some.array((1, 6), wave), cotangent=volume, wanted=("values", "points"), width=n)
    lens = dict(probe_size=n, detector=n + 1, wavelength=0.02, pixel_size=0.2, convergence_angle=0.025)
    yield plan(bracewell.AberratedProbe, lens, "evaluate", parameters=some.array((5,), real))
    yield plan(bracewell.AberratedProbe, lens, "gradients", parameters=some.array((5,), real), probe_gradient=some.array((n, n), wave))
    yield plan(bracewell.Adam, dict(parameters=[image.copy()], learning_rates=0.1), "step", gradients=[image])
    yield plan(cufinufft.Plan, dict(nufft_type=2, n_modes=(n, n), eps=1e-4, upsampfac=0), "setpts", x=points[:, 0], y=points[:, 1])
    yield plan(finufft.Plan, dict(nufft_type=1, n_modes=(n, n), n_trans=1, eps=1e-4, isign=1, dtype="complex128", modeord=0), "setpts",
               x=points[:, 0], y=points[:, 1])
    yield finufft.nufft2d1, dict(x=points[:, 0], y=points[:, 1], c=some.array((7,), wave), n_modes=(n, n), eps=1e-4)
    yield ptychography, dict(scan, object=some.array((n + 3, n + 3), wave), probe=some.array((n, n), wave), loss="amplitude",
                             subset=np.array([0, 2], np.int32), weights=None, fresnel_number=None)
    yield solver, dict(scan, probe=some.array((n, n), wave), subset=np.array([1], np.int32), steps="adam", object_rate=0.1, probe_rate=0.1,
                       regularisation=1)
    yield bracewell.evaluate_ctf, dict(parameters=optics, shape=(n, n), pixel_size=1.0, like=rows)
    yield bracewell.ctf_gradients, dict(parameters=optics, pixel_size=1.0, value_gradients=some.array((1, *half), real), width=n)
    yield bracewell.filter_gradients, dict(projections=images, cotangent=images, shared=())
    yield bracewell.pad_centre, dict(centred=image, shape=(n + 2, n + 2))
    yield bracewell.crop_centre, dict(padded=image, shape=(n - 1, n - 1))
    yield bracewell.correct_rolloff, dict(volume=image, padded=(n, n), interpolation="linear")
    yield bracewell.normalise, dict(data=volume, weight=abs(some.array(volume.shape, real)), wiener=0.1, floor=0.2, radius=None, edge=1.0,
                                    prior=np.ones((1, n // 2 + 1)), interpolation="linear", width=n)
    yield bracewell.symmetrise, dict(spectrum=volume, operators="C2", interpolation="linear", radius=None, width=n)
    yield bracewell.half_set_moments, dict(first_data=volume, first_weight=abs(some.array(volume.shape, real)), second_data=volume,
                                           second_weight=abs(some.array(volume.shape, real)), prior=np.ones((1, n // 2 + 1)), shells=None,
                                           width=n)
    yield bracewell.signal_and_noise, dict(moments=np.ones((4, 7)), interpolation="linear", whole_shells=None)
    yield bracewell.wiener_prior, dict(powers=[[1.0] * 4] * 3, oversampling=2.0, part=0.3)
    yield bracewell.equalise, dict(weight=abs(some.array(volume.shape, real)), box=(n // 2,) * 3, prior=np.ones((1, n // 2 + 1)), steps=3,
                                   tolerance=0.02, keep_power=True, radius=None, width=n)
    yield bracewell.helical_operators, dict(rise=1.5, twist=20.0, count=3, group="C1")
    yield bracewell.fourier_shell_correlation, dict(first=volume, second=volume, shells=None, width=n)
    yield bracewell.filter_projections, dict(sinograms=rows, filter="ramp", padding="edge", shift=0.0)
    yield bracewell.remove_stripes, dict(sinograms=rows, method="sorting", window=3, levels=2, strength=1.0, damping=1.0, dead=3.0,
                                   valid=some.array(rows.shape, real))
    yield bracewell.find_centre, dict(sinogram=rows[0], angles=angles, first=None, last=None, valid=some.array(rows.shape[1:], real))
    yield bracewell.find_overlap, dict(sinogram=rows[0], angles=2 * angles, least=0, valid=None)
    yield bracewell.normalise_projections, dict(raw=some.array((6, 2, n), real), dark=None, flat=None, air=(0, 0), return_valid=True)
    yield bracewell.remove_outliers, dict(sinograms=rows, window=3, threshold=0.5)
    yield bracewell.turn_detector, dict(sinograms=rows, angle=0.1, row=0.0, column=0.0)
    yield bracewell.bin_frames, dict(frames=rows, bin=2)
    yield bracewell.weigh_half_acquisition, dict(sinograms=rows, centre=float(n))
    yield bracewell.retrieve_phase, dict(sinograms=rows, wavelength=1e-10, distance=0.1, pixel_size=1e-6, delta_beta=100.0, padding=None)
    yield bracewell.angular_density_weights, dict(angles=angles)
    yield bracewell.rotation_grid, dict(degrees=40.0)
    yield plan(bracewell.LeastSquaresSolver, dict(pair=bracewell.Tomography(angles, n)), "solve", sinograms=rows[0], iterations=2)
    yield plan(bracewell.Expectation, dict(images=images[0], noise=np.ones((1, n), real), width=n, best=1), "run",
               matrices=matrices[0], reference=bracewell.PreparedReference(np.ones((1, n, *half), wave), width=n),
               priors=np.ones(len(matrices[0]), real), share=0.9)
    yield plan(bracewell.PoseScoring, dict(images=images[0], width=n, best=1), "score", matrices=matrices[0],
               reference=bracewell.PreparedReference(np.ones((1, n, *half), wave), width=n))


def main(calls=1000, seed=0, journal=None):
    faulthandler.enable()
    book = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if journal else None
    warnings.simplefilter("ignore")
    outcomes, lines = {}, set()
    done = 0
    while done < calls:
        seed += 1
        some = Arguments(seed)
        for function, arguments in likely(some):
            arguments, name, changed = dict(arguments), None, []
            for _ in range(some.random.integers(0, 3)):
                name = some.pick(sorted(arguments))
                arguments[name] = some.anything()
                changed.append(name)
            done += 1
            if book is not None:
                what = {name: arguments[name] for name in changed}
                os.pwrite(book, f"call {done}, seed {seed}: {getattr(function, '__qualname__', function)}: {what}".ljust(2000)[:2000].encode() + b"\n", 0)
            # Sizes that are right in principle and fill the memory are no mistake.
            if name == "degrees" or any(isinstance(value, (int, float)) and abs(value) >= 1e3 and value == value for value in arguments.values()) or \
                    any(isinstance(value, tuple) and 10**6 in value for value in arguments.values()):
                continue
            try:
                with np.errstate(all="ignore"):
                    function(**arguments)
                outcome = "result"
            except Exception as error:  # noqa: BLE001
                outcome, words = type(error).__name__, str(error)
                where = getattr(function, "__qualname__", str(function))
                if isinstance(error, MemoryError) or "allocation" in words:
                    outcome = "no memory"
                elif not isinstance(error, (ValueError, TypeError, NotImplementedError)) or "\n" in words:
                    lines.add(f"{where}: {name}: {outcome}: {words.splitlines()[0][:110]}")
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(f"{done} calls, seeds to {seed}: {outcomes}")
    return sorted(lines)


STRANGERS = [object(), np.arange(6.0).reshape(2, 3), "x" * 50, -1, [1, [2, 3]], None, {"a": 1}, np.zeros((0, 3)), float("inf"), 1j, ()]


def unnamed(seed):
    """Every argument in turn as something that it cannot be: the errors that are no sentence with what was expected."""
    for function, arguments in likely(Arguments(seed)):
        for name in sorted(set(arguments) - {"degrees"}):
            for stranger in STRANGERS + [2**70] * isinstance(arguments[name], int) + [np.float32(2)] * hasattr(arguments[name], "shape"):
                try:
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        function(**{**arguments, name: stranger})
                except Exception as error:  # noqa: BLE001
                    words = str(error)
                    if not isinstance(error, (ValueError, TypeError, NotImplementedError)) or "\n" in words or "expected" not in words:
                        yield f"{getattr(function, '__qualname__', function)}: {name}: {type(error).__name__}: {words[:200]}"


if __name__ == "__main__":
    for line in main(*map(int, sys.argv[1:3]), *sys.argv[3:4]):
        print(line)
