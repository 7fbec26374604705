#!/usr/bin/env python3
"""Changes the structure of a STAR file (columns, units, signs, duplicates, tables) and runs the cryo-EM programs on it with
--strict. A run is right where its output is that of the file before, or a sentence where it ends with one. What is neither is
silent: listed, and a failure unless the change is of a kind that nobody can see (another handedness of angles, say).

    fuzz_structure.py --programs build/test/examples [--runs N] [--seed K] [--jobs J]"""

import argparse
import array
import collections
import concurrent.futures
import math
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--programs", type=pathlib.Path, required=True)
parser.add_argument("--runs", type=int, default=300)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--jobs", type=int, default=os.cpu_count())
options = parser.parse_args()
programs = options.programs.resolve()
box, pixel, count = 24, 3.0, 240


class Table:
    def __init__(self, columns, rows):
        self.columns, self.rows = list(columns), [list(row) for row in rows]

    def values(self, name, change):
        """Changes the numbers of a column."""
        at = self.columns.index(name)
        for i, row in enumerate(self.rows):
            row[at] = change(i, row[at])

    def scale(self, name, factor):
        self.values(name, lambda i, text: "%.9g" % (float(text) * factor))

    def drop(self, name):
        at = self.columns.index(name)
        self.columns.pop(at)
        return [row.pop(at) for row in self.rows]

    def add(self, name, values):
        self.columns.append(name)
        for row, value in zip(self.rows, values):
            row.append(value)


class Star:
    def __init__(self, chance):
        self.optics = Table(("rlnOpticsGroup", "rlnVoltage", "rlnSphericalAberration", "rlnAmplitudeContrast",
                             "rlnImagePixelSize", "rlnImageSize", "rlnImageDimensionality"),
                            [("1", "300", "2.7", "0.1", "%g" % pixel, "%d" % box, "2")])
        rows = []
        for i in range(count):
            tilt = math.degrees(math.acos(chance.uniform(-1, 1)))
            rows.append(["%d@p.mrcs" % (i + 1), "%.4f" % chance.uniform(-180, 180), "%.4f" % tilt,
                         "%.4f" % chance.uniform(-180, 180), "%.4f" % chance.uniform(-5, 5), "%.4f" % chance.uniform(-5, 5),
                         "%.2f" % chance.uniform(11000, 20000), "%.2f" % chance.uniform(10000, 11000),
                         "%.2f" % chance.uniform(20, 180), "%.2f" % chance.uniform(20, 90), "%d" % (1 + i % 2), "1"])
        self.particles = Table(("rlnImageName", "rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi", "rlnOriginXAngst",
                                "rlnOriginYAngst", "rlnDefocusU", "rlnDefocusV", "rlnDefocusAngle", "rlnPhaseShift",
                                "rlnRandomSubset", "rlnOpticsGroup"), rows)
        self.tables = [("optics", self.optics), ("particles", self.particles)]
        self.text = lambda text: text

    def write(self, path):
        text = ""
        for name, table in self.tables:
            text += "\n# version 30001\n\ndata_%s\n\nloop_\n" % name
            text += "".join("_%s #%d\n" % (column, i + 1) for i, column in enumerate(table.columns))
            text += "".join(" ".join(row) + "\n" for row in table.rows)
        path.write_text(self.text(text), newline="")


numbers = ["rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi", "rlnOriginXAngst", "rlnOriginYAngst", "rlnDefocusU", "rlnDefocusV",
           "rlnDefocusAngle", "rlnPhaseShift"]
lens = ["rlnVoltage", "rlnSphericalAberration", "rlnAmplitudeContrast", "rlnImagePixelSize"]
changes = {}  # name: (function, whether what it does can be seen)


def change(visible=True):
    def enter(function):
        changes[function.__name__] = (function, visible)
        return function
    return enter


def table_of(star, name):
    return star.particles if name in star.particles.columns else star.optics


@change()
def column_missing(star, chance):
    name = chance.choice(numbers[:-1] + lens + ["rlnImageName", "rlnRandomSubset"])  # phase plates are seldom
    table_of(star, name).drop(name)
    return name


@change()
def column_misspelt(star, chance):
    name = chance.choice(numbers + lens)
    table = table_of(star, name)
    table.columns[table.columns.index(name)] = name[:4].lower() + name[4:].lower()
    return name


@change()
def column_twice(star, chance):
    name = chance.choice(numbers)
    values = star.particles.drop(name)
    star.particles.add(name, values)
    star.particles.add(name, ["%.4f" % chance.uniform(0, 100) for _ in values])
    return name


@change()
def columns_in_another_order(star, chance):
    table = star.particles
    order = chance.sample(range(len(table.columns)), len(table.columns))
    table.columns = [table.columns[i] for i in order]
    table.rows = [[row[i] for i in order] for row in table.rows]


@change()
def rows_in_another_order(star, chance):
    chance.shuffle(star.particles.rows)


@change()
def column_unknown(star, chance):
    star.particles.add("rlnNobodyKnows", ["%d" % i for i in range(count)])


@change()
def column_to_the_particles(star, chance):
    name = chance.choice(lens)
    star.particles.add(name, star.optics.drop(name) * count)
    return name


@change()
def origins_in_pixels(star, chance):
    for axis in "XY":
        values = star.particles.drop("rlnOrigin%sAngst" % axis)
        star.particles.add("rlnOrigin" + axis, ["%.6f" % (float(v) / pixel) for v in values])


@change()
def pixel_by_magnification(star, chance):
    star.optics.drop("rlnImagePixelSize")
    star.optics.add("rlnDetectorPixelSize", ["6"])
    star.optics.add("rlnMagnification", ["20000"])


@change()
def table_without_optics(star, chance):
    star.tables.pop(0)


@change()
def all_in_one_table(star, chance):
    for name in lens:
        star.particles.add(name, star.optics.drop(name) * count)
    star.tables = [("", star.particles)]


@change()
def tables_swapped(star, chance):
    star.tables.reverse()


@change()
def table_twice(star, chance):
    star.tables.append(("particles", star.particles))


@change()
def table_renamed(star, chance):
    star.tables[1] = (chance.choice(["images", "micrographs", "model_classes"]), star.particles)


@change()
def particles_none(star, chance):
    star.particles.rows = []


@change()
def value_wrong(star, chance):
    name = chance.choice(numbers)
    value = chance.choice(["nan", "inf", "x", "1e999", "--3", "1,5", "''"])
    star.particles.rows[chance.randrange(count)][star.particles.columns.index(name)] = value
    return f"{name} {value}"


@change()
def row_of_another_length(star, chance):
    row = star.particles.rows[chance.randrange(count)]
    chance.choice([row.pop, lambda: row.append("1")])()


@change()
def image_not_there(star, chance):
    star.particles.rows[chance.randrange(count)][0] = chance.choice(
        ["0@p.mrcs", "241@p.mrcs", "-1@p.mrcs", "1@q.mrcs", "p.mrcs", "1@", "x@p.mrcs"])


@change()
def group_not_there(star, chance):
    star.particles.rows[chance.randrange(count)][-1] = chance.choice(["2", "0", "x"])


@change()
def group_twice(star, chance):
    star.optics.rows.append(list(star.optics.rows[0]))


@change()
def half_set_wrong(star, chance):
    value = chance.choice(["0", "3", "1.5", "all 1", "odd"])
    if value == "all 1":
        star.particles.values("rlnRandomSubset", lambda i, text: "1")
    else:
        star.particles.rows[5][10] = value
    return value


@change()
def size_or_dimension_wrong(star, chance):
    name, value = chance.choice([("rlnImageSize", "25"), ("rlnImageDimensionality", "3")])
    star.optics.values(name, lambda i, text: value)
    return name


@change()
def rows_twice(star, chance):
    how = chance.choice(["one", "all", "other half set", "other pose"])
    for row in [list(row) for row in (star.particles.rows if how == "all" else chance.sample(star.particles.rows, 1))]:
        if how == "other half set":
            row[10] = "21"[int(row[10]) - 1]
        if how == "other pose":
            row[1] = "7"
        star.particles.rows.append(row)
    return how


@change()
def classes_mixed(star, chance):
    star.particles.add("rlnClassNumber", ["%d" % (1 + i % 3) for i in range(count)])


@change()
def unit_of_defocus(star, chance):
    factor = chance.choice([1e-4, 1e-4, 0.1, 10, 1e-10, 1e4])
    for name in ("rlnDefocusU", "rlnDefocusV"):
        star.particles.scale(name, factor)
    return factor


@change()
def unit_of_angles(star, chance):
    for name in numbers[:3]:
        star.particles.scale(name, math.pi / 180)


@change()
def unit_of_phase(star, chance):
    star.particles.scale("rlnPhaseShift", math.pi / 180)


@change()
def unit_of_the_lens(star, chance):
    name, factor = chance.choice([("rlnVoltage", 1000), ("rlnVoltage", 1e-3), ("rlnSphericalAberration", 1000),
                                  ("rlnSphericalAberration", 1e7), ("rlnAmplitudeContrast", 100), ("rlnImagePixelSize", 0.1),
                                  ("rlnImagePixelSize", 1e-10), ("rlnImagePixelSize", 10)])
    star.optics.scale(name, factor)
    return f"{name} {factor}"


@change()
def sign_of_the_lens(star, chance):
    name = chance.choice(lens)
    star.optics.scale(name, -1)
    return name


@change()
def sign_of_defocus(star, chance):
    for name in ("rlnDefocusU", "rlnDefocusV"):
        star.particles.scale(name, -1)


@change()
def sign_of_b_factors(star, chance):
    star.optics.add("rlnCtfBfactor", [chance.choice(["-50", "-4000"])])


@change()
def singular_magnification(star, chance):
    for name, value in zip(("rlnMagMat00", "rlnMagMat01", "rlnMagMat10", "rlnMagMat11"),
                           chance.choice(["0 0 0 0", "1 1 1 1", "nan 0 0 1"]).split()):
        star.optics.add(name, [value])


@change()
def scale_of_zero(star, chance):
    star.particles.add("rlnCtfScalefactor", ["0" if i == 3 else "1" for i in range(count)])


@change()
def column_of_other_programs(star, chance):
    name = chance.choice(["rlnCtfImage", "rlnTomoParticleName", "cisTEMAnglePsi", "emdlAngle"])
    star.particles.add(name, ["1"] * count)
    return name


@change()
def text_of_other_systems(star, chance):
    kind = chance.choice(["lines", "mark", "tabs", "quotes", "comment", "UTF-16"])
    star.text = {"lines": lambda text: text.replace("\n", "\r\n"), "mark": lambda text: "\ufeff" + text,
                 "tabs": lambda text: re.sub(r"(?<=\S) (?=\S)", "\t", text),
                 "quotes": lambda text: re.sub(r"(\d+@p\.mrcs)", r'"\1"', text),
                 "comment": lambda text: text.replace("loop_", "# a comment\nloop_"),
                 "UTF-16": lambda text: "\ufeff" + "\0".join(text)}[kind]
    return kind


@change()
def defocus_failed(star, chance):
    row = star.particles.rows[chance.randrange(count)]
    row[6] = chance.choice(["0", "900000", "60000"])
    if row[6] == "0":
        row[7] = "0"
    return row[6]


@change(visible=False)
def sign_of_poses(star, chance):
    name = chance.choice(numbers[:5])
    star.particles.scale(name, -1)
    return name


@change(visible=False)
def columns_swapped(star, chance):
    first, second = chance.choice([(1, 3), (4, 5), (2, 8)])
    for row in star.particles.rows:
        row[first], row[second] = row[second], row[first]


def mrc(path, sections, values):
    header = bytearray(1024)
    struct.pack_into("<10i3f3f3i", header, 0, box, box, sections, 2, 0, 0, 0, box, box, sections, pixel * box, pixel * box,
                     pixel * sections, 90, 90, 90, 1, 2, 3)
    struct.pack_into("<2i", header, 88, 1, 0)
    header[208:216] = b"MAP DD\0\0"
    path.write_bytes(bytes(header) + array.array("f", values).tobytes())


def density():
    blobs = [(3, 2, -1, 1.6, 1), (-4, 1, 2, 1.4, 1.3), (0, -4, -3, 1.8, 0.9), (1, 4, 4, 1.5, 1.1), (-2, -2, 5, 1.4, 0.8)]
    half = box // 2
    return [sum(h * math.exp(-((x - half - a)**2 + (y - half - b)**2 + (z - half - c)**2) / (2 * s * s))
                for a, b, c, s, h in blobs) for z in range(box) for y in range(box) for x in range(box)]


commands = {"project": "--map map.mrc --star p.star --ctf --out out.mrcs",
            "reconstruct": "--star p.star --out out.mrc",
            "refine": "--star p.star --iterations 1 --radius 6 --out out.star"}


def start(program, folder, strict=True):
    command = [str(programs / f"bracewell-{program}"), *commands[program].split()] + (["--strict"] if strict else [])
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})


def result(program, folder, by_name=True):
    """What a run wrote, as numbers in an order that does not depend on that of rows."""
    names = read_names(folder / "p.star")
    if program == "refine":
        lines = [line.split() for line in (folder / "out.star").read_text().splitlines()]
        rows = [line for line in lines if any("@" in word for word in line)]
        first_row = next(i for i, line in enumerate(lines) if any("@" in word for word in line))
        last = max(i for i in range(first_row) if lines[i] == ["loop_"])
        columns = [line[0] for line in lines[last:first_row] if line and line[0].startswith("_rln")]
        wanted = [columns.index(f"_rlnAngle{name}") for name in ("Rot", "Tilt", "Psi")]
        image = columns.index("_rlnImageName")
        return [float(row[i]) for row in sorted(rows, key=lambda row: row[image].strip('"')) for i in wanted]
    content = (folder / ("out.mrc" if program == "reconstruct" else "out.mrcs")).read_bytes()
    values = array.array("f", content[1024 + struct.unpack_from("<i", content, 92)[0]:]).tolist()
    if program == "project":
        size = box * box
        images = [values[i:i + size] for i in range(0, len(values), size)]
        if by_name and len(names) == len(set(names)) == len(images):
            values = [v for _, one in sorted(zip(names, images), key=lambda pair: pair[0]) for v in one]
    return values


def read_names(path):
    return re.findall(r"\S*@p\.mrcs", path.read_text(errors="replace").replace('"', ""))


def same(a, b):
    if len(a) != len(b):
        return False
    return math.dist(a, b) <= 2e-3 * math.hypot(*b)


scratch = pathlib.Path(tempfile.mkdtemp(prefix="bracewell-structure-"))
first = scratch / "first"
first.mkdir()
mrc(first / "map.mrc", box, density())
Star(random.Random(1)).write(first / "p.star")
if start("project", first).returncode != 0:
    sys.exit(start("project", first).stderr)
shutil.move(first / "out.mrcs", first / "p.mrcs")
(first / "out.star").unlink()
expected = {}
for program in list(commands):
    done = start(program, first)
    if done.returncode != 0:
        sys.exit(f"{program}: {done.stderr}")
    expected[program] = result(program, first)
in_order = array.array("f", (first / "p.mrcs").read_bytes()[-4 * count * box * box:]).tolist()


def run(number):
    chance = random.Random(f"{options.seed} {number}")
    program = list(commands)[number % 3]
    name = chance.choice([one for one in changes if not (program == "project" and one in ("rows_twice", "particles_none"))])
    function, visible = changes[name]
    folder = scratch / str(number)
    folder.mkdir()
    for file in ("map.mrc", "p.mrcs"):
        (folder / file).symlink_to(first / file)
    star = Star(random.Random(1))
    detail = function(star, chance)
    star.write(folder / "p.star")
    done = start(program, folder)
    what = f"{program}: {name}" + ("" if detail is None else f" ({detail})")
    if done.returncode in (1, 2) and f"bracewell-{program}: " in done.stderr and "Bracewell::" not in done.stderr:
        kind = "sentence"
    elif done.returncode == 0:
        found = result(program, folder)
        right = same(found, expected[program]) or (
            program == "project" and same(result(program, folder, False), in_order))  # it replaces names
        kind = "right" if right else "silent" if visible else "cannot be seen"
    else:
        kind = f"ended with {done.returncode}"
    shutil.rmtree(folder)
    return kind, what


with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
    outcomes = list(pool.map(run, range(options.runs)))
counts = collections.Counter(kind for kind, _ in outcomes)
for kind, what in sorted(set(outcomes)):
    if kind not in ("right", "sentence"):
        print(f"fuzz_structure: {kind}: {what}")
print(f"structure: {options.runs} runs, " + ", ".join(f"{number} {kind}" for kind, number in counts.most_common()))
shutil.rmtree(scratch)
if set(counts) - {"right", "sentence", "cannot be seen"}:
    sys.exit(1)
