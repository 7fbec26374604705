# SPDX-License-Identifier: MIT
"""Runs the tests of torch-projectors, in a checkout of it, against `bracewell.torch_projectors`:

python -m bracewell.torch_projectors.run_peer_tests CHECKOUT [OPTIONS OF PYTEST]
"""

import sys

import bracewell.torch_projectors
from bracewell._peer_tests import run

if __name__ == "__main__":
    sys.exit(run("torch_projectors", bracewell.torch_projectors, "tests", "--import-mode=importlib"))
