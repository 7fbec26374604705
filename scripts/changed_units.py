#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Translation units to look at after a change, from compile_commands.json and names of changed files on standard input.

Changed sources are taken as they are; changed headers stand for the unit that includes most of them, and so on, until every
header has a unit or there are --most. The same commits give the same units. What is left out is said on standard error."""

import argparse
import json
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def included_by(path, root):
    """The files of the repository that a file includes."""
    found = set()
    for bracket, name in INCLUDE.findall(path.read_text(errors="replace")):
        folders = [root / "include"] if bracket == "<" else [path.parent, root / "tests", root / "examples", root / "bench"]
        for folder in folders:
            candidate = (folder / name).resolve()
            if candidate.is_file() and root in candidate.parents:
                found.add(candidate)
                break
    return found


def reach(unit, root, memory):
    """All files that a unit includes, by whatever way, with the unit."""
    reached, waiting = {unit}, [unit]
    while waiting:
        path = waiting.pop()
        if path not in memory:
            memory[path] = included_by(path, root)
        new = memory[path] - reached
        reached |= new
        waiting += new
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", required=True, type=Path, metavar="FILE", help="compile_commands.json")
    parser.add_argument("--most", required=True, type=int, metavar="N", help="as many units at most")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent

    units = {Path(command["file"]).resolve() for command in json.loads(options.commands.read_text())}
    units = {unit for unit in units if unit.is_file() and root in unit.parents and root / "build" not in unit.parents}
    changed = {(root / line.strip()).resolve() for line in sys.stdin if line.strip()}
    changed = {path for path in changed if path.is_file() and path.suffix in (".cpp", ".hpp")}
    memory = {}
    reached = {unit: reach(unit, root, memory) for unit in units}
    # What no unit compiles: tests that do not compile, CUDA and HIP, Python's module.
    left = changed & set().union(*reached.values())

    chosen = []
    while left and len(chosen) < options.most:
        # Most files first, of these those of the tests that read least: they compile fastest.
        best = min(units, key=lambda unit: (-len(left & reached[unit]), len(reached[unit]), str(unit)))
        chosen.append(best)
        left -= reached[best]
    for unit in chosen:
        print(unit.relative_to(root))
    if left:
        print(f"{len(left)} changed files have no unit among the first {options.most}: "
              + ", ".join(sorted(str(path.relative_to(root)) for path in left)), file=sys.stderr)


if __name__ == "__main__":
    main()
