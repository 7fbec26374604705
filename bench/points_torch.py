#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's grid_sample at the points of bench_building_blocks: points_torch.py [GRID POINTS], by default 256 10000000.

It interpolates linearly the real and imaginary parts of a half spectrum as two channels of a volume: no mates, no
periods. Prints the median of 9 runs of each in milliseconds, in the rows of bench_building_blocks.
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


print(f"{count} random points of {n} x {n} x {n // 2 + 1}, {device}")
for name, run in [("values", without_gradients), ("values and gradients of points", lambda: gradients(points)),
                  ("values, gradients of all", lambda: gradients(grid, points))]:
    print(f"| {name} | {milliseconds(run):.3f} ms |")
