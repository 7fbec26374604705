# SPDX-License-Identifier: MIT
"""A day in a notebook with PyTorch, tomography: few views; the slice is a small network.   python learned_tomography.py [cpu|cuda]"""

import sys
import time

import bracewell
import bracewell.torch
import torch
from day_tomography import load
from torch import nn


def plain_projection(angles, n, axis):
    """The plain way: every view turns the image by grid_sample and sums along rays."""
    line = torch.arange(float(n), device=angles.device)
    s, u = torch.meshgrid(line - float(axis), line - n // 2, indexing="ij")  # [column, along the ray]
    cos, sin = angles.cos().float()[:, None, None], angles.sin().float()[:, None, None]
    places = torch.stack([s * cos - u * sin, s * sin + u * cos], dim=-1)
    grid = (places + n // 2) * 2 / (n - 1) - 1
    return lambda image: nn.functional.grid_sample(image.expand(len(angles), 1, n, n), grid, align_corners=True)[:, 0].sum(dim=2)


def refine(project, sinogram, n, steps=150):
    """The image of a network of Fourier features (Tancik et al., NeurIPS 2020), trained on the sinogram; and milliseconds of a step."""
    torch.manual_seed(0)
    line = torch.linspace(-1, 1, n)
    waves = torch.cartesian_prod(line, line) @ (6 * torch.randn(2, 48))
    features = torch.cat([waves.sin(), waves.cos()], dim=1).to(sinogram.device)
    net = nn.Sequential(nn.Linear(96, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1)).to(sinogram.device)
    adam, begin = torch.optim.Adam(net.parameters(), 4e-3), 0.0
    for step in range(steps + 1):
        begin = begin if step != 1 else time.perf_counter()  # the first makes plans
        image = 0.1 * net(features).reshape(n, n)
        loss = (project(image) - sinogram).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        loss.item() if step in (0, steps) else None  # waits
    return image.detach(), 1000 * (time.perf_counter() - begin) / steps


def main(device="cpu", steps=150):
    """Returns the relative errors of filtered back-projection, of the network, of the network by plain PyTorch, and milliseconds of a step."""
    raw, dark, flat, angles, truth = load(views=24, photons=1000)  # load
    sinogram, n = bracewell.normalise_projections(raw, dark, flat)[0], raw.shape[-1]
    axis = bracewell.find_centre(sinogram, angles)  # reconstruct
    pair = bracewell.torch.Tomography(angles, n, centre=axis, units="line_integrals")
    filtered = pair.backproject(torch.as_tensor(bracewell.filter_projections(sinogram)).to(device))
    truth, measured = torch.as_tensor(truth).to(filtered), torch.as_tensor(sinogram).to(device)
    (learned, ours), (plainly, plain) = (refine(project, measured, n, steps) for project in (  # refine
        pair.project, plain_projection(torch.as_tensor(angles).to(device), n, axis)))
    errors = [float((image - truth).norm() / truth.norm()) for image in (filtered, learned, plainly)]
    print("error of the slice: filtered {:.3f}, learned {:.3f}, by plain PyTorch {:.3f}".format(*errors))  # look
    print(f"on {device} a step takes {ours:.2f} ms, in plain PyTorch {plain:.2f} ms")
    return *errors, ours, plain


if __name__ == "__main__":
    main(*sys.argv[1:2])
