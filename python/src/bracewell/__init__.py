# SPDX-License-Identifier: MIT
"""Fourier-space imaging operators with exact adjoints and hand-written gradients.

Arrays of NumPy, PyTorch, CuPy and JAX go in and come out without copies (DLPack), in float and double; on GPUs work is
queued on the caller's current stream. `bracewell.torch` has the same operators as differentiable functions,
`bracewell.torch_projectors` the functions of torch-projectors.
"""

import atexit as _atexit
import os as _os
import threading as _threading

# Threads sleep while they wait for each other, unless the user said how they wait: OpenMP's library reads the variable when
# it is loaded with the module. Other packages do not see it.
_quiet = not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY"} & _os.environ.keys()
if _quiet:
    _os.environ["OMP_WAIT_POLICY"] = "passive"
try:
    from . import _core
finally:
    if _quiet:
        del _os.environ["OMP_WAIT_POLICY"]
from .beamline import bin_frames, find_overlap, remove_outliers, retrieve_phase, turn_detector, weigh_half_acquisition
from .contrast import CTFParameters, ctf_gradients, evaluate_ctf, filter_gradients
from .gridding import NonuniformFFT, NonuniformSums, ToeplitzNormal
from .iterations import LeastSquaresSolver
from .lines import LineGradients, backproject_lines, project_lines, project_lines_gradients
from .points import InsertGradients, SampleGradients, insert, insert_gradients, sample, sample_gradients
from .projection import (BackprojectGradients, Expectation, Expected, PoseScores, PoseScoring, PreparedReference,
                         ProjectGradients, backproject, backproject_gradients, project, project_gradients, rotation_grid)
from .ptychography import AberratedProbe, Adam, PtychographyLoss, PtychographyResult, PtychographySchedule, PtychographySolver
from .reconstruct import (SignalAndNoise, correct_rolloff, crop_centre, equalise, fourier_shell_correlation, half_set_moments,
                          helical_operators, normalise, pad_centre, signal_and_noise, symmetrise, symmetry_operators,
                          wiener_prior)
from .scan import TomographyScan
from .tomography import (FourierNormal, Laminography, Tomography, ViewGradients, ViewSlopes, angular_density_weights,
                         filter_projections, find_centre, normalise_projections, remove_stripes)

__version__: str = _core.__version__
kokkos_version: str = _core.kokkos_version
device_backend: str = _core.device_backend
"""What GPU arrays are computed with: cuda, hip, or nothing."""

_core._set_main_thread(_threading.main_thread().ident)
# Before the interpreter takes its modules apart: plans that are left, then Kokkos.
_atexit.register(_core._finalize)

__all__ = [
    "AberratedProbe", "Adam", "BackprojectGradients", "CTFParameters", "Expectation", "Expected", "FourierNormal", "InsertGradients", "Laminography", "LeastSquaresSolver", "LineGradients",
    "NonuniformFFT", "NonuniformSums", "PoseScores", "PoseScoring", "PreparedReference", "ProjectGradients", "PtychographyLoss",
    "PtychographyResult", "PtychographySchedule", "PtychographySolver", "SampleGradients", "SignalAndNoise", "ToeplitzNormal", "Tomography", "TomographyScan",
    "ViewGradients", "ViewSlopes", "angular_density_weights", "backproject", "backproject_gradients", "backproject_lines", "bin_frames",
    "correct_rolloff", "crop_centre", "ctf_gradients", "device_backend", "equalise", "evaluate_ctf", "filter_gradients",
    "filter_projections", "find_centre", "find_overlap", "fourier_shell_correlation", "half_set_moments", "helical_operators", "insert", "insert_gradients",
    "kokkos_version", "normalise", "normalise_projections", "pad_centre", "project", "project_gradients", "project_lines", "project_lines_gradients", "remove_outliers",
    "remove_stripes", "retrieve_phase", "rotation_grid", "sample", "sample_gradients", "signal_and_noise",
    "symmetrise", "symmetry_operators", "turn_detector", "weigh_half_acquisition", "wiener_prior",
]
