# SPDX-License-Identifier: MIT
"""Gaussian atoms at poses to spectra of images, with gradients of positions, widths and weights, beside plain PyTorch.

An atom of weight w and width s at (x, y) of an image of n pixels has the spectrum w exp(-2 pi^2 s^2 |k|^2 / n^2) exp(-2 pi i k.(x, y) / n).
`plain` sums this, as matrix products over atoms. `fast` inserts points into grids of twice the size by the cubic B-spline, which an FFT
and a division by the spline's transform turn into the same sum. Widths that differ are interpolated between a few (Chebyshev nodes).

python atoms.py [ATOMS SIZE POSES], by default 300 64 6; with numbers it prints times, on a GPU where there is one
"""

import sys
import time

import torch

from bracewell.torch import insert


def seen(positions, matrices, shifts):
    """Where atoms [N, 3] lie in images, [P, N, 2]: x and y from the centre. Matrices lead from images to the molecule."""
    return torch.einsum("pdm,nd->pnm", matrices[:, :, :2], positions) + shifts.flip(-1)[:, None]


def frequencies(size, like):
    """Rows and columns of a half spectrum."""
    rows = torch.arange(size, device=like.device)
    rows = torch.where(rows > size // 2, rows - size, rows)
    return rows, torch.arange(size // 2 + 1, device=like.device)


def plain(positions, widths, weights, matrices, shifts, size):
    """Spectra [P, size, size/2+1]: 8 N size^2 / 2 operations a pose."""
    rows, columns = frequencies(size, positions)
    images = []
    for points in seen(positions, matrices, shifts):
        factors = [torch.exp(torch.complex(-2 * (torch.pi * widths[:, None] * k / size) ** 2,
                                           -2 * torch.pi * points[:, axis, None] * k / size))
                   for axis, k in [(0, columns), (1, rows)]]
        images.append((weights[:, None] * factors[1]).T @ factors[0])
    return torch.stack(images)


def fast(positions, widths, weights, matrices, shifts, size, narrowest, widest, terms=8):
    """The same to about 2e-4 for atoms of widths from `narrowest` to `widest` that lie within the images: 16 `terms` additions per
    atom and pose."""
    low, high = narrowest**2, widest**2
    angles = torch.pi * (torch.arange(terms, dtype=torch.float64) + 0.5) / terms
    nodes = ((low + high) / 2 + (high - low) / 2 * torch.cos(angles)).tolist()
    points = 2 * (seen(positions, matrices, shifts) + size // 2)
    rows, columns = frequencies(size, positions)
    squared = (rows[:, None] ** 2 + columns**2) / size**2
    spline = (torch.sinc(rows / (2 * size))[:, None] * torch.sinc(columns / (2 * size))) ** 4
    turns = 2 * torch.pi * (rows[:, None] + columns) * (size // 2) / size
    to_spectra = torch.polar(1 / spline, turns).to(torch.complex128 if positions.dtype == torch.float64 else torch.complex64)
    result = 0
    for j, node in enumerate(nodes):
        share = torch.ones_like(widths)
        for other in nodes[:j] + nodes[j + 1:]:
            share = share * (widths**2 - other) / (node - other)
        values = (weights * share).expand(len(points), -1).contiguous()
        grids = insert(values, points, shape=(2 * size, 2 * size), interpolation="cubic_bspline")
        inside = torch.fft.rfft2(grids)[:, rows % (2 * size), : size // 2 + 1]
        result = result + inside * (to_spectra * torch.exp(-2 * torch.pi**2 * node * squared))
    return result


def molecule(atoms, size, poses, dtype, device="cpu"):
    """Atoms in a ball, and poses of it."""
    generator = torch.Generator().manual_seed(1)
    positions = torch.randn((atoms, 3), generator=generator, dtype=torch.float64)
    positions *= 0.3 * size * torch.rand((atoms, 1), generator=generator, dtype=torch.float64) ** (1 / 3) / positions.norm(dim=1, keepdim=True)
    widths = 0.8 + 0.7 * torch.rand(atoms, generator=generator, dtype=torch.float64)
    weights = 0.5 + torch.rand(atoms, generator=generator, dtype=torch.float64)
    matrices, triangles = torch.linalg.qr(torch.randn((poses, 3, 3), generator=generator, dtype=torch.float64))
    matrices = matrices * torch.linalg.det(matrices)[:, None, None]
    shifts = torch.randn((poses, 2), generator=generator, dtype=torch.float64)
    return [part.to(device, dtype) for part in (positions, widths, weights, matrices, shifts)]


def with_gradients(operator, parameters, cotangent, *rest):
    """Spectra, and gradients of Re <cotangent, spectra> with respect to positions, widths and weights."""
    atoms = [part.clone().requires_grad_() for part in parameters[:3]]
    spectra = operator(*atoms, *parameters[3:], *rest)
    return spectra.detach(), torch.autograd.grad((spectra * cotangent.conj()).real.sum(), atoms)


def relative(a, b):
    return float((a - b).norm() / b.norm())


def main(atoms=300, size=64, poses=6):
    """Returns the relative errors of spectra and of the three gradients against the closed form, and that of the slope along a random
    direction against finite differences."""
    parameters = molecule(atoms, size, poses, torch.float64)
    generator = torch.Generator().manual_seed(2)
    directions = [torch.randn(part.shape, generator=generator, dtype=torch.float64) for part in parameters[:3]]

    def moved(step):
        return [part + step * along for part, along in zip(parameters, directions)] + parameters[3:]

    exact = plain(*parameters, size)
    residual = exact - plain(*moved(0.05), size)  # what a fit has
    _, slopes = with_gradients(plain, parameters, residual, size)
    found, gradients = with_gradients(fast, parameters, residual, size, 0.8, 1.5)
    errors = [relative(found, exact)] + [relative(a, b) for a, b in zip(gradients, slopes)]
    above, below = ((fast(*moved(step), size, 0.8, 1.5) * residual.conj()).real.sum() for step in (1e-5, -1e-5))
    slope = sum((gradient * along).sum() for gradient, along in zip(gradients, directions))
    errors.append(float(abs((above - below) / 2e-5 / slope - 1)))
    for name, error in zip(("spectra", "gradient of positions", "of widths", "of weights", "finite differences"), errors):
        print(f"{name}: relative error {error:.1e}")
    return errors


def measure(atoms, size, poses):
    """Times of both with gradients in float, some poses at a time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parameters = molecule(atoms, size, poses, torch.float32, device)
    together = max(1, min(poses, 5_000_000 // atoms))
    last = {}

    def run(name, operator, count, step, *rest):
        start = 0.0
        for first in range(-step, count, step):  # the first is not timed
            if first == 0:
                start = synchronised()
            part = slice(max(first, 0), max(first, 0) + step)
            some = [*parameters[:3], parameters[3][part], parameters[4][part]]
            cotangent = torch.ones((len(some[3]), size, size // 2 + 1), dtype=torch.complex64, device=device)
            last[name] = with_gradients(operator, some, cotangent, size, *rest)
        seconds = synchronised() - start
        print(f"{name}: {1e3 * seconds / count:.3f} ms a pose, {seconds:.3f} s for {count}, with gradients, {device}")

    def synchronised():
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    run("bracewell", fast, poses, together, 0.8, 1.5)
    few = min(poses, 20)
    run("plain PyTorch", plain, few, 1)
    # The same pose by both.
    some = [*parameters[:3], parameters[3][:1], parameters[4][:1]]
    cotangent = torch.ones((1, size, size // 2 + 1), dtype=torch.complex64, device=device)
    (found, gradients), (exact, slopes) = (with_gradients(fast, some, cotangent, size, 0.8, 1.5),
                                           with_gradients(plain, some, cotangent, size))
    print("relative differences of spectra and gradients:",
          *[f"{relative(a, b):.1e}" for a, b in zip((found, *gradients), (exact, *slopes))])


if __name__ == "__main__":
    measure(*map(int, sys.argv[1:4])) if len(sys.argv) > 3 else main()
