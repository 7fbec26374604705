# SPDX-License-Identifier: MIT
"""A day in a notebook with PyTorch, cryo-EM: a small network corrects the map while poses are learned.   python learned_cryoem.py [cpu|cuda]"""

import sys
import time

import bracewell
import bracewell.torch
import numpy as np
import torch
from day_cryoem import OPTIONS, N, load
from torch import nn


def plain_projection(spectrum, matrices):
    """The plain way: grid_sample of the full spectrum, real and imaginary part, at the turned frequencies."""
    full = torch.fft.fftshift(torch.fft.fftn(torch.fft.irfftn(spectrum, s=(N, N, N), dim=(1, 2, 3)), dim=(1, 2, 3)), dim=(1, 2, 3))
    y, x = torch.meshgrid(torch.fft.fftfreq(N, 1 / N), torch.arange(N // 2 + 1.0), indexing="ij")
    places = torch.stack([x, y, 0 * x], dim=-1).to(matrices) @ matrices[0, :, None].mT  # (x, y, z)
    volume = torch.view_as_real(full[0]).permute(3, 0, 1, 2)[None]
    grid = ((places + N // 2) * 2 / (N - 1) - 1).flatten(0, 1)[None, :, :, None]
    values = nn.functional.grid_sample(volume, grid, align_corners=True)[0, ..., 0].reshape(2, -1, N, N // 2 + 1)
    inside = (x**2 + y**2 <= OPTIONS["radius"]**2).to(matrices)
    return torch.complex(values[0], values[1])[None] * inside


def reconstruct(images, turns):
    data, weight = bracewell.backproject(images, turns, weights=np.ones(images.shape, np.float32), **OPTIONS)
    return np.fft.fftshift(np.fft.irfftn(bracewell.normalise(data, weight, wiener=1, radius=12)[0])).astype(np.float32)


def refine(project, images, start, first, steps):
    """Poses by Adam against the first map and a network of Fourier features that corrects it; and milliseconds of a step."""
    torch.manual_seed(0)
    waves = torch.cartesian_prod(*3 * [torch.linspace(-1, 1, N)]) @ (10 * torch.randn(3, 32))
    features = torch.cat([waves.sin(), waves.cos()], dim=1).to(images.device)
    net = nn.Sequential(nn.Linear(64, 32), nn.SiLU(), nn.Linear(32, 1)).to(images.device)
    turns, begin = torch.zeros(start.shape[1], 3, device=images.device, requires_grad=True), 0.0
    adam = torch.optim.Adam([{"params": net.parameters(), "lr": 1e-2}, {"params": [turns], "lr": 4e-3}])
    crosses = torch.linalg.cross(torch.eye(3)[:, None].expand(3, 3, 3), torch.eye(3).expand(3, 3, 3)).mT.to(turns.device)  # v x, of v = x, y, z
    for step in range(steps + 1):
        begin = begin if step != 1 else time.perf_counter()  # the first makes plans
        density = first + 0.005 * net(features).reshape(1, N, N, N)
        matrices = start @ torch.linalg.matrix_exp(torch.einsum("na,aij->nij", turns, crosses))
        spectrum = torch.fft.rfftn(torch.fft.ifftshift(density, dim=(1, 2, 3)), dim=(1, 2, 3))
        loss = (project(spectrum, matrices) - images).abs().square().mean() / images.abs().square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        loss.item() if step in (0, steps) else None  # waits
    return matrices.detach().cpu().numpy(), 1000 * (time.perf_counter() - begin) / steps


def main(device="cpu", steps=60):
    """Returns the correlation of the map with the truth and the median error of poses (degrees) before, learned and by plain PyTorch, and
    milliseconds of a step."""
    images, turns, true, truth = load()  # load
    first = reconstruct(images, turns)  # reconstruct
    given, start, density = (torch.as_tensor(array).to(device) for array in (images, turns, first))
    ours = lambda spectrum, matrices: bracewell.torch.project(spectrum, matrices, **OPTIONS)
    results = [(turns, 0.0), *(refine(project, given, start, density, steps) for project in (ours, plain_projection))]  # refine
    found = [(float(np.corrcoef(reconstruct(images, poses).ravel(), truth.ravel())[0, 1]),  # look
              float(np.median(np.degrees(np.arccos(np.clip((np.einsum("nij,nij->n", poses[0], true) - 1) / 2, -1, 1))))))
             for poses, _ in results]
    print("map and truth correlate by {:.3f}, poses are {:.1f} degrees off -> {:.3f}, {:.1f}; plain PyTorch {:.3f}, {:.1f}".format(*sum(found, ())))
    print(f"on {device} a step takes {results[1][1]:.1f} ms, in plain PyTorch {results[2][1]:.1f} ms")
    return *sum(found, ()), results[1][1], results[2][1]


if __name__ == "__main__":
    main(*sys.argv[1:2])
