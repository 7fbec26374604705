#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what the papers time from Python: bench/seeds/seeds.py calls it with the interpreter that has torch and bracewell.

The protocol is that of the paper: warm-ups, then at most 15 timed runs around a synchronisation, and their median. `both` is the
forward call and the backward pass of sum |output|^2. Prints one JSON object.
"""
import argparse
import json
import math
import pathlib
import statistics
import sys
import time

import torch

clock = time.perf_counter


def random_rotations(batch, poses, dimensions, device):
    """Uniform rotations [batch, poses, D, D]."""
    generator = torch.Generator().manual_seed(42)
    if dimensions == 2:
        angle = 2 * math.pi * torch.rand(batch, poses, generator=generator)
        rows = [torch.cos(angle), -torch.sin(angle), torch.sin(angle), torch.cos(angle)]
    else:
        q = torch.nn.functional.normalize(torch.randn(batch, poses, 4, generator=generator), dim=-1)
        w, x, y, z = q.unbind(-1)
        rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z), 1 - 2 * (x * x + z * z),
                2 * (y * z - w * x), 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return torch.stack(rows, -1).reshape(batch, poses, dimensions, dimensions).to(device)


class Bench:
    def __init__(self, device, quick, most):
        self.device, self.runs, self.most = device, 3 if quick else 15, most
        self.cuda = device == "cuda"

    def synchronise(self):
        if self.cuda:
            torch.cuda.synchronize()

    def median(self, run, warm=3, repeat=1):
        """Seconds of a call; `repeat`: calls in a row between synchronisations."""
        started = clock()
        for _ in range(warm):
            run()
            self.synchronise()
            if clock() - started > self.most:
                break
        seconds, started = [], clock()
        while len(seconds) < self.runs and (len(seconds) < 3 or clock() - started < self.most):
            begin = clock()
            for _ in range(repeat):
                run()
            self.synchronise()
            seconds.append((clock() - begin) / repeat)
        return statistics.median(seconds)

    def free(self):
        if self.cuda:
            torch.cuda.empty_cache()


def projecting(bench, functions, dimensions, box, batch, poses, interpolation):
    """Seconds forward and both, of projections from references."""
    function = functions.project_2d_forw if dimensions == 2 else functions.project_3d_to_2d_forw
    volume = torch.randn(batch, *(box,) * (dimensions - 1), box // 2 + 1, dtype=torch.complex64, device=bench.device)
    rotations, shifts = random_rotations(batch, poses, dimensions, bench.device), 5 * torch.randn(batch, poses, 2, device=bench.device)
    volume.requires_grad_(True)

    def forward():
        return function(volume, rotations, shifts, output_shape=(box, box), interpolation=interpolation)

    def both():
        volume.grad = None
        (forward().abs()**2).sum().backward()

    return bench.median(forward), timed_both(bench, forward, lambda p: (p.abs()**2).sum(), [volume]), bench.median(both)


def timed_both(bench, forward, loss, leaves):
    """As the paper times it: the forward call, and the backward pass with the loss's own gradient, without the loss."""
    def once():
        for leaf in leaves:
            leaf.grad = None
        bench.synchronise()
        begin = clock()
        output = forward()
        bench.synchronise()
        middle = clock()
        value = loss(output)
        del output
        again = clock()
        value.backward()
        bench.synchronise()
        seconds = clock() - again + middle - begin
        return seconds

    once()
    seconds, started = [], clock()
    while len(seconds) < bench.runs and (len(seconds) < 3 or clock() - started < bench.most):
        seconds.append(once())
    return statistics.median(seconds)


def inserting(bench, functions, dimensions, box, batch, poses, interpolation):
    """Seconds forward and both, of sums of projections and weights."""
    function = functions.backproject_2d_forw if dimensions == 2 else functions.backproject_2d_to_3d_forw
    images = torch.randn(batch, poses, box, box // 2 + 1, dtype=torch.complex64, device=bench.device).requires_grad_(True)
    weights = torch.rand(batch, poses, box, box // 2 + 1, device=bench.device).requires_grad_(True)
    rotations, shifts = random_rotations(batch, poses, dimensions, bench.device), 5 * torch.randn(batch, poses, 2, device=bench.device)

    def forward():
        return function(images, rotations, weights=weights, shifts=shifts, interpolation=interpolation)

    def loss(sums):
        return (sums[0].abs()**2).sum() + 0.1 * (sums[1]**2).sum()

    def both():
        images.grad = weights.grad = None
        loss(forward()).backward()

    return bench.median(forward), timed_both(bench, forward, loss, [images, weights]), bench.median(both)


def cells(bench, modules, sizes, log):
    """A table for every module. They are measured in turns, as the speed of a host drifts."""
    tables = {name: {"columns": ["operator", "box", "batch", "poses", "interpolation", "forward", "both", "with loss"], "unit": "s",
                     "rows": []} for name in modules}
    for operator, measure, dimensions in (("project/2d_to_2d", projecting, 2), ("backproject/2d_to_2d", inserting, 2),
                                          ("project/3d_to_2d", projecting, 3), ("backproject/2d_to_3d", inserting, 3)):
        for box in sizes["box"]:
            for batch in sizes["batch"]:
                for poses in sizes["poses"]:
                    for interpolation in ("linear", "cubic"):
                        for name, functions in modules.items():
                            cell = [operator, box, batch, poses, interpolation]
                            try:
                                tables[name]["rows"].append([*cell, *measure(bench, functions, dimensions, box, batch, poses, interpolation)])
                            except Exception as error:  # memory, in most cases
                                log(f"{name} {cell}: {type(error).__name__}: {str(error)[:200]}")
                            bench.free()
    return tables


def padding(bench, functions, counts, box, log):
    """Table 7: a reference for every projection; as it is, padded beforehand, padded in the call."""
    rows = []
    for count in counts:
        rotations, shifts = random_rotations(count, 1, 2, bench.device), 5 * torch.randn(count, 1, 2, device=bench.device)
        for interpolation in ("linear", "cubic"):
            for way in ("plain", "padded", "in_call"):
                side = 2 * box if way == "padded" else box
                try:
                    leaf = torch.randn(count, side, side // 2 + 1, dtype=torch.complex64, device=bench.device).requires_grad_(True)

                    def forward():
                        volume = leaf
                        if way == "in_call":
                            image = torch.fft.irfft2(leaf, s=(box, box))
                            volume = torch.fft.rfft2(torch.nn.functional.pad(image, (box // 2,) * 4))
                        return functions.project_2d_forw(volume, rotations, shifts, output_shape=(box, box),
                                                         interpolation=interpolation, oversampling=1.0 if way == "plain" else 2.0)

                    def both():
                        leaf.grad = None
                        (forward().abs()**2).sum().backward()

                    rows.append([count, interpolation, way, bench.median(forward), bench.median(both)])
                    del leaf
                except Exception as error:
                    log(f"table 7 {count} {interpolation} {way}: {type(error).__name__}: {str(error)[:200]}")
                bench.free()
    return {"columns": ["references", "interpolation", "way", "forward", "both"], "unit": "s", "rows": rows}


class Nothing(torch.autograd.Function):
    """What PyTorch itself takes for a differentiable call of 8 projections of 32^2 from 32^3."""

    @staticmethod
    def forward(ctx, volume, matrices, shifts):
        ctx.save_for_backward(volume, matrices, shifts)
        return volume.new_empty((1, 8, 32, 17))

    @staticmethod
    def backward(ctx, cotangent):
        return ctx.saved_tensors[0], None, None


def calls(bench, functions):
    """Microseconds of a call for 8 projections of 32^2 from 32^3, by the doors that Python has."""
    import bracewell
    import bracewell.torch

    repeat = 20 if bench.runs < 15 else 500
    device, rows = bench.device, []
    volume = torch.randn(1, 32, 32, 17, dtype=torch.complex64, device=device)
    matrices, shifts = random_rotations(1, 8, 3, device), torch.randn(1, 8, 2, device=device)
    out = torch.empty(1, 8, 32, 17, dtype=torch.complex64, device=device)
    leaf = volume.clone().requires_grad_(True)

    def row(name, run):
        rows.append([name, 1e6 * bench.median(run, repeat=repeat)])

    row("bracewell.project, tensors, out=", lambda: bracewell.project(volume, matrices, shifts, interpolation="linear", out=out))
    row("bracewell.project, tensors", lambda: bracewell.project(volume, matrices, shifts, interpolation="linear"))
    row("bracewell.torch.project", lambda: bracewell.torch.project(volume, matrices, shifts, interpolation="linear"))
    row("bracewell.torch.project, with gradients", lambda: bracewell.torch.project(leaf, matrices, shifts, interpolation="linear"))
    row("bracewell.torch_projectors", lambda: functions.project_3d_to_2d_forw(volume, matrices, shifts))
    row("bracewell.torch_projectors, with gradients", lambda: functions.project_3d_to_2d_forw(leaf, matrices, shifts))
    slopes = torch.ones_like(out)

    def backward(function):
        leaf.grad = None
        function(leaf, matrices, shifts).backward(slopes)

    row("bracewell.torch_projectors, forward and backward", lambda: backward(functions.project_3d_to_2d_forw))
    row("a torch Function that does nothing", lambda: Nothing.apply(leaf, matrices, shifts))
    row("a torch Function that does nothing, forward and backward", lambda: backward(Nothing.apply))
    row("torch.add of 8 numbers", lambda: torch.add(shifts, shifts))
    try:
        if bench.cuda:
            import cupy as array
            name = "CuPy"
        else:
            import numpy as array
            name = "NumPy"
        volume, matrices, shifts, out = (array.asarray(one) for one in (volume, matrices, shifts, out))
        row(f"bracewell.project, {name}, out=",
            lambda: bracewell.project(volume, matrices, shifts, interpolation="linear", out=out))
        row(f"bracewell.project, {name}", lambda: bracewell.project(volume, matrices, shifts, interpolation="linear"))
    except ImportError:
        pass
    return {"columns": ["call", "microseconds"], "rows": rows}


def peer_calls(bench, functions):
    volume = torch.randn(1, 32, 32, 17, dtype=torch.complex64, device=bench.device)
    matrices, shifts = random_rotations(1, 8, 3, bench.device), torch.randn(1, 8, 2, device=bench.device)
    run = lambda: functions.project_3d_to_2d_forw(volume, matrices, shifts)  # noqa: E731
    return {"columns": ["call", "microseconds"], "rows": [["torch_projectors", 1e6 * bench.median(run, repeat=500)]]}


class Probe:
    """The document's probe by torch, and its loss, as its section 2 has them."""

    def __init__(self, size, detector, device, wavelength=0.0197, pixel=0.2, angle=0.02):
        k = torch.fft.fftfreq(detector, pixel, device=device)
        kx, ky = torch.meshgrid(k, k, indexing="ij")
        self.k, self.theta, self.size, self.detector = (kx * kx + ky * ky).sqrt(), torch.atan2(ky, kx), size, detector
        self.wavelength, self.edge = wavelength, angle / wavelength

    def __call__(self, parameters):
        defocus, cs, astigmatism, angle, smoothness = parameters.unbind()
        k2 = self.k**2
        chi = math.pi * self.wavelength * (defocus * k2 + astigmatism * k2 * torch.cos(2 * (self.theta - angle))
                                           + 0.5 * self.wavelength**2 * cs * 1e6 * k2**2)
        aperture = torch.sigmoid((self.edge - self.k) / (self.edge * (smoothness.abs() + 0.01)))
        full = torch.fft.ifftshift(torch.fft.ifft2(torch.polar(aperture, chi)))
        full = full / torch.linalg.vector_norm(full)
        first = self.detector // 2 - self.size // 2
        return full[first:first + self.size, first:first + self.size]


def ptychography(bench, raster, log):
    """Seconds of an iteration of the document's problem: loss, gradients and Adam of amplitude, phase and five parameters."""
    import bracewell
    import bracewell.torch

    size, detector, device, rows = 80, 256, bench.device, []
    side, count = raster * 27 // 4 + size, raster * raster
    positions = torch.tensor([[(i * (side - size)) // raster, (j * (side - size)) // raster] for i in range(raster)
                              for j in range(raster)])
    torch.manual_seed(3)
    patterns = torch.poisson(torch.full((count, detector, detector), 100., device=device))
    start = torch.tensor([45., 0.06, 8., 0.2, 0.12], device=device)

    def leaves():
        return (0.9 + 0.1 * torch.randn(side, side, device=device), 0.1 * torch.randn(side, side, device=device), start.clone())

    options = {"loss": "least_squares", "counts": 100.0}
    repeat = 10 if bench.cuda else 1

    def row(name, run, memory=None):
        rows.append([name, bench.median(run, warm=2, repeat=repeat), memory])

    model = bracewell.PtychographyLoss(patterns, positions.numpy(), (side, side), size, **options)
    lens = bracewell.AberratedProbe(size, detector, wavelength=0.0197, pixel_size=0.2, convergence_angle=0.02)
    amplitude, phase, parameters = leaves()
    adam = bracewell.Adam([amplitude, phase, parameters], [0.01, 0.01, 0.001])

    def python():
        wave = torch.polar(torch.ones_like(phase), phase)
        given = model.evaluate(amplitude * wave, lens.evaluate(parameters))
        turned = wave.conj() * given.object
        adam.step([turned.real.contiguous(), amplitude * turned.imag, lens.gradients(parameters, given.probe)])

    row("bracewell, Python", python, model.memory_bytes)
    del adam
    differentiable = bracewell.torch.PtychographyLoss(patterns, positions.numpy(), (side, side), size, **options)
    by_torch = Probe(size, detector, device)
    tensors = [leaf.requires_grad_(True) for leaf in leaves()]
    groups = [{"params": tensors[:2], "lr": 0.01}, {"params": tensors[2:], "lr": 0.001}]
    optimiser = torch.optim.Adam(groups, fused=bench.cuda)

    def with_autograd(loss):
        def run():
            optimiser.zero_grad(set_to_none=True)
            wave = tensors[0] * torch.polar(torch.ones_like(tensors[1]), tensors[1])
            loss(wave, by_torch(tensors[2])).backward()
            optimiser.step()
        return run

    row("bracewell.torch", with_autograd(differentiable), differentiable._plan.memory_bytes)
    del model, differentiable
    bench.free()

    corner = positions.to(device)
    within = torch.arange(size, device=device)
    rows_of, columns_of = corner[:, :1, None] + within[:, None], corner[:, 1:, None] + within[None, :]
    targets = patterns * (100 / patterns.mean((1, 2), keepdim=True))

    def document(wave, probe):
        """PyTorch as the document writes it."""
        intensity = torch.fft.fft2(wave[rows_of, columns_of] * probe, s=(detector, detector)).abs()**2
        scaled = intensity * (100 / intensity.mean((1, 2), keepdim=True))
        return ((scaled - targets)**2).mean()

    try:
        if bench.cuda:
            torch.cuda.reset_peak_memory_stats()
        run = with_autograd(document)
        repeat = 1
        row("PyTorch, as the document writes it", run, torch.cuda.max_memory_allocated() if bench.cuda else None)
    except Exception as error:
        log(f"the document's loop: {type(error).__name__}: {str(error)[:200]}")
    return {"columns": ["loop", "seconds", "bytes"], "positions": count, "object": side, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether all runs")
    parser.add_argument("--most", type=float, default=0.5, help="seconds for a cell, about")
    parser.add_argument("--until", type=float, default=math.inf, help="seconds after which no part begins any more")
    parser.add_argument("--parts", default="calls,cells,padding,ptychography,peer")
    parser.add_argument("--output", type=pathlib.Path, help="a file of the results, complete after every part; by default standard output")
    arguments = parser.parse_args()
    started, parts, notes = clock(), arguments.parts.split(","), []
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_default_dtype(torch.float32)
    bench = Bench(device, arguments.quick, arguments.most)

    def log(text):
        notes.append(text)
        print(text, file=sys.stderr, flush=True)

    if arguments.quick:
        sizes, counts, box, raster = {"box": [32], "batch": [1], "poses": [8]}, [8], 32, 2
    elif device == "cuda":
        sizes, counts, box, raster = {"box": [32, 128, 256], "batch": [1, 8], "poses": [8, 128, 2048]}, [4096, 16384], 128, 64
    else:
        sizes, counts, box, raster = {"box": [32, 128], "batch": [1, 8], "poses": [8, 128]}, [512], 128, 8
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
              "threads": torch.get_num_threads()}
    from bracewell import torch_projectors as ours

    try:
        import torch_projectors as peer
    except (ImportError, OSError) as error:  # OSError: its library is for another torch
        peer = None
        log(f"torch-projectors is not here, its own code is not run: {error}")
    modules = {"cells": ours, **({"peer cells": peer} if peer and "peer" in parts else {})}
    tasks = [("calls", lambda: {"calls": calls(bench, ours)}), ("cells", lambda: cells(bench, modules, sizes, log)),
             ("padding", lambda: {"padding": padding(bench, ours, counts, box, log)}),
             ("ptychography", lambda: {"ptychography": ptychography(bench, raster, log)})]
    if peer is not None:
        tasks += [("peer calls", lambda: {"peer calls": peer_calls(bench, peer)}),
                  ("peer padding", lambda: {"peer padding": padding(bench, peer, counts, box, log)})]
    for name, task in tasks:
        if name.split()[0] not in parts:
            continue
        if clock() - started > arguments.until:
            log(f"{name}: no time was left.")
            continue
        begin = clock()
        try:
            result |= task()
        except Exception as error:
            log(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        log(f"{name}: {clock() - begin:.1f} s")
        if arguments.output:
            arguments.output.write_text(json.dumps({**result, "notes": notes}))
    if not arguments.output:
        json.dump({**result, "notes": notes}, sys.stdout)


if __name__ == "__main__":
    main()
