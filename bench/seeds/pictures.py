# SPDX-License-Identifier: MIT
"""Closed forms of interpolation, maps of polar sampling, and both as SVG. Plain Python."""
import functools
import math


def sinc(v):
    return 1.0 if v == 0 else math.sin(math.pi * v) / (math.pi * v)


# Transforms of kernels, at v = pixel / (padded box).
TRANSFORMS = {
    "linear": lambda v: sinc(v)**2,
    "catmull_rom": lambda v: sinc(v)**3 * (3 * sinc(v) - 2 * math.cos(math.pi * v)),
    "cubic_bspline": lambda v: sinc(v)**4,
}


@functools.lru_cache(maxsize=None)
def _squares(kernel, v):
    """Sum over all copies m of K(v + m)^2."""
    return sum(TRANSFORMS[kernel](v + m)**2 for m in range(-6, 7))


@functools.lru_cache(maxsize=None)
def correlation(kernel, padding, cells=48):
    """Of spectra of white noise in a disc as wide as the box."""
    transform, mean, squares, count = TRANSFORMS[kernel], 0.0, 0.0, 0
    at = [(i + 0.5) / cells / 2 for i in range(cells)]
    values, sums = [transform(v / padding) for v in at], [_squares(kernel, v / padding) for v in at]
    for i, x in enumerate(at):
        for j, y in enumerate(at):
            if x * x + y * y < 0.25:
                mean += values[i] * values[j]
                squares += sums[i] * sums[j]
                count += 1
    return mean / math.sqrt(squares * count)


def attenuation(kernel, padding, radius, steps=90):
    """Ratio of root mean squares at a radius, as a fraction of the box, without copies."""
    transform = TRANSFORMS[kernel]
    total = 0.0
    for i in range(steps):
        angle = (i + 0.5) * math.pi / 2 / steps
        total += (transform(radius * math.cos(angle) / padding) * transform(radius * math.sin(angle) / padding))**2
    return math.sqrt(total / steps)


COLOURS = {"linear": "#d55e00", "catmull_rom": "#0072b2", "cubic_bspline": "#009e73"}
DASHES = {1: "", 1.5: "6 4", 2: "2 3"}


def interpolation(measured):
    """Figure 1: on the left ring correlations over frequency, on the right attenuation over radius."""
    svg = ['<svg xmlns="http://www.w3.org/2000/svg" width="760" height="330" font-family="sans-serif" font-size="12">',
           '<rect width="760" height="330" fill="white"/>']
    panels = ((60, "ring correlation", "frequency over Nyquist", 0.8, 1.0, 4), (410, "attenuation", "radius over half the box", 0.0, 1.0, 5))
    width, height, top = 240, 220, 20
    for which, (left, title, below, least, most, ticks) in enumerate(panels):
        def x(part):
            return left + part * width

        def y(value):
            return top + height * (most - value) / (most - least)

        for i in range(ticks + 1):
            value = least + i * (most - least) / ticks
            svg.append(f'<line x1="{left}" x2="{left + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dddddd"/>')
            svg.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
        for part in (0, 0.5, 1):
            svg.append(f'<text x="{x(part):.1f}" y="{top + height + 16}" text-anchor="middle">{part:g}</text>')
        svg.append(f'<text x="{left + width / 2}" y="{top + height + 34}" text-anchor="middle">{title}, {below}</text>')
        for kernel in TRANSFORMS:
            for padding, dashes in DASHES.items():
                if which == 0:
                    value = correlation(kernel, padding)
                    points = [(x(0), value), (x(1), value)]
                else:
                    points = [(x(i / 20), attenuation(kernel, padding, i / 40)) for i in range(21)]
                line = " ".join(f"{px:.1f},{y(max(value, least)):.1f}" for px, value in points)
                svg.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[kernel]}" stroke-dasharray="{dashes}"/>')
                found = measured.get((kernel, padding))
                if found:
                    rings = found[which]
                    for i in range(1, len(rings), max(1, len(rings) // 10)):
                        if least <= rings[i] <= most:
                            svg.append(f'<circle cx="{x((i + 1) / (len(rings) + 1)):.1f}" cy="{y(rings[i]):.1f}" r="1.7" fill="{COLOURS[kernel]}"/>')
    at = 30
    for kernel, colour in COLOURS.items():
        svg.append(f'<text x="{at}" y="315" fill="{colour}">{kernel.replace("_", " ")}</text>')
        at += 110
    for padding, dashes in DASHES.items():
        svg.append(f'<line x1="{at}" x2="{at + 30}" y1="311" y2="311" stroke="#333333" stroke-dasharray="{dashes}"/>')
        svg.append(f'<text x="{at + 36}" y="315">padding {padding:g}</text>')
        at += 125
    return "\n".join(svg + ["</svg>"]) + "\n"


@functools.lru_cache(maxsize=None)
def maps(n=64, half_support=4):
    """Counts per pixel of a grid of 2 n x 2 n, of which blocks of 2 x 2 are averaged: additions of a scatter, rays within the support,
    and projections in the angular interval."""
    angles, side = 2 * n - 1, 2 * n
    added = [[0] * side for _ in range(side)]
    for p in range(angles):
        c, s = math.cos(math.pi * p / angles), math.sin(math.pi * p / angles)
        for k in range(n):
            x, y = (k - n / 2) * 2 * c, (k - n / 2) * 2 * s  # in cells of the grid
            i, j = math.floor(x) - half_support + n, math.floor(y) - half_support + n
            for row in range(j, j + 2 * half_support + 1):
                line = added[row % side]
                for column in range(i, i + 2 * half_support + 1):
                    line[column % side] += 1
    reach = math.sqrt(2) * (half_support + 0.5)
    rays, projections = [[0] * side for _ in range(side)], [[0] * side for _ in range(side)]
    unit = [(math.cos(math.pi * p / angles), math.sin(math.pi * p / angles)) for p in range(angles)]
    for row in range(n + 1):  # the plane is symmetric about its middle
        for column in range(side):
            x, y = column - n, row - n
            distance = math.hypot(x, y)
            if distance <= reach:
                near = within = angles
            else:
                near = sum(abs(x * s - y * c) <= reach and abs(x * c + y * s) <= n + reach for c, s in unit)
                within = min(angles, math.floor(2 * math.asin(reach / distance) / math.pi * angles) + 1)
            for a, b in ((row, column), ((side - row) % side, (side - column) % side)):
                rays[a][b], projections[a][b] = near, within

    def coarse(values):
        return [[sum(values[2 * j + b][2 * i + a] for a in (0, 1) for b in (0, 1)) // 4 for i in range(n)] for j in range(n)]

    return {"collisions": coarse(added), "rays": coarse(rays), "projections": coarse(projections)}


LEVELS = ["#ffffff", "#e6eef5", "#c3d8ea", "#93bcdb", "#5f9bc9", "#357ab3", "#1c5a94", "#0f3d6e", "#07234a"]


def map_picture(values):
    """Counts by nine levels, each twice the one before."""
    n, scale = len(values), 4
    most = max(max(row) for row in values)
    limits = [most / 2**i for i in range(len(LEVELS) - 1, 0, -1)]
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{n * scale + 70}" height="{n * scale}" font-family="sans-serif" font-size="10">',
           f'<rect width="{n * scale + 70}" height="{n * scale}" fill="white"/>']
    paths = [[] for _ in LEVELS]
    for j, row in enumerate(values):
        i = 0
        while i < n:
            level = sum(row[i] >= limit for limit in limits)
            end = i
            while end < n and sum(row[end] >= limit for limit in limits) == level:
                end += 1
            paths[level].append(f"M{i} {j}h{end - i}v1h-{end - i}z")
            i = end
    svg.append(f'<g transform="scale({scale})">')
    svg += [f'<path fill="{colour}" d="{"".join(path)}"/>' for colour, path in zip(LEVELS, paths) if path]
    svg.append("</g>")
    for level, colour in enumerate(LEVELS):
        y = 20 + 24 * (len(LEVELS) - 1 - level)
        least = 0 if level == 0 else math.ceil(limits[level - 1])
        svg.append(f'<rect x="{n * scale + 8}" y="{y}" width="16" height="16" fill="{colour}" stroke="#999999"/>')
        svg.append(f'<text x="{n * scale + 30}" y="{y + 12}">{least} up</text>')
    return "\n".join(svg + ["</svg>"]) + "\n"
