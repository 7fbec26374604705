# SPDX-License-Identifier: MIT
"""A day in a notebook with PyTorch, ptychography: few photons; the phase is a small network.   python learned_ptychography.py [cpu|cuda]"""

import sys
import time

import bracewell
import bracewell.torch
import torch
from day_ptychography import load
from torch import nn


def plain_loss(patterns, positions, m):
    """The plain way: windows by indices, probes between pixels by phase ramps, and autograd through the FFTs."""
    corners, along, k = positions.floor().long(), torch.arange(m, device=patterns.device), torch.fft.fftfreq(m, device=patterns.device)
    rows, columns = corners[:, 0, None, None] + along[:, None], corners[:, 1, None, None] + along
    part = (positions - corners).float()
    ramps = -2j * torch.pi * (part[:, :1, None] * k[:, None] + part[:, 1:, None] * k)
    roots = patterns.sqrt()

    def loss(object_, probe):
        light = torch.fft.fft2(object_[rows, columns] * torch.fft.ifft2(torch.fft.fft2(probe) * ramps.exp())).abs().square()
        return ((light + 1e-9).sqrt() - roots).square().mean()

    return loss


def refine(loss, probe, shape, steps):
    """A network of Fourier features for the phase, and pixels for the probe, by Adam; and milliseconds of a step."""
    torch.manual_seed(0)
    waves = torch.cartesian_prod(*(torch.linspace(-1, 1, size) for size in shape)) @ (6 * torch.randn(2, 48))
    features = torch.cat([waves.sin(), waves.cos()], dim=1).to(probe.device)
    net = nn.Sequential(nn.Linear(96, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1)).to(probe.device)
    pixels, begin = probe.clone().requires_grad_(), 0.0
    adam = torch.optim.Adam([{"params": net.parameters()}, {"params": [pixels], "lr": 0.002 * float(probe.abs().square().mean().sqrt())}], 4e-3)
    for step in range(steps + 1):
        begin = begin if step != 1 else time.perf_counter()  # the first makes plans
        phase = net(features).reshape(shape)
        value = loss(torch.polar(torch.ones_like(phase), phase), pixels)
        adam.zero_grad()
        value.backward()
        adam.step()
        value.item() if step in (0, steps) else None  # waits
    return phase.detach(), 1000 * (time.perf_counter() - begin) / steps


def main(device="cpu", steps=120):
    """Returns the errors of the phase of a solver, of the network, of the network by plain PyTorch, and milliseconds of a step."""
    patterns, _, positions, probe, truth = load(counts=300)  # load
    loss = bracewell.PtychographyLoss(patterns, positions, truth.shape, len(probe), scale="none", loss="amplitude")
    solver = bracewell.PtychographySolver(loss, probe, schedule=bracewell.PtychographySchedule.of(loss.count))
    solver.run()  # reconstruct
    start = torch.as_tensor(solver.probe[0]).to(device)
    measured = torch.as_tensor(patterns).to(device)
    ours = bracewell.torch.PtychographyLoss(measured, positions, truth.shape, len(probe), scale="none", loss="amplitude")
    plain_way = plain_loss(measured, torch.as_tensor(positions).to(device), len(probe))
    (learned, step), (plainly, plain) = (refine(one, start, truth.shape, steps) for one in (ours, plain_way))  # refine
    errors, middle = [], (slice(16, -16),) * 2
    for phase in (torch.as_tensor(solver.phase), learned.cpu(), plainly.cpu()):  # look
        turned = torch.polar(torch.ones(phase.shape), phase - torch.as_tensor(truth).float())[middle]
        errors.append(float((turned * turned.mean().conj() / turned.mean().abs() - 1).abs().square().mean().sqrt()))
    print("error of the object: pixels {:.3f}, learned {:.3f}, by plain PyTorch {:.3f}".format(*errors))
    print(f"on {device} a step takes {step:.2f} ms, in plain PyTorch {plain:.2f} ms")
    return *errors, step, plain


if __name__ == "__main__":
    main(*sys.argv[1:2])
