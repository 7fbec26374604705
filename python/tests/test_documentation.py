# SPDX-License-Identifier: MIT
"""The guide's Python blocks run, one after the other as a reader would."""

import importlib.util
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def test_the_guide_runs():
    names, missing = {}, set()
    assert len(BLOCKS) == GUIDE.read_text().count("```python") > 4
    for needed, block in BLOCKS:
        if needed and importlib.util.find_spec(needed) is None:
            missing.add(needed)
        else:
            exec(compile(block, str(GUIDE), "exec"), names)
    if missing:
        pytest.skip(f"blocks that need {', '.join(sorted(missing))}, which is not installed; the others passed")
