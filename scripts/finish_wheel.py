#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts licences of what a wheel carries into it, and names the wheel of a GPU: python finish_wheel.py WHEEL --to FOLDER [--cuda 13]."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# libgomp comes with GCC, under the GPL with an exception for programs that GCC compiled.
CARRIED = """Bracewell has the MIT licence. This wheel also carries

    Kokkos                          Apache 2.0 with the LLVM exceptions
    pocketfft                       BSD, 3 clauses
    GCC's libraries                 GPL 3 with the GCC Runtime Library Exception, which leaves what is linked with them free

whose texts lie beside this one. Nothing else in it is under the GPL.
"""


def text_of(path):
    """A licence's text; of a header its first comment."""
    text = Path(path).read_text()
    return re.match(r"/\*(.*?)\*/", text, re.DOTALL)[1].strip() + "\n" if path.endswith("_hdronly.h") else text


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("wheel")
    options.add_argument("--to", required=True)
    options.add_argument("--cuda")
    options.add_argument("--licence", action="append", default=[], metavar="NAME=FILE")
    given = options.parse_args()

    def tool(*arguments):
        subprocess.run([sys.executable, "-m", "wheel", *arguments], check=True)

    with tempfile.TemporaryDirectory() as folder:
        tool("unpack", given.wheel, "--dest", folder)
        (root,) = Path(folder).iterdir()
        (info,) = root.glob("*.dist-info")
        licences = info / "licenses"
        licences.mkdir(exist_ok=True)
        (licences / "CARRIED").write_text(CARRIED)
        for licence in given.licence:
            name, _, path = licence.partition("=")
            (licences / f"LICENSE.{name}").write_text(text_of(path))
        metadata = (info / "METADATA").read_text()
        files = "".join(f"License-File: {path.name}\n" for path in sorted(licences.iterdir()))
        if given.cuda:
            metadata = metadata.replace("Name: bracewell\n", f"Name: bracewell-cu{given.cuda}\n", 1)
            files += "".join(f"Requires-Dist: {name}\n" for name in (f"nvidia-cuda-runtime>={given.cuda}", "nvidia-cufft>=12"))
            info = info.rename(root / info.name.replace("bracewell-", f"bracewell_cu{given.cuda}-", 1))
        head, blank, body = metadata.partition("\n\n")
        (info / "METADATA").write_text(head.rstrip("\n") + "\n" + files.rstrip("\n") + (blank or "\n") + body)
        Path(given.to).mkdir(parents=True, exist_ok=True)
        tool("pack", str(root), "--dest-dir", given.to)


if __name__ == "__main__":
    main()
