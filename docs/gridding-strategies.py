#!/usr/bin/env python3
"""Draws docs/gridding-strategies.svg from the table "spreading polar samples" of docs/nonuniform.md. With
--check it says whether the picture is the one of the table."""
import math
import pathlib
import sys

folder = pathlib.Path(__file__).parent
lines = (folder / "nonuniform.md").read_text().splitlines()
start = next(i for i, line in enumerate(lines) if line.startswith("| spreading polar samples"))
rows = {}
for line in lines[start + 2:]:
    if not line.startswith("|"):
        break
    name, *times = [cell.strip() for cell in line.strip("|").split("|")]
    rows[name.replace("`", "")] = [float(t) for t in times]

# Name in the table, name in the picture, colour, dashes.
curves = [
    ("tomocupy's scatter", "tomocupy, scatter", "#999999", ""),
    ("Atomic", "Atomic", "#d55e00", ""),
    ("ToMoBAR's pruned gather", "ToMoBAR, pruned gather", "#999999", "6 4"),
    ("PrunedGather", "PrunedGather", "#0072b2", ""),
    ("cuFINUFFT, its best method", "cuFINUFFT", "#999999", "2 3"),
    ("Tiles, the default", "Tiles", "#009e73", ""),
]
sizes, left, top, width, height, least, decades = [724, 1448, 2896], 60, 20, 380, 320, 0.1, 4


def x(i):
    return left + 20 + i * (width - 40) / 2


def y(milliseconds):
    return top + height * (1 - math.log10(milliseconds / least) / decades)


svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="400" font-family="sans-serif" font-size="12">',
       '<rect width="640" height="400" fill="white"/>']
for decade in range(decades + 1):
    value = least * 10 ** decade
    svg.append(f'<line x1="{left}" x2="{left + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dddddd"/>')
    svg.append(f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
for i, n in enumerate(sizes):
    svg.append(f'<text x="{x(i):.1f}" y="{top + height + 18}" text-anchor="middle">{n}</text>')
svg.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">'
           'detector pixels n, with 2n angles and 64 slices</text>')
svg.append(f'<text transform="translate(16 {top + height / 2}) rotate(-90)" text-anchor="middle">'
           'spreading, milliseconds</text>')
label = math.inf
for key, name, colour, dashes in sorted(curves, key=lambda curve: rows[curve[0]][-1]):
    times = rows[key]
    points = " ".join(f"{x(i):.1f},{y(t):.1f}" for i, t in enumerate(times))
    svg.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
    svg += [f'<circle cx="{x(i):.1f}" cy="{y(t):.1f}" r="3" fill="{colour}"/>' for i, t in enumerate(times)]
    label = min(label - 14, y(times[-1]) + 4)  # names must not cover each other
    svg.append(f'<text x="{left + width + 8}" y="{label:.1f}" fill="{colour}">{name} ({times[-1]:g})</text>')
picture, text = folder / "gridding-strategies.svg", "\n".join(svg + ["</svg>"]) + "\n"
if "--check" in sys.argv:
    sys.exit(None if picture.read_text() == text else f"{picture}: expected the picture of the table, found another: run {__file__}")
picture.write_text(text)
