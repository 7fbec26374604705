# SPDX-License-Identifier: MIT
"""Runs the Python tests of FINUFFT, in a checkout of it, against `bracewell.finufft`:

python -m bracewell.finufft.run_peer_tests CHECKOUT [OPTIONS OF PYTEST]
"""

import sys

import bracewell.finufft
from bracewell._peer_tests import run

if __name__ == "__main__":
    sys.exit(run("finufft", bracewell.finufft, "python/finufft/test"))
