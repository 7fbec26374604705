#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes docs/claims.md and its pictures from published.json and the files in results/, from which machine they may be.

`--check` says whether the page and the pictures are those of the files. `./dev seeds --page` calls it.
"""
import argparse
import json
import pathlib
import sys

import pictures

here = pathlib.Path(__file__).resolve().parent
root = here.parents[1]


def number(value, digits=3):
    """As tables have it: three digits, thousands separated."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{round(value, -int(len(str(int(value))) - digits)):,.0f}" if value >= 10**digits else f"{value:,.0f}"
    return f"{value:.{digits}g}" if value < 100 else f"{value:.0f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


class Results:
    """The files of results, the paper's GPU first."""

    def __init__(self, folder):
        self.machines = {}
        for path in sorted(folder.glob("*.json")):
            self.machines[path.stem] = json.loads(path.read_text())
        order = ["h100", "h200", "gpu", "cpu"]

        def rank(item):
            name, one = item
            kind = "gpu" if one["machine"]["gpu"] else "cpu"
            return next(i for i, word in enumerate(order) if word in name or word == kind), name

        self.ordered = sorted(self.machines.items(), key=rank)

    def part(self, name, gpu=True, key=""):
        """A part of the first machine that has it, with the key, and what the machine is called."""
        for _, one in self.ordered:
            if bool(one["machine"]["gpu"]) == gpu and name in one["parts"] and (not key or key in one["parts"][name]):
                return one["parts"][name], one["machine"]["gpu"] or one["machine"]["cpu"]
        return None, None

    def rows(self, name, gpu=True):
        part, machine = self.part(name, gpu)
        return ({row["name"]: row for row in part["rows"]} if part else {}), part, machine


def caption(part, machine, extra=""):
    return f"*Ours: {part['date']}, {machine}. `{part['command']}`.{' ' + extra if extra else ''}*"


def doors_cells(results, gpu=True, key="cells", name="doors"):
    """Rates through Python: (operator, box, batch, poses, interpolation) to forward, both; in thousands a second."""
    part, machine = results.part(name, gpu, key)
    if not part:
        return {}, part, machine
    return {tuple(row[:5]): [row[2] * row[3] / seconds / 1e3 for seconds in row[5:7]] for row in part[key]["rows"]}, part, machine


KERNEL = {"linear": "linear", "cubic": "catmull_rom"}
BACKWARD = {"project": "project_gradients_reconstruction", "backproject": "backproject_gradients"}


def operator_rates(rows, operator, box, batch, poses, interpolation):
    """Thousands a second: forward, backward alone, both."""
    kind, dimensions = operator.split("/")
    sizes = f"/{dimensions}/{KERNEL[interpolation]}/box:{box}/batch:{batch}/poses:{poses}"
    forward, backward = (rows.get(name + sizes, {}).get("kproj_per_s") for name in (kind, BACKWARD[kind]))
    return forward, backward, 1 / (1 / forward + 1 / backward) if forward and backward else None


def summary_of(cells):
    """Least, median and largest of ratios, and how many are above 1."""
    ratios = sorted(ratio for ratio in cells if ratio is not None)
    if not ratios:
        return None
    return ratios[0], ratios[len(ratios) // 2], ratios[-1], sum(ratio >= 1 for ratio in ratios), len(ratios)


def paper(results, published):
    text = ["## The paper on torch-projectors", "",
            "The paper prints thousands of projections per second on one H100. `forward` is the call. `both` is the call with the backward pass "
            "of a loss, as the paper times it. Our operators are C++ calls with the outputs that the paper asks for. Its `both` is the sum of two "
            "such calls. The columns `Python` are calls of `bracewell.torch_projectors` in the paper's own loop. `its code` is torch-projectors in the "
            "same loop on our machine.", ""]
    rows, part, machine = results.rows("operators")
    doors, door_part, door_machine = doors_cells(results)
    pair = "doors and peer" if results.part("doors and peer")[0] else "doors"  # on one machine in one call
    (beside, _, _), (peers, pair_part, pair_machine) = (doors_cells(results, key=key, name=pair) for key in ("cells", "peer cells"))
    overview, tables = [], []
    for one in published["paper"]["tables"][:4]:
        lines, ratios = [], {}
        for box, batch, poses, interpolation, forward, both, *_ in one["rows"]:
            ours, _, ours_both = operator_rates(rows, one["operator"], box, batch, poses, interpolation)
            cell = one["operator"], box, batch, poses, interpolation
            python, with_peer, peer = (rates.get(cell, (None, None)) for rates in (doors, beside, peers))
            lines.append([box, batch, poses, interpolation, number(forward), number(ours), number(python[0]), number(both), number(ours_both),
                          number(python[1])])
            for at, (name, printed, operators) in enumerate((("forward", forward, ours), ("both", both, ours_both))):
                for what, mine, theirs in (("operators", operators, printed), ("Python", python[at], printed), ("its code", peer[at], printed),
                                           ("Python to its code", with_peer[at], peer[at])):
                    ratios.setdefault(f"{name}, {what}", []).append(mine / theirs if mine and theirs else None)
        for name, values in ratios.items():
            found = summary_of(values)
            cells = [f"{v:.1f}" for v in found[:3]] + [f"{found[3]} of {found[4]}"] if found else ["", "", "", "not measured yet"]
            overview.append([f"Table {one['table']}, page {one['page']}", one["title"], name, *cells])
        tables += [f"### Table {one['table']}: {one['title']}", ""]
        tables += table(["box", "batch", "poses", "kernel", "forward, printed", "ours", "Python", "both, printed", "ours", "Python"], lines)
    text += ["Ratios to the printed rates, over the 36 cells of a table. `Python to its code` is ours to its code, in one call on one machine:", ""]
    text += table(["claim", "operator", "what", "least", "median", "largest", "at least as fast"], overview)
    if part:
        text += [caption(part, machine), ""]
    if door_part:
        text += [caption(door_part, door_machine, f"torch {door_part['torch']}."), ""]
    if pair_part and pair_part is not door_part:
        text += [caption(pair_part, pair_machine, "Beside its code."), ""]
    text += tables
    for one in published["paper"]["tables"][4:6]:
        lines = []
        for box, batch, poses, their_forward, forward, their_backward, backward, *_ in one["rows"]:
            ours, ours_backward, _ = operator_rates(rows, one["operator"], box, batch, poses, "linear")
            lines.append([box, batch, poses, number(their_forward), number(forward), number(ours), number(their_backward), number(backward),
                          number(ours_backward)])
        text += [f"### Table {one['table']}: {one['title']}", "", f"Page {one['page']}. A cell that the paper leaves out stays empty.", ""]
        text += table(["box", "batch", "poses", "forward, torch-fourier-slice", "torch-projectors", "ours", "backward, torch-fourier-slice",
                       "torch-projectors", "ours"], lines)
    text += padding(results, published["paper"]["tables"][6])
    text += volumes(results)
    return text


def padding(results, one):
    text = [f"### Table 7: {one['title']}", "",
            f"Page {one['page']}. The text speaks of 4096 references and of both passes. The paper's published script takes 16,384 references, and the "
            "table has the rates of its forward pass. So both counts and both passes stand here. `both` comes from the data behind the table.", ""]
    part, machine = results.part("doors")
    rows, bench, bench_machine = results.rows("references")
    python = {(row[0], row[1], row[2]): row[3:5] for row in part["padding"]["rows"]} if part and "padding" in part else {}
    lines = []
    table_both = one["both"]
    for count in (4096, 16384):
        for interpolation, printed in (("linear", one["rows"][0][2:]), ("cubic", one["rows"][1][2:])):
            for way, words, theirs, name in (("plain", "oversampling 1", printed[0], "project"),
                                             ("padded", "oversampling 2", printed[1], "project_oversampled"),
                                             ("in_call", "padded in the call", printed[2], None)):
                sizes = f"/2d_to_2d/{KERNEL[interpolation]}/box:128/batch:{count}/poses:1"
                ours = rows.get(f"{name}{sizes}", {}).get("kproj_per_s")
                back = rows.get(f"{(name or '').replace('project', 'project_gradients_reconstruction')}{sizes}", {}).get("kproj_per_s")
                both = 1 / (1 / ours + 1 / back) if ours and back else None
                theirs_both = table_both[interpolation][("plain", "padded", "in_call").index(way)]
                seconds = python.get((count, interpolation, way))
                rates = [number(count / s / 1e3) for s in seconds] if seconds else ["", ""]
                lines.append([f"{count:,}", interpolation, words, number(theirs), number(ours), rates[0], number(theirs_both), number(both), rates[1]])
    text += table(["references", "kernel", "way", "forward, printed", "ours", "Python", "both, its data", "ours, operators", "Python, with the loss"], lines)
    if bench:
        text += [caption(bench, bench_machine), ""]
    return text


def volumes(results):
    text = ["### Volumes from volumes", "",
            "The paper names these operators as future work (page 15). Thousands of volumes per second, float.", ""]
    rows, part, machine = results.rows("volumes")
    lines = []
    for box in (32, 64):
        for batch in (1, 8):
            for poses in (8, 64):
                cells = []
                for kernel in ("linear", "catmull_rom"):
                    for name in ("project", "project_gradients_reconstruction", "backproject"):
                        cells.append(number(rows.get(f"{name}/3d_to_3d/{kernel}/box:{box}/batch:{batch}/poses:{poses}", {}).get("kproj_per_s")))
                if any(cells):
                    lines.append([box, batch, poses, *cells])
    if not lines:
        return text[:-1] + ["They are not measured on a GPU yet.", ""]
    text += table(["box", "batch", "poses", "linear: project", "gradient", "backproject", "cubic: project", "gradient", "backproject"], lines)
    return text + [caption(part, machine), ""]


def figure_1(results):
    text = ["### Figure 1: what interpolation costs in accuracy", "",
            "Page 14. White noise in a disc as wide as the box is turned. The picture has the closed forms as lines and measured values as points.",
            "", "<!-- picture: bench/seeds/page.py -->", "![Ring correlation and attenuation of three kernels at three paddings](claims-interpolation.svg)", "",
            "An image that is sampled by a kernel in Fourier space is multiplied by the kernel's transform K. Copies of the image are multiplied by "
            "K(v + m). So the ring correlation is mean(K) / sqrt(mean(sum K^2)) over the disc, and the attenuation at a radius is the mean of K^2 on "
            "its ring, to the power 1/2. The measured ratios also have the copies.", ""]
    part, machine = results.part("interpolation", gpu=False)
    if part is None:
        part, machine = results.part("interpolation")
    measured = {(row[0], row[1]): row[2:] for row in part["rows"]} if part else {}
    lines = []
    for kernel in pictures.TRANSFORMS:
        for padding in (1, 1.5, 2):
            correlation, attenuation = pictures.correlation(kernel, padding), pictures.attenuation(kernel, padding, 0.25)
            found = measured.get((kernel, padding))
            half = part["box"] // 4 - 1 if part else 0
            lines.append([kernel.replace("_", " "), padding, f"{correlation:.4f}", f"{sum(found[0]) / len(found[0]):.4f}" if found else "",
                          f"{attenuation:.3f}", f"{found[1][half]:.3f}" if found else ""])
    text += table(["kernel", "padding", "ring correlation, closed form", "measured", "attenuation at half the radius, closed form", "measured"], lines)
    if part:
        text += [caption(part, machine, f"Box {part['box']}, {part['turns']} turns, double."), ""]
    return text, measured


def article(results, published):
    one = published["article"]
    text = ["## The article on log-polar and gather kernels", "",
            "The article replaces atomic additions by a gather, in the gridding of polar samples. Its Figures 5 and 6 are charts of ratios, whose values "
            "are not in our file of printed numbers. So our columns stand beside what its two codes took on one H200 on 2026-11-22. tomocupy scatters, "
            "and ToMoBAR has the article's gather.", ""]
    rows, part, machine = results.rows("gridding")
    tomography, tomography_part, tomography_machine = results.rows("tomography")
    theirs = {724: (65.5, 18.5), 1448: (254, 64.9), 2896: (959, 241)}
    lines, whole = [], []
    whole_theirs = {724: (71, 79, 9.6, 110), 1448: (275, 152, 37, 880), 2896: (1109, 583, 150, 7161)}
    for n, angles in one["sizes"]:
        sizes = f"n:{n}/angles:{angles}/slices:64"
        times = {name: rows.get(f"gridding/{name}/{sizes}", {}).get("ms") for name in ("spread_atomic", "spread_pruned", "spread")}
        scatter, gather = theirs.get(n, (None, None))
        atomic, pruned, tiles = times.values()
        lines.append([n, angles, number(scatter), number(gather), number(scatter / gather) if scatter else "", number(atomic), number(pruned),
                      number(tiles), number(atomic / pruned) if atomic and pruned else "", number(atomic / tiles) if atomic and tiles else ""])
        mine = [tomography.get(f"tomography/{name}/backproject/{sizes}", {}).get("ms") for name in ("fourier", "log_polar", "line")]
        whole.append([n, angles, *(number(value) for value in whole_theirs.get(n, (None,) * 4)), *(number(value) for value in mine)])
    text += ["### Figure 5: spreading", "", "Milliseconds for 64 slices, float.", ""]
    text += table(["n", "angles", "tomocupy, scatter", "ToMoBAR, gather", "ratio", "ours: Atomic", "PrunedGather", "Tiles, the default",
                   "Atomic over PrunedGather", "Atomic over Tiles"], lines)
    if part:
        text += [caption(part, machine, part["note"]), ""]
    text += ["### Figure 6: the whole back-projection", "", "Milliseconds for 64 slices, float, tolerance 1e-4, without the filter (ToMoBAR: with it).", ""]
    text += table(["n", "angles", "tomocupy, Fourier", "ToMoBAR, Fourier", "tomocupy, log-polar", "ToMoBAR, line", "ours: Fourier", "log-polar", "line"],
                  whole)
    if tomography_part:
        text += [caption(tomography_part, tomography_machine, tomography_part["note"]), ""]
    text += ["Half precision of samples and grids is not there. A prototype of samples in 16 bits gained at most one hundredth of the time "
             "([gridding](lab/gridding-and-tomography.md)).", "",
             "### Figures 1, 3 and 4: maps of the frequency plane", "",
             "These maps come from the geometry alone: 64 detector pixels, 127 angles, a grid of twice the size, a support of nine pixels.", "",
             "<!-- picture: bench/seeds/page.py -->", "![Additions per pixel of the grid](claims-collisions.svg) ![Rays per pixel](claims-rays.svg) "
             "![Projections per pixel](claims-projections.svg)", ""]
    names = (("collisions", "Figure 1", "additions to a pixel: `Atomic` serialises them"),
             ("rays", "Figure 3", "rays that pass within the support of a pixel: what `PrunedGather` reads"),
             ("projections", "Figure 4", "projections in the angular interval that is searched for a pixel"))
    lines = []
    for key, figure, words in names:
        values = [value for row in pictures.maps()[key] for value in row]
        lines.append([figure, words, min(values), f"{sum(values) / len(values):.1f}", max(values)])
    text += table(["map", "what it counts", "least", "mean", "most"], lines)
    text += ["The middle of the plane meets every projection. There the scatter waits for atomic additions, and a gather has long lists. `Tiles` sorts "
             "the samples into tiles of the grid once, when the plan is made.", ""]
    return text


def document(results, published):
    text = ["## The ptychography document", "",
            "The object has 512 x 512 pixels, the probe 80 x 80. A step takes 4096 patterns of 256 x 256: loss, gradients of amplitude, phase and five parameters "
            "of the probe, and Adam.", ""]
    rows, part, machine = results.rows("ptychography")
    small, small_part, _ = results.rows("ptychography with 99 KB")
    doors, doors_machine = results.part("doors")
    lines = [[one["where"], one["claim"], number(one["value"]), published["document"]["hardware"], "", ""]
             for one in published["document"]["claims"]]
    sizes = "/probe:80/detector:256/positions:4096"
    for key, words in (("float", "C++, float"), ("half", "C++, storage in half precision"), ("float/reduced", "C++, float, reduced grid"),
                       ("half/reduced", "C++, half, reduced grid"), ("float/general", "C++, float, by FFT plans")):
        row = rows.get(f"ptychography/iteration/{key}{sizes}", {})
        ms = row.get("ms_per_iteration")
        lines.append(["", words, number(ms), machine if ms else "", number(row.get("plan_MB")), ""])
        less = small.get(f"ptychography/iteration/{key}{sizes}", {}).get("ms_per_iteration")
        if less:
            lines[-1][-1] = number(less)
    if doors and "ptychography" in doors and doors["ptychography"]["positions"] == 4096:
        for name, seconds, size in doors["ptychography"]["rows"]:
            lines.append(["", name, number(1e3 * seconds), doors_machine, number(size / 1e6 if size else None), ""])
    text += table(["where", "what", "milliseconds", "hardware", "MB of the plan", "ms with 99 KB on the chip"], lines)
    if part:
        text += [caption(part, machine, "PyTorch's memory is the most that it allocated."), ""]
    text += ["A team has 99 KB on the chip of an L40S. Rows of a window in float take 164 KB and go through a workspace there. In half they take 82 KB "
             "and stay on the chip. The last column caps our chip memory at that size.", ""]
    text += ["### Memory", "", "The arrays that the document's loop makes in every step, and what there is of them in ours:", ""]
    text += table(["array", "what", "MB", "ours"], [[one["where"], one["what"], number(one["MB"]), one["ours"]]
                                                   for one in published["document"]["memory"]])
    for gpu in (True, False):
        found, part, machine = results.rows("precision", gpu)
        accuracy = next(iter(found.values()), {})
        if accuracy:
            break
    text += ["### FP16", "", "The document's test demands 1e-4, its text promises 1e-3. Ours are relative errors in L2 of gradients with "
             "targets in half precision, at the first step.", ""]
    text += table(["gradient", "the document's bound", "ours"], [["object", "1e-3", f"{accuracy['object_error']:.1e}" if accuracy else ""],
                                                                 ["probe", "1e-3", f"{accuracy['probe_error']:.1e}" if accuracy else ""]])
    if accuracy:
        text += [caption(part, machine), ""]
    return text


def calls(results):
    text = ["## What a call costs", "", "Microseconds for 8 linear projections of 32 x 32 pixels, float. Calls follow each other up to a fence.", ""]
    lines = []
    for gpu in (True, False):
        part, machine = results.part("doors", gpu, "calls")
        for name, words in (("calls", "C++"), ("calls through C", "C")):
            rows, one, where = results.rows(name, gpu)
            for row in rows.values():
                lines.append([words, number(row["us_per_call"]), where, one["date"]])
        for key in ("calls", "peer calls"):
            if part and key in part:
                lines += [[f"`{name}`" if "." in name else name, number(us), machine, part["date"]] for name, us in part[key]["rows"]]
    text += table(["call", "microseconds", "hardware", "date"], lines)
    return text


def not_served(results):
    return ["## What is not served", ""] + table(
        ["claim", "why there is no number"],
        [["Apple M4: CPU and Metal (Tables 1 to 7)", "no such machine here; Bracewell has no Metal backend, and builds for Apple's processors are not tested"],
         ["Windows", "not built there"],
         ["V100 (the article's codes)", "no such GPU here; Kokkos compiles for it"],
         ["L40S (the document)", "no such GPU here; its chip memory is emulated above"],
         ["torch-fourier-slice", "its printed rates stand in Tables 5 and 6; its code is not run"]])


def hosts(results, published):
    """What a host measured beside the M4's printed numbers, which is another machine."""
    rows, part, machine = results.rows("operators", gpu=False)
    if not rows:
        return []
    lines = []
    for one in published["paper"]["tables"][:4]:
        for box, batch, poses, interpolation, _, _, forward, both, *_ in one["rows"]:
            ours, _, ours_both = operator_rates(rows, one["operator"], box, batch, poses, interpolation)
            if ours:
                lines.append([f"Table {one['table']}", one["title"], box, batch, poses, interpolation, number(forward), number(ours), number(both),
                              number(ours_both)])
    return ["## On a host", "", "The printed column is the paper's Apple M4. Ours is another machine, so the columns do not compete.", ""] + table(
        ["claim", "operator", "box", "batch", "poses", "kernel", "forward, M4", "ours", "both, M4", "ours"], lines) + [
        caption(part, machine, f"{results_processors(results)} processors, load {results_load(results)}."), ""]


def results_processors(results):
    return next(one["machine"]["processors"] for _, one in results.ordered if not one["machine"]["gpu"])


def results_load(results):
    return next(one["machine"]["load"] for _, one in results.ordered if not one["machine"]["gpu"])


def page(results, published):
    text = ["# Claims that this library answers", "",
            "Three documents stand behind Bracewell: a paper on projection, an article on gridding, and a document on ptychography. This page has what "
            "they claim beside what Bracewell does. A program makes the page from files of results.", "",
            "```sh", "./dev seeds            # measures what this machine can, and makes the page; --gpu before it builds for a GPU",
            "./dev seeds --page     # makes the page again from bench/seeds/results", "```", "",
            "Printed numbers lie in `bench/seeds/published.json`, with table and page. The command skips what is not installed, with a sentence. "
            "It runs the code of torch-projectors where that is installed.", ""]
    names = [[key, one["machine"]["gpu"] or "none", one["machine"]["cpu"], one["machine"]["processors"], ", ".join(sorted(one["parts"]))]
             for key, one in results.ordered]
    text += table(["results", "GPU", "processor", "processors", "parts"], names)
    text += paper(results, published)
    figure, measured = figure_1(results)
    text += figure + article(results, published) + document(results, published) + calls(results) + hosts(results, published) + not_served(results)
    sources = [f"* `{published[key]['title']}`" for key in ("paper", "article", "document")]
    return "\n".join(text + ["## Sources", ""] + sources) + "\n", measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=here / "results")
    parser.add_argument("--docs", type=pathlib.Path, default=root / "docs", help="where the page goes")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    published = json.loads((here / "published.json").read_text())
    text, measured = page(Results(arguments.results), published)
    files = {"claims.md": text, "claims-interpolation.svg": pictures.interpolation(measured)}
    for key, values in pictures.maps().items():
        files[f"claims-{key}.svg"] = pictures.map_picture(values)
    for name, content in files.items():
        path = arguments.docs / name
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        elif not path.exists() or path.read_text() != content:
            sys.exit(f"{path}: expected what bench/seeds/results gives, found another: run ./dev seeds --page")


main()
