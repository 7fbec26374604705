# SPDX-License-Identifier: MIT
"""What arrays are taken, and what is said about those that are not; how the module begins and ends."""

import importlib.metadata
import subprocess
import sys
import threading
from pathlib import Path

import bracewell
import numpy as np
import pytest
from packaging.version import Version

VOLUME = np.ones((1, 8, 8, 5), np.complex64)
MATRICES = np.eye(3, dtype=np.float32)[None, None]


class OnlyDlpack:
    """An array of a library that nobody has heard of."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("change, error, words", [
    (dict(matrices=MATRICES.astype(np.float64)), TypeError, "matrices: expected float32, the precision of reconstruction, found float64"),
    (dict(matrices=MATRICES.astype(np.complex64)), TypeError, "matrices: expected float32, the precision of reconstruction, found complex64"),
    (dict(reconstruction=VOLUME.real.copy()), TypeError, "reconstruction: expected complex64 or complex128, found float32"),
    (dict(reconstruction=[[1]]), TypeError, "reconstruction: expected an array, found list"),
    (dict(matrices="identity"), TypeError, "matrices: expected an array, found str"),
    (dict(reconstruction=VOLUME[:, ::2]), ValueError, "reconstruction: expected rows without gaps"),
    (dict(matrices=np.ones((1, 1, 2, 2), np.float32)), ValueError, r"project: matrices: expected \[batches, poses, 3, 3\], found \[1, 1, 2, 2\]"),
    (dict(shifts=np.ones((1, 2, 3), np.float32)), ValueError, r"project: shifts: expected \[batches, poses, 2\], found"),
    (dict(interpolation="nearest"), ValueError, "interpolation: expected linear, catmull_rom or cubic_bspline, found nearest"),
    (dict(width=7), ValueError, "reconstruction: expected 4 columns, as its full width is 7, found 5"),
    (dict(oversampling=float("nan")), ValueError, "oversampling: expected .* found"),
    (dict(out=np.zeros((1, 1, 8, 4), np.complex64)), ValueError, "projections: expected .* found"),
])
def test_wrong_arguments_are_told_in_one_sentence(change, error, words):
    arguments = dict(reconstruction=VOLUME, matrices=MATRICES)
    arguments.update(change)
    with pytest.raises(error, match=words) as caught:
        bracewell.project(**arguments)
    assert "\n" not in str(caught.value)


def test_an_output_that_cannot_be_written_is_refused():
    out = np.zeros((1, 1, 8, 5), np.complex64)
    out.flags.writeable = False
    with pytest.raises(TypeError, match="projections: expected an array .DLPack. that can be written"):
        bracewell.project(VOLUME, MATRICES, out=out)


def test_arrays_that_cannot_be_written_are_read():
    volume = VOLUME.copy()
    volume.flags.writeable = False
    assert bracewell.project(volume, MATRICES)[0, 0, 1, 1] == 1


def test_any_array_with_dlpack_is_read_without_a_copy():
    assert bracewell.project(OnlyDlpack(VOLUME), OnlyDlpack(MATRICES))[0, 0, 1, 1] == 1


def test_outputs_are_written_in_place():
    out = np.zeros((1, 1, 8, 5), np.complex64)
    assert bracewell.project(VOLUME, MATRICES, out=out) is out
    assert out[0, 0, 1, 1] == 1


def test_the_package_has_the_version_of_the_headers():
    names = set(importlib.metadata.packages_distributions().get("bracewell", []))
    if not names:
        pytest.skip("this package was not installed by pip")
    (name,) = names  # bracewell, or bracewell-cu13
    assert Version(importlib.metadata.version(name)) == Version(bracewell.__version__)


def test_jax_arrays_go_in_and_come_out():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.default_device(jax.devices("cpu")[0]):
        found = bracewell.project(jax.numpy.asarray(VOLUME), jax.numpy.asarray(MATRICES))
    assert isinstance(found, jax.Array) and found[0, 0, 1, 1] == 1
    if jax.default_backend() == "gpu" and bracewell.device_backend:
        with pytest.raises(TypeError, match="expected JAX arrays in host memory.*cupy.from_dlpack"):
            bracewell.project(jax.numpy.asarray(VOLUME), jax.numpy.asarray(MATRICES))


def test_other_threads_run_meanwhile():
    """Work of two threads on one plan: each gets its own result."""
    beam = bracewell.Tomography(np.arange(30) * np.pi / 30, 32)
    inputs = [np.full((1, 30, 32), value, np.float32) for value in (1, 2, 3, 4)]
    expected, found = [beam.backproject(array) for array in inputs], [None] * 4

    def work(i):
        for _ in range(5):
            found[i] = beam.backproject(inputs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)


PLANS_AT_EXIT = """
import bracewell, numpy, atexit
beam = bracewell.Tomography(numpy.arange(8) * numpy.pi / 8, 16)
fft = bracewell.NonuniformFFT(numpy.zeros((3, 2)), (8, 8))
beam.backproject(numpy.ones((1, 8, 16)))
fft.adjoint(numpy.ones((1, 3), complex))
keep = [beam, fft]
keep.append(keep)  # a cycle that nobody collects
import builtins
builtins.kept = keep
print(bracewell.__version__)
"""


def test_plans_that_are_left_do_not_disturb_the_end():
    done = subprocess.run([*interpreter(), "-c", PLANS_AT_EXIT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0.")


def interpreter():
    """The command that runs this Python again: its program, and a loader that it may have been started by."""
    words = Path("/proc/self/cmdline").read_text().split("\0")
    program = next((i for i, word in enumerate(words) if Path(word).name.startswith("python")), None)
    return [sys.executable] if program is None else words[:program + 1]
