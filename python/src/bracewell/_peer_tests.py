# SPDX-License-Identifier: MIT
"""Runs a peer's own tests, from a checkout of it, against the module here that has its functions."""

import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest


def run(peer: str, ours: ModuleType, folder: str, *options: str) -> int:
    """Runs the tests in `folder` of the checkout that the first argument names, which import `peer`; the other arguments go to
    pytest. Returns its exit status, or 2 where there is no such folder."""
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / folder).is_dir():
        print(f"run_peer_tests: expected a checkout of {peer}, with a folder {folder}, found "
              f"{sys.argv[1] if len(sys.argv) > 1 else 'nothing'}", file=sys.stderr)
        return 2
    tests = Path(sys.argv[1]).resolve() / folder
    # Their tests import what is here, and leave their files where nobody looks.
    sys.modules[peer] = ours
    with tempfile.TemporaryDirectory() as elsewhere:
        os.chdir(elsewhere)
        return pytest.main([str(tests), "-p", "no:cacheprovider", *options, *sys.argv[2:]])
