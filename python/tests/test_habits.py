# SPDX-License-Identifier: MIT
"""What users of Python do: fork, pickle, print, interrupt, pass arrays of any kind, and mistake arguments."""

import copy
import os
import pickle
import shlex
import subprocess

import bracewell
import fuzz_arguments
import numpy as np
import pytest
from bracewell import finufft
from test_arrays import interpreter

ANGLES = np.arange(9) * np.pi / 9


def run(script):
    done = subprocess.run([*interpreter(), "-c", script], capture_output=True, text=True, check=False, timeout=100)
    # Kokkos says this for a forked child, which must not end the parent's use of the GPU.
    said = done.stderr.replace("Kokkos::Cuda ERROR: Failed to call Kokkos::Cuda::finalize()\n", "") if bracewell.device_backend else done.stderr
    assert (done.returncode, said) == (0, "")
    return done.stdout.split("\n")[:-1]


FORK = """
import os, sys, warnings, numpy as np, bracewell
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, where any library has threads
def work():
    return bracewell.Tomography(np.arange(9) * np.pi / 9, 16).backproject(np.ones((9, 16))).shape
def child():
    sys.stdout.flush()
    if os.fork():
        return os.wait()[1]
    try:
        print(work())
    except RuntimeError as error:
        print(str(error))
    sys.exit(0)
print(child())
work()
print(child())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_works_before_the_first_call_and_is_told_after_it():
    unused, end, used, end_of_used = run(FORK)
    assert (unused, end, end_of_used) == ("(16, 16)", "0", "0")
    assert "expected calls in a process that was forked before the first call or spawned" in used


SPAWN = """
import multiprocessing, sys, numpy as np, bracewell
def pair():
    return bracewell.Tomography(np.arange(9) * np.pi / 9, 16)
def work(plan, k):
    return float(plan.backproject(np.full((9, 16), float(k))).sum())
class Slices:
    def __init__(self, plan):
        self.plan = plan
    def __len__(self):
        return 6
    def __getitem__(self, k):
        return work(self.plan, k)
if __name__ == "__main__":
    plan = pair()
    ours = [work(plan, k) for k in range(6)]
    multiprocessing.set_executable(LAUNCHER)
    if len(sys.argv) > 1:
        import torch
        batches = torch.utils.data.DataLoader(Slices(plan), num_workers=2, multiprocessing_context="spawn", batch_size=2)
        theirs = [float(one) for batch in batches for one in batch]
    else:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            theirs = pool.starmap(work, [(plan, k) for k in range(6)])
    print(theirs == ours)
"""


@pytest.mark.parametrize("library", [None, "torch"])
def test_spawned_processes_compute_with_plans_of_their_parent(tmp_path, library):
    """As DataLoader's workers do, after the parent has computed."""
    if library:
        pytest.importorskip(library)
    command = interpreter()
    launcher = tmp_path / "python"  # of an interpreter that is started in several words
    launcher.write_text("#!/bin/sh\nexec " + " ".join(map(shlex.quote, command)) + ' "$@"\n')
    launcher.chmod(0o755)
    script = tmp_path / "spawn.py"
    script.write_text(SPAWN.replace("LAUNCHER", repr(str(launcher))))
    done = subprocess.run([*command, str(script), *([library] if library else [])], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


INTERRUPT = """
import os, signal, threading, numpy as np, bracewell
matrices = np.linalg.qr(np.random.default_rng(0).normal(size=(1, 100000, 3, 3)))[0]
volume = np.ones((1, 32, 32, 17), complex)
few, sinogram = bracewell.Tomography(np.arange(20) * np.pi / 20, 32, units="line_integrals"), np.ones((20, 32))
before = few.project(np.eye(32))
images = bracewell.Expectation(np.ones((500, 32, 17), complex), np.ones((1, 17)))
reference = bracewell.PreparedReference(volume, interpolation="linear")
signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background ignore
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    WORK
    print("ended")
except KeyboardInterrupt:
    print("heard")
print((few.project(np.eye(32)) == before).all())
"""


@pytest.mark.parametrize("work", ["bracewell.project(volume, matrices, shape=(32, 32))",
                                  "images.run(reference, np.tile(matrices[0], (10, 1, 1)))",
                                  "bracewell.LeastSquaresSolver(few).solve(sinogram, iterations=10**7)"])
def test_long_calls_hear_the_keyboard(work):
    assert run(INTERRUPT.replace("WORK", work)) == ["heard", "True"]


def plans(rng):
    points = rng.uniform(-0.5, 0.5, (20, 2))
    yield bracewell.NonuniformFFT(points, (6, 7)), lambda plan: plan.adjoint(np.ones(20, complex))
    yield bracewell.ToeplitzNormal(points, (6, 7), np.ones(20)), lambda plan: plan.execute(np.ones((6, 7)))
    yield bracewell.NonuniformSums(points, points), lambda plan: plan.forward(np.ones(20, complex))
    for kind in (bracewell.Tomography, bracewell.FourierNormal, bracewell.ViewSlopes):
        yield kind(ANGLES, 8, shifts=np.ones(9)), lambda plan: plan.project(np.ones((8, 8)))
    yield bracewell.Laminography(ANGLES, 8, 6, 0.3), lambda plan: plan.project(np.ones((6, 8, 8)))
    yield bracewell.LeastSquaresSolver(bracewell.Tomography(ANGLES, 8)), lambda plan: plan.solve(np.ones((9, 8)), iterations=2)
    yield bracewell.AberratedProbe(6, 8, wavelength=0.02, pixel_size=0.2, convergence_angle=0.025), lambda plan: plan.evaluate(np.ones(5))
    plan = finufft.Plan(1, (6, 7))
    plan.setpts(*points.T.copy())
    yield plan, lambda plan: plan.execute(np.ones(20, complex))


def test_plans_are_copied_pickled_and_printed(rng):
    for plan, use in plans(rng):
        expected = use(plan)
        for other in (copy.deepcopy(plan), copy.copy(plan), pickle.loads(pickle.dumps(plan))):
            np.testing.assert_array_equal(use(other), expected)
            assert repr(other) == repr(plan)
        assert repr(plan).startswith(("bracewell." + type(plan).__name__ + "(", "bracewell.finufft.Plan("))
        assert len(repr(plan)) < 300


def test_what_holds_memory_is_not_copied():
    parameter = np.ones(3)
    reference = bracewell.PreparedReference(np.ones((1, 8, 8, 5), complex))
    loss = bracewell.PtychographyLoss(np.ones((1, 8, 8)), np.zeros((1, 2)), (8, 8), 8)
    for held in (bracewell.Adam([parameter], 0.1), reference, loss):
        with pytest.raises(TypeError, match="expected to stay in its process"):
            pickle.dumps(held)
        assert repr(held).startswith(f"bracewell.{type(held).__name__}(")


@pytest.mark.parametrize("kind", (np.complex64, np.complex128))
def test_points_are_replaced(rng, kind):
    points, samples = rng.uniform(-0.5, 0.5, (2, 30, 2)), rng.normal(size=30).astype(kind)
    plan = bracewell.NonuniformFFT(points[0], (6, 7))
    plan.adjoint(samples)
    compiled = [kept[1] for kept in plan._plans.values()]
    for count, again in ((30, True), (20, False), (20, True)):
        at = rng.uniform(-0.5, 0.5, (count, 2))
        plan.set_points(at)
        found = plan.adjoint(samples[:count])
        np.testing.assert_array_equal(found, bracewell.NonuniformFFT(at, (6, 7)).adjoint(samples[:count]))
        turns = np.indices((6, 7)).reshape(2, -1).T[:, ::-1] - [3, 3]  # columns x, y
        direct = (np.exp(2j * np.pi * turns @ at.T) @ samples[:count]).reshape(6, 7)
        assert np.linalg.norm(found - direct) < 1e-4 * np.linalg.norm(direct)
        assert ([kept[1] for kept in plan._plans.values()] == compiled) is again
        compiled = [kept[1] for kept in plan._plans.values()]
    for other in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        np.testing.assert_array_equal(other.adjoint(samples[:20]), found)


def test_points_that_are_refused_leave_nothing(rng):
    points, samples = rng.uniform(-0.5, 0.5, (2, 30, 2)), rng.normal(size=30) + 0j
    for plan, others in ((bracewell.NonuniformFFT(points[0], (6, 7)), ()), (bracewell.NonuniformSums(points[0], points[0] * 9), (points[1],))):
        use = plan.adjoint if not others else plan.forward
        use(samples)
        for wrong in (np.full((30, 2), np.nan), np.full((30, 3), 0.1)):
            plan.set_points(wrong, *others)
            for _ in range(2):
                with pytest.raises(ValueError, match="(points|targets): expected"):
                    use(samples)
        plan.set_points(points[1], *others)
        fresh = bracewell.NonuniformSums(points[1], *others).forward if others else bracewell.NonuniformFFT(points[1], (6, 7)).adjoint
        np.testing.assert_array_equal(use(samples), fresh(samples))


def test_points_of_sums_are_replaced(rng):
    values = rng.normal(size=30) + 1j * rng.normal(size=30)
    plan = bracewell.NonuniformSums(rng.uniform(-3, 3, (30, 2)), rng.uniform(-2, 2, (25, 2)), tolerance=1e-9)
    plan.forward(values)
    for reach, count in ((2, 30), (9, 30), (1, 12)):
        points, targets = rng.uniform(-reach, reach, (count, 2)), rng.uniform(-2, 2, (25, 2))
        plan.set_points(points, targets)
        direct = np.exp(2j * np.pi * targets @ points.T) @ values[:count]
        assert np.linalg.norm(plan.forward(values[:count]) - direct) < 1e-9 * np.linalg.norm(direct)


def test_finufft_takes_other_points(rng):
    for kind, modes in ((1, (6, 7)), (2, (6, 7)), (3, 2)):
        plan = finufft.Plan(kind, modes, eps=1e-9)
        for count in (30, 30, 20):
            x, y = rng.uniform(-3, 3, (2, count))
            targets = rng.uniform(-2, 2, (2, count)) if kind == 3 else np.indices((6, 7)).reshape(2, -1) - [[3], [3]]
            plan.setpts(x, y, None, *(targets if kind == 3 else ()))
            matrix = np.exp(1j * (targets[0][:, None] * x + targets[1][:, None] * y))
            if kind == 2:
                matrix = matrix.conj().T
            data = rng.normal(size=matrix.shape[1]) + 1j * rng.normal(size=matrix.shape[1])
            direct = matrix @ data
            found = plan.execute(data.reshape(6, 7) if kind == 2 else data).ravel()
            assert np.linalg.norm(found - direct) < 1e-9 * np.linalg.norm(direct)


def test_finufft_warns_where_the_tolerance_is_below_precision(rng):
    x, c = rng.uniform(-3, 3, 30), np.ones(30, complex)
    with pytest.warns(RuntimeWarning, match="eps: 1e-15 is below 1e-12"):
        found = finufft.nufft1d1(x, c, 8, eps=1e-15)
    np.testing.assert_allclose(found, np.exp(1j * np.outer(np.arange(8) - 4, x)).sum(1), rtol=1e-10)
    assert finufft.nufft1d1(x, c, 8, eps=0.5).shape == (8,)
    with pytest.raises(ValueError, match="eps: expected"):
        finufft.Plan(1, 8, eps=float("nan"))


def test_angles_have_a_unit(rng):
    sinogram = rng.normal(size=(9, 16))
    expected = bracewell.Tomography(ANGLES, 16).backproject(sinogram)
    np.testing.assert_allclose(bracewell.Tomography(np.degrees(ANGLES), 16, degrees=True).backproject(sinogram), expected, rtol=1e-12)
    steps = np.arange(9.0)  # nine steps of a radian, more than a turn
    within = bracewell.Tomography(np.angle(np.exp(1j * steps)), 16).backproject(sinogram)
    found = bracewell.Tomography(steps, 16, degrees=False).backproject(sinogram)
    assert np.linalg.norm(found - within) < 1e-4 * np.linalg.norm(within)
    for views in (180, 1800, 450):  # steps that are no round numbers, too
        for call in (lambda a: bracewell.Tomography(a, 16), lambda a: bracewell.Laminography(a, 16, 4, 0.1),
                     lambda a: bracewell.find_centre(np.ones((len(a), 16)), a), bracewell.angular_density_weights,
                     lambda a: bracewell.find_overlap(np.ones((len(a), 16)), a)):
            with pytest.raises(ValueError, match="angles: expected degrees=True or degrees=False"):
                call(np.arange(views) * 180 / views)


@pytest.mark.parametrize("change, words", [
    (lambda a: np.ma.masked_array(a, a > 0.5), "without a mask"),
    (lambda a: a.astype(np.longdouble), "found ndarray of type float128"),
    (lambda a: a.astype(object), "found ndarray of type object"),
])
def test_strange_arrays_are_told_why(rng, change, words):
    sinogram = rng.random((9, 16))
    with pytest.raises(TypeError, match=words):
        bracewell.Tomography(ANGLES, 16).backproject(change(sinogram))
    with pytest.raises(TypeError, match=words):
        bracewell.project(np.ones((1, 8, 8, 5), complex), change(np.eye(3)[None, None]))


def test_other_byte_orders_are_told_or_taken(rng):
    with pytest.raises(TypeError, match="bytes are in the other order"):
        bracewell.project(np.ones((1, 8, 8, 5), ">c16"), np.eye(3)[None, None])
    sinogram = rng.random((9, 16))
    np.testing.assert_array_equal(bracewell.Tomography(ANGLES, 16).backproject(sinogram.astype(">f8")),
                                  bracewell.Tomography(ANGLES, 16).backproject(sinogram))


@pytest.mark.parametrize("kind", [np.uint8, np.int64, bool, np.float16])
def test_counts_and_images_may_be_of_any_kind(rng, kind):
    image = rng.integers(0, 2, (8, 8))
    whole = rng.integers(0, 2, (4, 6, 8))
    beam, normal = bracewell.Tomography(ANGLES, 8), bracewell.ToeplitzNormal(np.zeros((2, 2)), (8, 8))
    for call, values in ((beam.project, image), (normal.execute, image), (bracewell.NonuniformFFT(np.zeros((2, 2)), (8, 8)).forward, image),
                         (bracewell.remove_outliers, whole), (lambda a: bracewell.bin_frames(a, 2), whole),
                         (lambda a: bracewell.turn_detector(a, 0.1), whole), (lambda a: bracewell.pad_centre(a, (12, 12)), whole),
                         (bracewell.LeastSquaresSolver(beam).solve, rng.integers(0, 2, (9, 8)))):
        np.testing.assert_array_equal(call(values.astype(kind)), call(values.astype(np.float32)))


MATRICES = np.eye(3)[None, None].repeat(4, 1)


ROWS = np.ones((2, 6, 5))


@pytest.mark.parametrize("call, words", [
    (lambda: bracewell.sample(np.ones((1, 4, 3), complex), ROWS, mates=3), "sample: mates: expected a word, found 3"),
    (lambda: bracewell.project(np.ones((1, 8, 8, 5), complex), MATRICES, interpolation=["linear"]), r"interpolation: expected a word, found \['linear'\]"),
    (lambda: bracewell.Laminography(np.arange(6.0), 5, 4, 0.3, method=None), "Laminography: method: expected a word, found None"),
    (lambda: bracewell.remove_stripes(ROWS, method=ROWS), r"remove_stripes: method: expected a word, found float64\[2, 6, 5\]"),
    (lambda: bracewell.remove_stripes(ROWS, window=1.5), "window: expected a whole number, found 1.5"),
    (lambda: bracewell.remove_stripes(ROWS, strength=None), "strength: expected a number, found None"),
    (lambda: bracewell.NonuniformFFT(ROWS[0], (4.5, 4)), "shape: expected a whole number, found 4.5"),
    (lambda: bracewell.NonuniformFFT(ROWS[0], 4), "shape: expected whole numbers, found 4"),
    (lambda: bracewell.Tomography("degrees", 5), "angles: expected numbers, found 'degrees'"),
    (lambda: bracewell.Tomography(np.zeros((2, 3)), 5), r"angles: expected one axis, found \[2, 3\]"),
    (lambda: bracewell.Tomography(np.zeros(6), 5, slices=0), "slices: expected at least 1, found 0"),
    (lambda: bracewell.evaluate_ctf(bracewell.CTFParameters(9000.0, 8000.0), (4, 4), 1.0, 3.0), "like: expected an array, found float"),
    (lambda: finufft.Plan(1, (4, 4), n_trans=0), "n_trans: expected at least 1, found 0"),
    (lambda: finufft.Plan(1, (4, 4), isign=float("nan")), "isign: expected a sign, found nan"),
])
def test_words_and_numbers_are_named(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_arguments_of_another_kind_end_in_a_sentence():
    assert not list(fuzz_arguments.unnamed(3))


def test_a_sign_of_zero_is_plus_as_in_finufft(rng):
    x, c = rng.uniform(-3, 3, 7), rng.normal(size=7) + 0j
    for kind, data in ((1, c), (2, c[:5])):
        plans = [finufft.Plan(kind, 5, isign=sign) for sign in (0, 1)]
        found = []
        for plan in plans:
            plan.setpts(x)
            found.append(plan.execute(data))
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("call, words", [
    (lambda: bracewell.project(np.ones((1, 8, 8, 5), complex), MATRICES, np.zeros((1, 5, 2))), "project: shifts: expected 1 or 4 poses"),
    (lambda: bracewell.project(np.ones((1, 8, 8, 5), complex), MATRICES, None, np.ones((1, 4, 8, 8))), "project: filters: expected"),
    (lambda: bracewell.project(np.ones((2, 8, 8, 5), complex), MATRICES.repeat(3, 0)), "matrices: expected 1 or 2 batches, as reconstruction"),
    (lambda: bracewell.backproject(np.ones((1, 5, 8, 5), complex), MATRICES), "matrices: expected 1 or 5 poses, as projections"),
    (lambda: bracewell.backproject(np.ones((1, 4, 8, 5), complex), np.eye(3)), "matrices: expected .batches, poses, 3, 3., found"),
    (lambda: bracewell.Tomography(ANGLES, 8).backproject(np.ones((8, 8))), "Tomography.backproject: sinograms: expected .slices, 9, 8. or .9, 8."),
    (lambda: bracewell.NonuniformFFT(np.zeros((5, 2)), (4, 4)).adjoint(np.ones(4, complex)), "NonuniformFFT.adjoint: samples: expected"),
    (lambda: bracewell.NonuniformFFT(np.zeros((5, 2)), (4, 4)).forward(np.ones(5, complex)), "NonuniformFFT.forward: images: expected"),
    (lambda: bracewell.NonuniformSums(np.zeros((5, 2)), np.zeros((3, 2))).adjoint(np.ones(5, complex)), "NonuniformSums.adjoint: sums: expected"),
    (lambda: bracewell.LeastSquaresSolver(bracewell.Tomography(ANGLES, 8)).solve(np.ones((9, 8)), weights=np.ones((8, 9))),
     "solve: weights: expected .9, 8., found .8, 9."),
    (lambda: bracewell.LeastSquaresSolver(bracewell.Tomography(ANGLES, 8)).solve(np.ones((9, 8)), np.ones(8)), "solve: start: expected .8, 8."),
    (lambda: bracewell.Laminography(ANGLES, 8, 6, 0.1).project(np.ones((8, 8))), "Laminography.project: volume: expected .6, 8, 8."),
])
def test_the_argument_that_is_wrong_is_blamed(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_progress_is_told(rng):
    loss = bracewell.PtychographyLoss(rng.random((4, 8, 8)), [[0, 0], [0, 2], [2, 0], [2, 2]], (10, 10), 8, scale="none")
    schedule, seen = bracewell.PtychographySchedule.of(4, passes=3), []
    solver = bracewell.PtychographySolver(loss, np.ones((8, 8), complex), schedule=schedule)
    losses = solver.run(progress=lambda *step: seen.append(step))
    assert seen == list(enumerate(losses, 1)) and len(seen) == 3


@pytest.mark.parametrize("policy", [None, "active"])
def test_threads_sleep_while_they_wait_unless_the_user_said_otherwise(policy):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")}
    if policy:
        environment["OMP_WAIT_POLICY"] = policy
    script = "import os, bracewell; print(os.environ.get('OMP_WAIT_POLICY'))"
    done = subprocess.run([*interpreter(), "-c", script], capture_output=True, text=True, check=True, timeout=100,
                          env={**environment, "OMP_DISPLAY_ENV": "true"})
    assert done.stdout.strip() == str(policy)  # as it was: others see nothing
    said = [line for line in done.stderr.splitlines() if "OMP_WAIT_POLICY" in line]
    assert not said or (policy or "passive").upper() in said[0]  # libgomp prints it, other libraries need not
