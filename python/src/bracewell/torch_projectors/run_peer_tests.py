# SPDX-License-Identifier: MIT
"""Runs the tests of torch-projectors, in a checkout of it, against `bracewell.torch_projectors`:

python -m bracewell.torch_projectors.run_peer_tests CHECKOUT [OPTIONS OF PYTEST]
"""

import os
import sys
import tempfile
from pathlib import Path

import pytest

import bracewell.torch_projectors


def main() -> int:
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "tests").is_dir():
        print("run_peer_tests: expected a checkout of torch-projectors, with a folder tests, found "
              f"{sys.argv[1] if len(sys.argv) > 1 else 'nothing'}", file=sys.stderr)
        return 2
    tests = Path(sys.argv[1]).resolve() / "tests"
    # Their tests import what is here, and leave their pictures where nobody looks.
    sys.modules["torch_projectors"] = bracewell.torch_projectors
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        return pytest.main([str(tests), "-p", "no:cacheprovider", "--import-mode=importlib", *sys.argv[2:]])


if __name__ == "__main__":
    sys.exit(main())
