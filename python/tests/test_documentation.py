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


def test_what_the_table_of_parity_names_is_there():
    import bracewell

    headers = "\n".join(path.read_text() for path in (GUIDE.parents[1] / "include").rglob("*.hpp"))
    tables = (GUIDE.parent / "parity.md").read_text().split("\n## Tests of others")[0]
    rows = [line.strip().strip("|").split(" | ") for line in tables.split("\n")
            if line.startswith("|") and not line.startswith("|---")]
    assert len(rows) > 30

    def names(cell):
        return re.findall(r"`([A-Za-z_]\w+)(?:\(method[^`]*)?`", cell)

    for theirs, ours in rows:
        for name in names(theirs):
            assert re.search(rf"\b{name}\b", headers), name
        for name in names(ours.split(" - (")[0].split("- (")[0]) + (names(theirs) if "the same name" in ours else []):
            assert hasattr(bracewell, name), name
        for name in re.findall(r"`bracewell\.(\w+)`", ours):
            assert importlib.util.find_spec(f"bracewell.{name}"), name
    # Of what Python has, results of functions alone are not named.
    page = set(re.findall(r"\w+", (GUIDE.parent / "parity.md").read_text()))
    assert {name for name in bracewell.__all__ if not (isinstance(getattr(bracewell, name), type) and
                                                       issubclass(getattr(bracewell, name), tuple))} <= page
