#!/usr/bin/env python3
"""Runs the commands of the pages in a fresh clone: check_pages.py [--programs FOLDER] [--slow] [--data FOLDER] [PAGE...].

A command is what a block of sh has (or a block without a language that begins with a command), line by line or as far as the shell reads on, and what a cell
of a table has that begins with `bracewell-`. docs/commands.txt says what a page needs before, what is left out and why, and what a command has to print.
--list only tells what would be done, and fails where a rule of docs/commands.txt has no command any more."""

import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STARTS = re.compile(r"(\./dev|bracewell-|build/|cmake|mpirun|srun|export|pip|python)\b|bracewell-")
BUILDERS = ["README.md", "examples/README.md"] # make the programs that other pages run
ACTIONS = ("before", "skip", "slow", "with", "in", "prints", "replace")


def pages():
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if not name.startswith(("docs/lab/", "tests/", "CHANGELOG")) and (ROOT / name).exists()]


def whole(text):
    """Whether the shell takes the text for complete commands."""
    if text.endswith("\\"):
        return False
    return subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0


def commands_of(page):
    """Lines and commands of a page, in order."""
    found, block, gathered, start = [], None, "", 0
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        fence = line.strip()
        if fence.startswith("```"):
            block = None if block is not None else fence[3:]
            first = True
            continue
        if block is None:
            found += [(number, cell) for cell in re.findall(r"`(bracewell-\w+ -[^`]*--out [^`]*)`", line) if line.startswith("|")]
            continue
        if block == "" and first:
            block = "sh" if STARTS.match(line) else "text"
        first = False
        if block != "sh" or not (gathered or line.strip()):
            continue
        start = start if gathered else number
        gathered += line if not gathered else "\n" + line
        if whole(gathered):
            found.append((start, gathered))
            gathered = ""
    return found


def rules():
    """By page: lists of [action, beginning of a command, text]."""
    by_page, page = {}, None
    for number, line in enumerate((ROOT / "docs/commands.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            page = by_page.setdefault(line.strip("[] "), [])
            continue
        action, _, rest = line.partition(" ")
        start, _, text = rest.partition(" :: ")
        if action not in ACTIONS or page is None or (action != "before" and not text):
            sys.exit(f"docs/commands.txt:{number}: expected an action, the beginning of a command, ' :: ' and a text, found `{line}`")
        page.append([action, start.strip() if action != "before" else rest, text])
    return by_page


def decide(page, command, by_page, options):
    """What is done with a command: reason to skip it or None, the command as it is run, its folder, what it has to print, a remark."""
    reason, folder, prints, remark = None, None, [], ""
    for action, start, text in by_page.get("all", []) + by_page.get(page, []):
        if action == "before" or not command.startswith(start):
            continue
        if action == "skip":
            reason = text
        elif action == "slow" and not options.slow:
            reason = f"slow ({text}); --slow runs it"
        elif action == "with":
            added, _, why = text.partition(" | ")
            command, remark = f"{command} {added}", f"with {added}: {why}"
        elif action == "in":
            folder = text
        elif action == "prints":
            prints.append(text)
        elif action == "replace":
            old, new = text.split(" ", 1)
            command = command.replace(old, new)
    if reason is None and "$DATA" in command and not options.data:
        reason = "needs the public data, which BRACEWELL_TEST_DATA names"
    return reason, command, folder, prints, remark


def tile(stack, micrograph):
    """Makes a micrograph of the first 16 images of a stack, four in a row."""
    data = Path(stack).read_bytes()
    n = struct.unpack("<i", data[:4])[0]
    starts = [[1024 + 4 * n * (n * image + y) for image in range(4 * band, 4 * band + 4)] for band in range(4) for y in range(n)]
    rows = [[data[start:start + 4 * n] for start in row] for row in starts]
    header = bytearray(data[:1024])
    header[:12] = header[28:40] = struct.pack("<3i", 4 * n, 4 * n, 1)
    header[40:52] = struct.pack("<3f", *(4 * x for x in struct.unpack("<2f", data[40:48])), struct.unpack("<f", data[40:44])[0] / n)
    Path(micrograph).write_bytes(bytes(header) + b"".join(b"".join(row) for row in rows))


def check_list(by_page):
    """Faults of docs/commands.txt."""
    faults = []
    everything = {page: [command for _, command in commands_of(page)] for page in pages()}
    for page, entries in by_page.items():
        if page not in ("all", "inputs") and page not in everything:
            faults.append(f"docs/commands.txt: there is no page {page}")
            continue
        for action, start, _ in entries:
            among = sum(everything.values(), []) if page == "all" else everything.get(page, [])
            if action != "before" and not any(command.startswith(start) for command in among):
                faults.append(f"docs/commands.txt: {page} has no command `{start}`")
    # Ten questions, each answered in 200 words on a page that the README links to.
    sections = re.split(r"^## ", (ROOT / "docs/questions.md").read_text(), flags=re.M)[1:]
    long = [section.split("\n")[0] for section in sections if len(re.findall(r"[^\s|]*\w[^\s|]*", section)) > 200]
    faults += [f"docs/questions.md: more than 200 words: {title}" for title in long]
    if len(sections) != 10 or "(docs/questions.md)" not in (ROOT / "README.md").read_text():
        faults.append(f"docs/questions.md: expected ten questions, to which the README links, found {len(sections)}")
    return faults


def report(page, logs, index, entry, show):
    """Prints what became of a command; returns passed, failed or skipped."""
    line, command, reason, prints, remark = entry
    shown = " ".join(command.split())
    shown = shown if len(shown) <= 110 else shown[:107] + "..."
    if reason:
        verdict, note = "skipped", reason
    else:
        log, code = logs / f"{index}.log", logs / f"{index}.rc"
        text = log.read_text(errors="replace") if log.exists() else ""
        code, seconds = code.read_text().split() if code.exists() else ("none", "?")
        missing = [pattern for pattern in prints if not re.search(pattern, text)]
        verdict = "passed" if code == "0" and not missing else "failed"
        note = f"{seconds} s" + (f"; {remark}" if remark else "") + (f"; exit code {code}" if code != "0" else "")
        note += "".join(f"; prints no `{pattern}`" for pattern in missing)
        last = text.splitlines()[-12 if verdict == "failed" else -6:] if verdict == "failed" or show else []
        note += "".join("\n    " + line for line in last)
    print(f"{verdict}  {page}:{line}  {shown}  ({note})", flush=True)
    return verdict


def run_page(page, found, by_page, options, clone, home):
    """Runs the commands of a page in one shell; prints a line for each, and returns how many passed, failed and were skipped."""
    logs = home / "logs"
    subprocess.run(["rm", "-rf", str(logs)], check=True)
    logs.mkdir()
    subprocess.run(["git", "clean", "-fdxq", "-e", "build", "-e", ".deps"], cwd=clone, check=True)
    script, entries = [], []
    for action, start, _ in by_page.get(page, []):
        if action == "before":
            script.append(f"{start} || echo '{page}: what it needs before was not made' >&2")
    for index, (line, command) in enumerate(found):
        reason, command, folder, prints, remark = decide(page, command, by_page, options)
        entries.append((line, command, reason, prints, remark))
        if not reason:
            (logs / f"{index}.sh").write_text(command + "\n")
            enter, leave = (f"pushd '{clone / folder}' >/dev/null; ", "; popd >/dev/null") if folder else ("", "")
            script.append(f"begin=$SECONDS; {enter}. '{logs}/{index}.sh' >'{logs}/{index}.log' 2>&1 </dev/null; "
                          f"echo $? $((SECONDS - begin)) >'{logs}/{index}.rc'{leave}")
        script.append(f"echo ended {index}")
    count, reported = {"passed": 0, "failed": 0, "skipped": 0}, 0
    with subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=clone, env=options.environment, stdout=subprocess.PIPE, text=True) as shell:
        for line in shell.stdout:
            if line.startswith("ended "):
                count[report(page, logs, reported, entries[reported], options.show)] += 1
                reported += 1
    for index in range(reported, len(entries)): # a command ended the shell
        count[report(page, logs, index, entries[index], options.show)] += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="a folder with programs that stand for those that the clone would build")
    parser.add_argument("--slow", action="store_true", help="run what builds for minutes, too")
    parser.add_argument("--data", type=Path, default=os.environ.get("BRACEWELL_TEST_DATA"), help="the folder with data/, the public data")
    parser.add_argument("--show", action="store_true", help="show the last lines that each command printed")
    parser.add_argument("--inputs", type=Path, help="the inputs of pages, if they have been made already")
    parser.add_argument("--list", action="store_true", help="check docs/commands.txt, and run nothing")
    parser.add_argument("--tile", nargs=2, metavar=("STACK", "MICROGRAPH"), help="make a micrograph of the first 16 images of a stack, and nothing else")
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    if options.tile:
        return tile(*options.tile)
    by_page = rules()
    faults = check_list(by_page)
    if options.list or faults:
        print("\n".join(faults) or f"{sum(len(commands_of(page)) for page in pages())} commands in {len(pages())} pages")
        return 1 if faults else 0
    total, begin = {"passed": 0, "failed": 0, "skipped": 0}, time.time()
    with tempfile.TemporaryDirectory(prefix="bracewell-pages-") as folder:
        home, clone = Path(folder), Path(folder) / "bracewell"
        inputs = options.inputs.resolve() if options.inputs else home / "inputs"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        if options.programs:
            (clone / "build/openmp").mkdir(parents=True)
            (clone / "build/openmp/examples").symlink_to(options.programs.resolve())
            print(f"Programs of {options.programs} stand for those that the clone would build.")
        if (ROOT / ".deps").exists() and not options.slow:
            (clone / ".deps").symlink_to(ROOT / ".deps") # what was installed or unpacked already
            os.environ.setdefault("CMAKE_PREFIX_PATH", str(ROOT / ".deps/usr")) # as docs/install.md says for use without ./dev
        options.environment = dict(os.environ, HOME=str(home), INPUTS=str(inputs), CHECK_PAGES=str(Path(__file__).resolve()),
                                   PATH=f"{clone}/build/openmp/examples:{os.environ['PATH']}", OMPI_MCA_rmaps_base_oversubscribe="1",
                                   PYTHONDONTWRITEBYTECODE="1")
        if options.data:
            options.environment["BRACEWELL_TEST_DATA"] = str(options.data)
        for page in sorted(options.pages or pages(), key=lambda page: BUILDERS.index(page) if page in BUILDERS else len(BUILDERS)):
            wants = any("$INPUTS" in start for action, start, _ in by_page.get(page, []) if action == "before")
            if wants and not inputs.exists():
                inputs.mkdir()
                made = "set -e\n" + "\n".join(start for _, start, _ in by_page.get("inputs", []))
                made = subprocess.run(["bash", "-c", made], cwd=inputs, env=options.environment, capture_output=True, text=True)
                if made.returncode != 0:
                    print(f"What pages take for given was not made:\n{made.stderr}")
            found = commands_of(page)
            if found:
                for verdict, number in run_page(page, found, by_page, options, clone, home).items():
                    total[verdict] += number
    print(f"This took {time.time() - begin:.0f} s; {total['skipped']} skipped")
    print(f"{total['passed']} passed, {total['failed']} failed")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
