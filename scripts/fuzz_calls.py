#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs python/tests/fuzz_arguments.py in processes of some thousand calls each, under a limit of memory: ./dev check calls."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

# What a sanitizer says where a call asked for more than there is: no mistake of the library.
OF_MEMORY = ("hard rss limit exhausted", "allocation-size-too-big", "out of memory", "exceeds maximum supported size", "out-of-memory")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--calls", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--each", type=int, default=2000, help="calls of a process")
    options.add_argument("--memory", type=int, default=3000, help="MB of a process")
    options.add_argument("--preload", default="", help="the sanitizer's library, and the C++ library")
    options.add_argument("--folder", default="build/check/calls")
    given = options.parse_args()

    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    journal, fuzzer = folder / "journal", Path(__file__).parents[1] / "python" / "tests" / "fuzz_arguments.py"
    environment = {**os.environ, "LD_PRELOAD": given.preload, "OMP_NUM_THREADS": "2", "PYTHONDONTWRITEBYTECODE": "1",
                   "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb={given.memory // 3}:"
                                   f"hard_rss_limit_mb={given.memory}:malloc_context_size=8:quarantine_size_mb=64",
                   "UBSAN_OPTIONS": "print_stacktrace=1"}
    done, seed, crashes, full, words = 0, given.seed, 0, 0, set()
    while done < given.calls:
        journal.unlink(missing_ok=True)
        count = min(given.each, given.calls - done)
        run = subprocess.run([given.python, str(fuzzer), str(count), str(seed), str(journal)], env=environment, capture_output=True, text=True,
                             errors="replace")
        # The journal tells how far a process came that did not end by itself.
        last = re.match(r"call (\d+), seed (\d+)", journal.read_text(errors="replace")) if journal.exists() else None
        if last is None:
            print(run.stdout, run.stderr, sep="\n", file=sys.stderr)
            sys.exit("fuzz_calls: expected calls, found none")
        done, seed = done + int(last[1]), int(last[2])
        if run.returncode == 0:
            words.update(line for line in run.stdout.splitlines()[1:])
        elif any(sentence in run.stderr for sentence in OF_MEMORY):
            full += 1
        else:
            crashes += 1
            report = folder / f"crash-{seed}"
            report.write_text(journal.read_text(errors="replace") + "\n" + run.stderr)
            print(f"crash ({run.returncode}): {journal.read_text(errors='replace').strip()[:300]}; see {report}", flush=True)
        print(f"{done} calls, seeds to {seed}: {crashes} crashes, {full} processes that wanted more memory", flush=True)
    for line in sorted(words):
        print(line)
    sys.exit(crashes != 0)


if __name__ == "__main__":
    main()
