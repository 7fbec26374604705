# SPDX-License-Identifier: MIT
"""Particles and maps from closed forms, for comparisons of programs: NumPy alone, none of Bracewell's code.

A molecule is a set of Gaussian atoms. Its map and its images are sums of exact Fourier coefficients, so that neither
interpolation nor sampling blurs the truth. Conventions are RELION's: images are of rows y and columns x with the origin
at pixel n // 2, A(rot, tilt, psi) turns the molecule before it is summed along z, a particle lies at minus its rlnOrigin.
"""
import numpy as np


def euler(rot, tilt, psi):
    """The rotation of a molecule by ZYZ Euler angles in degrees: image coordinates from the molecule's."""
    z1, y, z2 = (np.deg2rad(a) for a in (rot, tilt, psi))

    def about_z(a):
        return np.array([[np.cos(a), np.sin(a), 0], [-np.sin(a), np.cos(a), 0], [0, 0, 1]])

    about_y = np.array([[np.cos(y), 0, -np.sin(y)], [0, 1, 0], [np.sin(y), 0, np.cos(y)]])
    return about_z(z2) @ about_y @ about_z(z1)


def rotation_about(axis, degrees):
    """The matrix that turns vectors about an axis (Rodrigues)."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    a = np.deg2rad(degrees)
    return np.eye(3) + np.sin(a) * k + (1 - np.cos(a)) * k @ k


def group(*generators):
    """All products of rotations."""
    found = [np.eye(3)]
    for one in found:
        for g in generators:
            product = g @ one
            if not any(np.abs(product - f).max() < 1e-6 for f in found):
                found.append(product)
    return found


GOLDEN = (1 + 5**0.5) / 2
Z = (0, 0, 1)
SYMMETRIES = {  # in RELION's orientations
    "C1": lambda: group(),
    "C4": lambda: group(rotation_about(Z, 90)),
    "D7": lambda: group(rotation_about(Z, 360 / 7), rotation_about((1, 0, 0), 180)),
    "I1": lambda: group(rotation_about(Z, 180), rotation_about((0, 1, GOLDEN), 72)),
}


class Molecule:
    """Gaussian atoms: positions in Angstrom, weights, one width (standard deviation)."""

    def __init__(self, positions, weights, width=1.0):
        self.positions, self.weights, self.width = positions, weights, width

    def copies(self, rotations, shifts=None):
        """The molecule with symmetry: a copy turned by each rotation, moved along z."""
        shifts = np.zeros(len(rotations)) if shifts is None else shifts
        moved = [self.positions @ r.T + [0, 0, s] for r, s in zip(rotations, shifts)]
        return Molecule(np.concatenate(moved), np.tile(self.weights, len(rotations)), self.width)

    def map(self, box, pixel):
        """[box, box, box], z y x: the density without frequencies beyond the lattice's, at its voxels."""
        k = np.fft.fftfreq(box, pixel)
        waves = [np.exp(-2j * np.pi * np.outer(k, self.positions[:, axis])) for axis in range(3)]
        for wave in waves:
            wave *= np.exp(-2 * (np.pi * self.width * k[:, None]) ** 2)
            wave *= np.exp(-2j * np.pi * k[:, None] * pixel * (box // 2))
            if box % 2 == 0:
                wave[box // 2] = 0
        spectrum = np.empty((box, box, box), complex)
        for z in range(box):
            spectrum[z] = (waves[1] * (self.weights * waves[2][z])) @ waves[0].T
        return (np.fft.ifftn(spectrum).real / pixel**3).astype(np.float32)

    def image(self, box, pixel, angles, origin, contrast=None):
        """[box, box]: the projection. It is made in twice the box, so that what the contrast spreads does not come back."""
        n = 2 * box
        kx, ky = np.fft.rfftfreq(n, pixel), np.fft.fftfreq(n, pixel)
        x, y = (self.positions @ euler(*angles)[:2].T).T

        def waves(k, positions, centre):
            phases = np.outer(k, positions).astype(np.float32)
            phases -= np.rint(phases)
            wave = np.exp(np.complex64(-2j * np.pi) * phases)
            return wave * (np.exp(-2 * (np.pi * self.width * k) ** 2) * np.exp(-2j * np.pi * k * pixel * centre)).astype(
                np.complex64)[:, None]

        spectrum = (waves(ky, y, n // 2 - origin[1]) * self.weights.astype(np.float32)) @ waves(kx, x, n // 2 - origin[0]).T
        spectrum = spectrum.astype(complex)
        if contrast is not None:
            spectrum *= contrast(kx[None, :], ky[:, None])
        spectrum[n // 2] = 0
        spectrum[:, -1] = 0
        first = n // 2 - box // 2
        return (np.fft.irfft2(spectrum, s=(n, n)) / pixel**2)[first:first + box, first:first + box].astype(np.float32)


def wavelength(kilovolts):
    """Angstrom, relativistic."""
    volts = 1000 * kilovolts
    return 12.2643247 / np.sqrt(volts * (1 + 0.978466e-6 * volts))


class Contrast:
    """The contrast transfer of an image, with all that its lens does. Defoci in Angstrom, beam tilt in mrad."""

    def __init__(self, u, v, angle, kilovolts=300, cs=2.7, amplitude=0.1, tilt=(0, 0), b_factor=0, scale=1):
        self.__dict__.update(locals())

    def __call__(self, kx, ky):
        length, squared = wavelength(self.kilovolts), kx**2 + ky**2
        defocus = (self.u + self.v) / 2 + (self.u - self.v) / 2 * np.cos(
            2 * (np.arctan2(ky, kx) - np.deg2rad(self.angle)))
        phase = np.pi * length * defocus * squared - np.pi / 2 * self.cs * 1e7 * length**3 * squared**2
        value = self.scale * np.exp(-self.b_factor * squared / 4) * np.sin(phase + np.arcsin(self.amplitude))
        if not any(self.tilt):
            return value
        coma = 2 * np.pi * self.cs * 1e7 * length**2 * 1e-3 * (self.tilt[0] * kx + self.tilt[1] * ky) * squared
        return value * np.exp(-1j * coma)


def chain(random, atoms, radius, squeeze=(1, 0.75, 0.6), step=2.4):
    """A wandering chain within an ellipsoid: an irregular, compact molecule."""
    points, direction = [np.zeros(3)], np.array([1.0, 0, 0])
    while len(points) < atoms:
        direction = direction + 0.6 * random.normal(size=3)
        direction /= np.linalg.norm(direction)
        point = points[-1] + step * direction
        if np.linalg.norm(point / (radius * np.array(squeeze))) > 1:
            direction = -point / np.linalg.norm(point)
            continue
        points.append(point)
    return Molecule(np.array(points), random.uniform(0.5, 1.5, atoms))


def even_views(random, count):
    """Angles evenly over all orientations, degrees [count, 3]."""
    return np.c_[random.uniform(-180, 180, count), np.rad2deg(np.arccos(random.uniform(-1, 1, count))),
                 random.uniform(-180, 180, count)]


def write_mrc(path, values, pixel, stack=False):
    """Mode 2; a stack of images, or a volume."""
    values = np.ascontiguousarray(values, "<f4")
    nz, ny, nx = values.shape
    header = np.zeros(256, "<i4")
    header[0:4] = nx, ny, nz, 2
    header[7:10] = nx, ny, 1 if stack else nz
    header[10:13] = np.array([nx * pixel, ny * pixel, (1 if stack else nz) * pixel], "<f4").view("<i4")
    header[13:16] = np.array([90, 90, 90], "<f4").view("<i4")
    header[16:19] = 1, 2, 3
    header[19:22] = np.array([values.min(), values.max(), values.mean()], "<f4").view("<i4")
    header[22] = 0 if stack else 1
    header[27] = 20140
    header[52] = np.frombuffer(b"MAP ", "<i4")[0]
    header[53] = 0x00004444
    header[54] = np.array([values.std()], "<f4").view("<i4")[0]
    with open(path, "wb") as file:
        file.write(header.tobytes())
        file.write(values.tobytes())


def read_mrc(path):
    """Mode 2, as double."""
    with open(path, "rb") as file:
        header = np.frombuffer(file.read(1024), "<i4")
        assert header[3] == 2, f"{path}: expected mode 2, found {header[3]}"
        file.seek(1024 + header[23])
        return np.frombuffer(file.read(), "<f4").reshape(header[2], header[1], header[0]).astype(float)


def shells_of(n):
    k = np.fft.fftfreq(n, 1 / n)
    kx = np.arange(n // 2 + 1)
    shell = np.rint(np.sqrt(k[:, None, None] ** 2 + k[None, :, None] ** 2 + kx**2)).astype(int)
    times = np.broadcast_to(np.where((kx == 0) | (2 * kx == n), 1.0, 2.0), shell.shape)
    return shell.ravel(), times.ravel()


def fsc(one, other, mask):
    """Fourier shell correlation of two maps times a mask, shells 0 to n / 2 - 1."""
    n = len(one)
    shell, times = shells_of(n)
    a, b = (np.fft.rfftn(m * mask).ravel() for m in (one, other))
    total = lambda x: np.bincount(shell, times * x, minlength=n)[:n // 2]
    return total((a * b.conj()).real) / np.sqrt(total(abs(a) ** 2) * total(abs(b) ** 2) + 1e-300)


def soft_sphere(n, radius, edge=5):
    x = np.arange(n) - n // 2
    distance = np.sqrt(x[:, None, None] ** 2 + x[None, :, None] ** 2 + x**2)
    return 0.5 + 0.5 * np.cos(np.pi * np.clip((distance - radius) / edge, 0, 1))
