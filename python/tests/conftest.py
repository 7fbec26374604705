# SPDX-License-Identifier: MIT
import json
import os
from pathlib import Path

import numpy as np
import pytest


class Golden:
    """Arrays and cases of a golden file, from an independent reference."""

    def __init__(self, prefix):
        text = json.loads(Path(f"{prefix}.json").read_text())
        blob = Path(f"{prefix}.bin").read_bytes()
        self.cases = text["cases"]
        self.arrays = {
            a["name"]: np.frombuffer(blob, a["dtype"], int(np.prod(a["shape"])), a["offset"]).reshape(a["shape"])
            for a in text["arrays"]
        }


@pytest.fixture(scope="session")
def golden():
    folder = Path(os.environ.get("BRACEWELL_TEST_DATA", "nowhere")) / "golden"
    if not folder.is_dir():
        pytest.skip("BRACEWELL_TEST_DATA names no folder with golden/")
    return lambda name: Golden(folder / name)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def relative_error(found, expected):
    return np.linalg.norm(np.ravel(found) - np.ravel(expected)) / max(np.linalg.norm(np.ravel(expected)), 1e-300)
