#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's grid_sample at the points of bench_building_blocks: points_torch.py [GRID POINTS], by default 256 10000000.

It interpolates linearly the real and imaginary parts of a half spectrum as two channels of a volume: no mates, no
periods. Prints the median of 9 runs of each in the columns of bench_building_blocks: the bytes that have to move at least are
grid, points, values and gradients once.
"""

import statistics
import sys
import time

import torch

n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
device = "cuda" if torch.cuda.is_available() else "cpu"
grid = torch.randn((1, 2, n, n, n // 2 + 1), device=device, requires_grad=True)
points = (2 * torch.rand((1, 1, 1, count, 3), device=device) - 1).requires_grad_()
cotangent = torch.randn((1, 2, 1, 1, count), device=device)


def sample(grid, points):
    return torch.nn.functional.grid_sample(grid, points, mode="bilinear", padding_mode="zeros", align_corners=True)


def gradients(*of):
    return torch.autograd.grad(sample(grid, points), of, cotangent)


def without_gradients():
    with torch.no_grad():
        return sample(grid, points)


def milliseconds(run):
    times = []
    for _ in range(10):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


per_point, per_value, spectrum = 12, 8, 8 * n * n * (n // 2 + 1)  # bytes
rows = [("values", per_point + per_value, 1, without_gradients),
        ("gradients of points", 2 * per_point + per_value, 1, lambda: gradients(points)),
        ("values, gradients of all", 2 * per_point + 2 * per_value, 3, lambda: gradients(grid, points))]
print(f"{count} random points of {n} x {n} x {n // 2 + 1}, PyTorch {torch.__version__}, {device}\n")
print("| what                                 |        ms |  points/s | GB/s that |")
print("|                                      |           |      1e6  | must move |\n|---|---|---|---|")
for name, bytes_of_point, grids, run in rows:
    ms = milliseconds(run)
    moved = bytes_of_point * count + grids * spectrum
    print(f"| {name + ' grid_sample':<36} | {ms:9.3f} | {count / 1e3 / ms:9.1f} | {moved / 1e6 / ms:9.1f} |")
