# SPDX-License-Identifier: MIT
"""Ptychography with a lens: Adam on the pixels of the object and on the aberrations of the probe, patterns compared by shape.

The loss, the probe and their gradients are Bracewell's. `plain_loss` and `plain_lens` say the same in PyTorch alone, for comparison.

python ptychography_lens.py [cpu|cuda]
"""

import sys
import time

import bracewell.torch
import torch

SIZE, SIDE, STEP, COUNTS = 96, 48, 6, 1e5
LENS = dict(wavelength=0.0025, pixel_size=0.02, convergence_angle=0.02)  # nm, nm, radians
TRUE, START = (15.0, 0.001, 1.5, 0.4, 0.02), (12.0, 0.001, 0.5, 0.4, 0.02)  # defocus (nm), Cs (mm), astigmatism (nm), its angle, smoothness
RATES = (0.1, 0.0, 0.05, 0.02, 0.0)  # of a step


def simulate(device):
    """Patterns [N, n, n] of a phase object of discs, the first pixels of their windows, and the object."""
    random = torch.Generator().manual_seed(2)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    phase = torch.zeros(SIZE, SIZE)
    for _ in range(20):
        row, column, radius, height = (torch.rand(4, generator=random) * torch.tensor([SIZE, SIZE, 8, 0.8])).tolist()
        phase += height * torch.exp(-((y - row)**2 + (x - column)**2) / (2 * (2 + radius / 2)**2))
    object_ = torch.polar(torch.ones(SIZE, SIZE), phase)
    corners = torch.cartesian_prod(*2 * [torch.arange(0, SIZE - SIDE + 1, STEP)])
    corners = (corners + torch.randint(-2, 3, corners.shape, generator=random)).clamp(0, SIZE - SIDE)
    probe = bracewell.torch.AberratedProbe(SIDE, SIDE, **LENS)(torch.tensor(TRUE))
    waves = torch.fft.fft2(windows(object_, corners) * probe)
    light = waves.abs().square()
    patterns = torch.poisson(light * (COUNTS / light.sum((1, 2), keepdim=True)), generator=random)
    return patterns.to(device), corners.to(device), object_.to(device)


def windows(object_, corners):
    along = torch.arange(SIDE, device=corners.device)
    return object_[corners[:, 0, None, None] + along[:, None], corners[:, 1, None, None] + along]


def plain_loss(patterns, corners):
    """The loss of bracewell.torch.PtychographyLoss in PyTorch alone."""
    root = (patterns / patterns.mean((1, 2), keepdim=True)).sqrt()

    def loss(object_, probe):
        light = torch.fft.fft2(windows(object_, corners) * probe).abs().square()
        return ((light / light.mean((1, 2), keepdim=True) + 1e-12).sqrt() - root).square().mean()

    return loss


def plain_lens(device):
    """bracewell.torch.AberratedProbe in PyTorch alone."""
    k = torch.fft.fftfreq(SIDE, LENS["pixel_size"], device=device)
    row, column = torch.meshgrid(k, k, indexing="ij")
    k, theta, length = torch.hypot(row, column), torch.atan2(column, row), LENS["wavelength"]
    edge = LENS["convergence_angle"] / length

    def probe(optics):
        chi = torch.pi * length * k**2 * (optics[0] + optics[2] * torch.cos(2 * (theta - optics[3])))
        chi = chi + torch.pi / 2 * length**3 * 1e6 * optics[1] * k**4
        wave = torch.fft.ifft2(torch.polar(torch.sigmoid((edge - k) / (edge * (optics[4].abs() + 0.01))), chi))
        return torch.fft.fftshift(wave / torch.linalg.vector_norm(wave))

    return probe


def reconstruct(loss, lens, device, steps):
    """Amplitude, phase and aberrations by Adam; returns the object, the aberrations, the losses and milliseconds of a step."""
    amplitude, phase = torch.ones(SIZE, SIZE, device=device), torch.zeros(SIZE, SIZE, device=device)
    optics, losses = torch.tensor(START, device=device), []
    moved = torch.zeros(5, device=device)  # in units of a step
    for values in (amplitude, phase, moved):
        values.requires_grad_()
    adam = torch.optim.Adam([{"params": [amplitude, phase], "lr": 0.02}, {"params": [moved], "lr": 1.0}])
    for step in range(steps + 1):
        if step == 1:  # the first makes plans
            begin = clock(device)
        adam.zero_grad()
        value = loss(torch.polar(amplitude, phase), lens(optics + moved * torch.tensor(RATES, device=device)))
        value.backward()
        adam.step()
        losses.append(value.detach())
    milliseconds = 1000 * (clock(device) - begin) / steps
    found = (optics + moved.detach() * torch.tensor(RATES, device=device)).tolist()
    return torch.polar(amplitude, phase).detach(), found, torch.stack(losses).tolist(), milliseconds


def clock(device):
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def error(found, truth):
    """Relative L2 distance in the illuminated middle, but for a common factor."""
    a, b = (image[SIDE // 2:-SIDE // 2, SIDE // 2:-SIDE // 2] for image in (found, truth))
    factor = torch.vdot(a.flatten(), b.flatten()) / torch.vdot(a.flatten(), a.flatten())
    return float((a * factor - b).norm() / b.norm())


def main(device="cpu", steps=200):
    """Returns the errors of the defocus (nm) and of the object, the last losses of both ways, and milliseconds of a step of both."""
    patterns, corners, truth = simulate(device)
    loss = bracewell.torch.PtychographyLoss(patterns, corners.cpu().double(), (SIZE, SIZE), SIDE, loss="amplitude")
    found, optics, losses, ours = reconstruct(loss, bracewell.torch.AberratedProbe(SIDE, SIDE, **LENS), device, steps)
    _, _, plain_losses, plain = reconstruct(plain_loss(patterns, corners), plain_lens(device), device, steps)
    print(f"{len(patterns)} patterns on {device}: loss {losses[0]:.4f} -> {losses[-1]:.4f} (PyTorch alone {plain_losses[-1]:.4f})")
    print(f"defocus {START[0]} -> {optics[0]:.2f} of {TRUE[0]} nm, astigmatism {START[2]} -> {optics[2]:.2f} of {TRUE[2]} nm, "
          f"error of the object {error(found, truth):.3f}")
    print(f"a step takes {ours:.2f} ms, in PyTorch alone {plain:.2f} ms")
    return abs(optics[0] - TRUE[0]), error(found, truth), losses[-1], plain_losses[-1], ours, plain


if __name__ == "__main__":
    main(*sys.argv[1:2])
