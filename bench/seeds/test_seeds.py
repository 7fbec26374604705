#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The driver on tiny sizes, with programs that answer what is known beforehand, the page of its results, and the closed forms
against sums. Ends with an error where something is wrong."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import pictures

here = pathlib.Path(__file__).resolve().parent


def run(script, *arguments, fails=False):
    ended = subprocess.run([sys.executable, str(here / script), *map(str, arguments)], capture_output=True, text=True)
    assert (ended.returncode != 0) == fails, f"{script}: ended with {ended.returncode}: {ended.stderr}"
    return ended.stderr


def program(folder, name, lines):
    path = folder / name
    path.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    path.chmod(0o755)


def kernel(name, x):
    """The piecewise polynomials."""
    a = abs(x)
    if name == "linear":
        return max(0, 1 - a)
    if name == "catmull_rom":
        return (1.5 * a - 2.5) * a * a + 1 if a < 1 else ((-0.5 * a + 2.5) * a - 4) * a + 2 if a < 2 else 0
    return 2 / 3 + (a / 2 - 1) * a * a if a < 1 else (2 - a)**3 / 6 if a < 2 else 0


def closed_forms():
    steps = 4000
    for name, transform in pictures.TRANSFORMS.items():
        for v in (0, 0.1, 0.25, 0.5, 0.8, 1.3):
            total = sum(kernel(name, -2 + 4 * (i + 0.5) / steps) * math.cos(2 * math.pi * v * (-2 + 4 * (i + 0.5) / steps))
                        for i in range(steps)) * 4 / steps
            assert abs(total - transform(v)) < 1e-5, (name, v, total, transform(v))
        # More padding is more accurate, and the middle is not attenuated.
        assert pictures.correlation(name, 1) < pictures.correlation(name, 1.5) < pictures.correlation(name, 2) < 1
        assert abs(pictures.attenuation(name, 1, 0) - 1) < 1e-12


def geometry():
    n, half = 8, 2
    values = pictures.maps(n, half)
    angles = 2 * n - 1
    # Blocks have means, rounded down: of every addition at most a block's rounding is lost.
    added = 4 * sum(map(sum, values["collisions"]))
    assert angles * n * (2 * half + 1)**2 - 3 * n * n <= added <= angles * n * (2 * half + 1)**2, added
    assert max(map(max, values["rays"])) == angles
    for rays, projections in zip(values["rays"], values["projections"]):
        assert all(a <= b for a, b in zip(rays, projections)), "a ray outside the interval that is searched"


def main():
    closed_forms()
    geometry()
    published = json.loads((here / "published.json").read_text())
    tables = published["paper"]["tables"]
    assert [one["table"] for one in tables] == [1, 2, 3, 4, 5, 6, 7]
    for one in tables:
        assert all(len(row) == len(one["columns"]) for row in one["rows"]), one["table"]
        assert len({tuple(row[:4]) for row in one["rows"]}) == len(one["rows"]), one["table"]
    for one in tables[4:6]:  # the cells of Tables 3 and 4, measured once more
        first = {tuple(row[:3]): row for row in tables[one["table"] - 3]["rows"] if row[3] == "linear"}
        assert all(0.5 < row[4] / first[tuple(row[:3])][4] < 2 for row in one["rows"]), one["table"]

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        head = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,error_message,{}"
        program(folder, "bench_calls", ["Running on a machine", head.format('"us_per_call"'),
                                        '"calls/cpp/project/real_time",10,1.5,1.5,ms,,,,,,3.21'])
        program(folder, "bench_projectors", [head.format('"error","kproj_per_s"'), '"broken",,,,,,,,true,"differs"',
                                             '"project/2d_to_2d/linear/box:32/batch:1/poses:8/real_time",10,250,1,us,,,,,,1e-7,32'])
        results, docs = folder / "results", folder / "docs"
        said = run("seeds.py", "--quick", "--programs", folder, "--results", results, "--name", "cpu-test", "--parts",
                   "calls,operators,interpolation,doors,calls through C")
        assert "bench_calls_c is not built: skipped" in said, said
        one = json.loads((results / "cpu-test.json").read_text())
        assert one["parts"]["operators"]["rows"] == [{"name": "project/2d_to_2d/linear/box:32/batch:1/poses:8", "ms": 0.25, "error": 1e-7,
                                                      "kproj_per_s": 32.0}], one
        # A later call keeps what it does not measure.
        program(folder, "bench_calls", [head.format('"us_per_call"'), '"calls/cpp/project/real_time",10,1.5,1.5,ms,,,,,,4.56'])
        run("seeds.py", "--quick", "--programs", folder, "--results", results, "--name", "cpu-test", "--parts", "calls")
        one = json.loads((results / "cpu-test.json").read_text())
        assert one["parts"]["calls"]["rows"][0]["us_per_call"] == 4.56 and "operators" in one["parts"], one
        assert "found nonsense" in run("seeds.py", "--parts", "nonsense", "--results", results, fails=True)
        one["machine"]["gpu"] = None
        (results / "cpu-test.json").write_text(json.dumps(one))
        run("page.py", "--results", results, "--docs", docs)
        page = (docs / "claims.md").read_text()
        assert "| C++ | 4.56 |" in page, page
        assert "| Table 1 | 2D to 2D forward projection | 32 | 1 | 8 | linear | 120 | 32 |" in page, page
        run("page.py", "--results", results, "--docs", docs, "--check")
        (docs / "claims.md").write_text(page + "another line\n")
        assert "another" in run("page.py", "--results", results, "--docs", docs, "--check", fails=True)


main()
