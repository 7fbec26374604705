# SPDX-License-Identifier: MIT
"""The sets of particles that maps and poses are judged by. Each is made once, in a folder of its own."""
import json

import numpy as np

from simulator import (Contrast, Molecule, SYMMETRIES, chain, euler, even_views, rotation_about, write_mrc)

OPTICS = {"rlnOpticsGroupName": "one", "rlnOpticsGroup": 1, "rlnVoltage": 300, "rlnSphericalAberration": 2.7,
          "rlnAmplitudeContrast": 0.1, "rlnImageDimensionality": 2}


realisation = 0  # of molecules, views and noise


def generator(seed):
    """Random numbers of this realisation."""
    return np.random.default_rng([seed, realisation] if realisation else seed)


def write_star(path, optics, columns):
    """RELION 3.1's tables of optics groups and particles."""
    with open(path, "w") as file:
        for name, table in (("optics", {k: [v] for k, v in optics.items()}), ("particles", columns)):
            file.write(f"\n# version 30001\n\ndata_{name}\n\nloop_\n")
            file.writelines(f"_{column} #{i + 1}\n" for i, column in enumerate(table))
            for row in zip(*table.values()):
                file.write(" ".join(f"{v:.6f}" if isinstance(v, float) else str(v) for v in row) + "\n")
            file.write("\n")


def read_star(path, table="particles"):
    """Columns of one table, as text."""
    names, rows, inside = [], [], False
    for line in open(path):
        words = line.split()
        if line.startswith("data_"):
            inside = line.strip() == f"data_{table}"
        elif inside and words and words[0].startswith("_"):
            names.append(words[0][1:])
        elif inside and words and len(words) == len(names):
            rows.append(words)
    return dict(zip(names, zip(*rows)))


def poses_of(columns):
    """Angles in degrees and origins in Angstrom."""
    number = lambda *names: np.array([[float(v) for v in columns["rln" + name]] for name in names]).T
    return number("AngleRot", "AngleTilt", "AnglePsi"), number("OriginXAngst", "OriginYAngst")


def angles_of(a):
    """Euler angles of a rotation."""
    angles = np.rad2deg([np.arctan2(a[2, 1], a[2, 0]), np.arccos(np.clip(a[2, 2], -1, 1)), np.arctan2(a[1, 2], -a[0, 2])])
    assert np.abs(euler(*angles) - a).max() < 1e-6
    return angles


class Particles:
    """Simulates images and writes truth.mrc, particles.mrcs, particles.star and set.json into a folder."""

    def __init__(self, folder, seed, molecule, box, pixel, angles, noise, defocus=(10000, 20000), astigmatism=400,
                 shift=2.0, tilt=(0, 0), b_factors=None, scales=None, extra=None, copies=None, radius=None, truth=None, **about):
        random = generator(seed)
        count = len(angles)
        origins = random.uniform(-shift, shift, (count, 2))
        mean, half = random.uniform(*defocus, count), random.uniform(0, astigmatism, count) / 2
        defoci = np.c_[mean + half, mean - half, random.uniform(0, 180, count)]
        b_factors = np.zeros(count) if b_factors is None else b_factors
        scales = np.ones(count) if scales is None else scales
        images = np.stack([
            molecule.image(box, pixel, angles[i], origins[i],
                           Contrast(*defoci[i], tilt=tilt, b_factor=b_factors[i], scale=scales[i]))
            for i in range(count)])
        if noise:  # signal to noise: power of images over that of the noise
            deviation = np.sqrt(images.var(axis=(1, 2)).mean() / noise)
            images = (images + random.normal(0, deviation, images.shape)) / deviation
        folder.mkdir(parents=True, exist_ok=True)
        write_mrc(folder / "truth.mrc", (truth or molecule).map(box, pixel), pixel)
        write_mrc(folder / "particles.mrcs", images, pixel, stack=True)
        optics = dict(OPTICS, rlnImagePixelSize=pixel, rlnImageSize=box)
        if any(tilt):
            optics.update(rlnBeamTiltX=tilt[0], rlnBeamTiltY=tilt[1])
        columns = {"rlnImageName": [f"{i + 1:06d}@particles.mrcs" for i in range(count)],
                   "rlnMicrographName": ["micrograph%d.mrc" % (i // 50) for i in range(count)]}
        for name, values in (("AngleRot", angles[:, 0]), ("AngleTilt", angles[:, 1]), ("AnglePsi", angles[:, 2]),
                             ("OriginXAngst", origins[:, 0] * pixel), ("OriginYAngst", origins[:, 1] * pixel),
                             ("DefocusU", defoci[:, 0]), ("DefocusV", defoci[:, 1]), ("DefocusAngle", defoci[:, 2])):
            columns["rln" + name] = [float(v) for v in values]
        if b_factors.any():
            columns["rlnCtfBfactor"] = [float(v) for v in b_factors]
            columns["rlnCtfScalefactor"] = [float(v) for v in scales]
        columns["rlnPhaseShift"] = [0.0] * count
        columns.update(extra or {"rlnRandomSubset": [1 + i % 2 for i in range(count)]})
        columns["rlnOpticsGroup"] = [1] * count
        write_star(folder / "particles.star", optics, columns)
        about.update(box=box, pixel=pixel, count=count, radius=radius or box / 2 - 5)
        (folder / "set.json").write_text(json.dumps(about))


def even(folder, count=1000, noise=0.05, **more):
    random = generator(1)
    molecule = chain(random, 1500, 45)
    Particles(folder, 3, molecule, 64, 2.5, even_views(random, count), noise, **more)


def few(folder):
    even(folder, 300)


def top(folder):
    """Nine of ten within 10 degrees of the top, without noise."""
    random = generator(2)
    molecule = chain(random, 1500, 45)
    angles = even_views(random, 300)
    most = slice(0, 270)
    angles[most, 1] = np.rad2deg(np.arccos(random.uniform(np.cos(np.deg2rad(10)), 1, 270)))
    angles = angles[random.permutation(300)]
    Particles(folder, 4, molecule, 64, 2.5, angles, None)


def top_noisy(folder):
    """Tilts of a half normal distribution of 25 degrees."""
    random = generator(5)
    molecule = chain(random, 1500, 45)
    angles = even_views(random, 2000)
    angles[:, 1] = np.abs(random.normal(0, 25, 2000))
    Particles(folder, 6, molecule, 64, 2.5, angles, 0.05)


def optics(folder):
    """Strong astigmatism and beam tilt, fine pixels."""
    random = generator(7)
    molecule = chain(random, 700, 28)
    Particles(folder, 8, molecule, 64, 1.5, even_views(random, 1000), 0.1, defocus=(4000, 9000), astigmatism=1500,
              tilt=(0.6, -0.4))


def dihedral(folder):
    random = generator(9)
    one = chain(random, 120, 20)
    one.positions = one.positions + [30, 0, 16]
    molecule = one.copies(SYMMETRIES["D7"]())
    Particles(folder, 10, molecule, 64, 2.5, even_views(random, 300), 0.05, symmetry="D7")


def icosahedral(folder):
    random = generator(11)
    one = chain(random, 40, 16, (1, 1, 0.6))
    one.positions = one.positions + [18, 10, 48]
    molecule = one.copies(SYMMETRIES["I1"]())
    Particles(folder, 12, molecule, 64, 2.5, even_views(random, 100), 0.03, symmetry="I1")


def helix(folder):
    """Segments of filaments that lie in the plane: 22.4 degrees and 6.2 Angstrom a unit."""
    random = generator(13)
    twist, rise = 22.4, 6.2
    one = chain(random, 60, 12, (1, 1, 0.5))
    one.positions = one.positions + [26, 0, 0]

    def filament(half):
        units = range(-half, half + 1)
        return one.copies([rotation_about((0, 0, 1), twist * u) for u in units], [rise * u for u in units])

    count = 300
    angles = np.c_[random.uniform(-180, 180, count), 90 + random.normal(0, 4, count), random.uniform(-180, 180, count)]
    tubes = np.arange(count) // 10
    # Images show what is longer than their box, the truth what fits it.
    Particles(folder, 14, filament(22), 64, 2.5, angles, 0.05, truth=filament(12), helix=(twist, rise, 5), radius=20,
              extra={"rlnHelicalTubeID": [int(1 + t % 5) for t in tubes], "rlnRandomSubset": [int(1 + t % 2) for t in tubes]})


def tilts(folder):
    """Particles of a tilt series: 41 images each from -60 to 60 degrees, weaker with dose and thickness."""
    random = generator(15)
    molecule = chain(random, 1500, 45)
    series = np.arange(-60, 61, 3.0)
    order = np.argsort(np.argsort(abs(series), kind="stable"))
    angles, b_factors, scales, halves = [], [], [], []
    for particle in range(40):
        own = euler(*even_views(random, 1)[0])
        for tilt, place in zip(series, order):
            angles.append(angles_of(rotation_about((0, 1, 0), tilt) @ own))
            b_factors.append(4.0 * 3.0 * place)  # 3 electrons an image, 4 square Angstrom each
            scales.append(np.cos(np.deg2rad(tilt)))
            halves.append(1 + particle % 2)
    Particles(folder, 16, molecule, 64, 2.5, np.array(angles), 0.03, defocus=(20000, 30000), b_factors=np.array(b_factors),
              scales=np.array(scales), extra={"rlnRandomSubset": halves})


def subtomograms(folder, count=100, box=48, pixel=4.0, noise=0.005, tilts=(-60, 60)):
    """Volumes of particles with a missing wedge, a contrast transfer that differs from one to the next, and noise."""
    random = generator(17)
    molecule = chain(random, 1500, 45)
    angles = even_views(random, count)
    origins = random.uniform(-2, 2, (count, 3)) * pixel
    folder.mkdir(parents=True, exist_ok=True)
    k = np.fft.fftfreq(box, pixel)
    kx = np.fft.rfftfreq(box, pixel)
    squared = k[:, None, None] ** 2 + k[None, :, None] ** 2 + kx**2
    tilt = np.rad2deg(np.arctan2(k[:, None, None], kx)) + 0 * squared
    wedge = (tilt >= tilts[0]) & (tilt <= tilts[1]) | ((kx == 0) & (k[:, None, None] == 0))
    maps = [Molecule(molecule.positions @ euler(*a).T - o, molecule.weights, molecule.width).map(box, pixel)
            for a, o in zip(angles, origins)]
    deviation = np.sqrt(np.mean([m.var() for m in maps]) / noise)
    columns = {"rlnImageName": [], "rlnCtfImage": []}
    for i, one in enumerate(maps):
        u = random.uniform(15000, 30000)
        contrast = wedge * Contrast(u, u, 0)(np.sqrt(squared), 0 * squared)
        spectrum = np.fft.rfftn(one) * contrast + np.fft.rfftn(random.normal(0, deviation, one.shape)) * wedge
        values = np.fft.irfftn(spectrum, s=one.shape, axes=(0, 1, 2))
        write_mrc(folder / f"subtomogram{i}.mrc", values / deviation, pixel)
        write_mrc(folder / f"ctf{i}.mrc", contrast, pixel)
        columns["rlnImageName"].append(f"subtomogram{i}.mrc")
        columns["rlnCtfImage"].append(f"ctf{i}.mrc")
    for j, name in enumerate(("Rot", "Tilt", "Psi")):
        columns["rlnAngle" + name] = [float(v) for v in angles[:, j]]
    for j, name in enumerate("XYZ"):
        columns[f"rlnOrigin{name}Angst"] = [float(v) for v in origins[:, j]]
    columns["rlnRandomSubset"] = [1 + i % 2 for i in range(count)]
    columns["rlnOpticsGroup"] = [1] * count
    write_mrc(folder / "truth.mrc", molecule.map(box, pixel), pixel)
    write_star(folder / "particles.star",
               dict(OPTICS, rlnImagePixelSize=pixel, rlnImageSize=box, rlnImageDimensionality=3), columns)
    (folder / "set.json").write_text(json.dumps(dict(box=box, pixel=pixel, count=count, radius=box / 2 - 5,
                                                     relion=["--3d_rot"])))


def many(folder):
    even(folder, 5000)


SETS = {"even": even, "top": top, "top_noisy": top_noisy, "few": few, "optics": optics, "D7": dihedral,
        "I1": icosahedral, "helix": helix, "tilts": tilts}
MORE = {"even5000": many, "subtomograms": subtomograms}


def perturbed(folder, seed=21, degrees=3.0, pixels=0.7):
    """start.star: poses off by Gaussian errors about each axis, and of each coordinate."""
    random = np.random.default_rng(seed)
    columns, optics = read_star(folder / "particles.star"), read_star(folder / "particles.star", "optics")
    angles, origins = poses_of(columns)
    pixel = float(optics["rlnImagePixelSize"][0])
    moved = []
    for own in angles:
        error = random.normal(0, degrees, 3)
        moved.append(angles_of(rotation_about(error, np.linalg.norm(error)) @ euler(*own)))
    origins = origins + random.normal(0, pixels * pixel, origins.shape)
    moved = np.array(moved)
    columns = {k: list(v) for k, v in columns.items()}
    for i, name in enumerate(("Rot", "Tilt", "Psi")):
        columns["rlnAngle" + name] = [float(v) for v in moved[:, i]]
    for i, name in enumerate(("X", "Y")):
        columns[f"rlnOrigin{name}Angst"] = [float(v) for v in origins[:, i]]
    write_star(folder / "start.star", {k: v[0] for k, v in optics.items()}, columns)


def refined(folder, symmetry, atoms, noise=0.05):
    """1000 particles whose poses in start.star are off by a median of 4.6 degrees and 0.8 pixels."""
    random = np.random.default_rng(1)
    molecule = chain(random, atoms, 45 if symmetry == "C1" else 26)
    if symmetry != "C1":
        molecule.positions = molecule.positions + [20, 6, 3]
        molecule = molecule.copies(SYMMETRIES[symmetry]())
    Particles(folder, 3, molecule, 64, 2.5, even_views(random, 1000), noise, symmetry=symmetry)
    perturbed(folder)


REFINED = {"C1": lambda folder: refined(folder, "C1", 1500), "C4": lambda folder: refined(folder, "C4", 400)}
