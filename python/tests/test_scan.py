# SPDX-License-Identifier: MIT
"""Scans whose frames have kinds, times and any order of angles, against a disc in closed form."""

import bracewell
import numpy as np
import pytest
from conftest import relative_error

WIDTH, AXIS, GOLDEN = 64, 30.25, 0.6180339887498949


def counts(degrees, light=60000.0):
    """Frames [views, 2, width] of a disc, with 200 counts of dark."""
    theta = np.radians(degrees)[:, None, None]
    s = np.arange(WIDTH) - AXIS - 9 * np.cos(theta) + 5 * np.sin(theta)
    radius = np.array([14, 13])[None, :, None]
    path = 2 * np.sqrt(np.maximum(radius**2 - s**2, 0)) / 14
    return np.round(200 + np.reshape(light, (-1, 1, 1)) * np.exp(-path)).astype(np.uint16)


def frames(count, value):
    return np.full((count, 2, WIDTH), value, np.uint16)


def scan_of(degrees, **options):
    return bracewell.TomographyScan(counts(degrees), degrees, degrees=True, flat=frames(5, 60200), dark=frames(3, 200), **options)


EVEN = np.arange(120) * 1.5


@pytest.mark.parametrize("angles", [
    EVEN, EVEN[::-1], np.arange(120) * 180 * GOLDEN, np.arange(120) * 180 * GOLDEN % 180, (np.arange(120) % 24 * 5 + np.arange(120) // 24) * 3.0])
def test_rows_come_in_the_order_of_the_angles(angles):
    scan = scan_of(angles)
    rows, valid = scan.sinograms()
    assert sorted(scan.places) == list(range(120)) and valid.all()
    assert np.all(np.diff(scan.angles) >= 0) or np.all(np.diff(scan.angles) <= 0)
    off = np.exp(1j * scan.angles) - np.exp(1j * np.radians(angles[scan.places]))
    assert abs(off).max() < 1e-8
    expected = -np.log((counts(angles)[scan.places] - 200.0) / 60000).transpose(1, 0, 2)
    assert np.allclose(rows, expected, atol=1e-5)
    slices = bracewell.Tomography(scan.angles, WIDTH, centre=AXIS, weights=scan.weights).backproject(
        bracewell.filter_projections(rows, "hann"))
    y, x = np.mgrid[:WIDTH, :WIDTH] - WIDTH // 2
    far = np.hypot(x - 9, y + 5) - 14
    look = (abs(far) > 3) & (np.hypot(x, y) < 28)
    assert abs(slices[0] * 14 - (far < 0))[look].max() < 0.07


def test_kinds_times_and_what_is_left_out():
    light = 61000 - 250.0 * np.arange(47)  # it falls from frame to frame
    views = counts(np.arange(40) * 4.5, light[5:45])
    views[7] = 201  # the shutter was shut
    flats = [frames(1, 200 + int(level)) for level in light]
    parts = [flats[0], flats[1], frames(1, 230), flats[3], frames(1, 200), views, frames(1, 9), flats[46]]
    keys = [1, 1, 1, 1, 2] + 40 * [0] + [3, 1]
    scan = bracewell.TomographyScan(np.concatenate(parts), np.arange(40) * 4.5, degrees=True, keys=keys)
    assert scan.left_out == {"projections": 1, "flat": 1, "dark": 0, "other": 1}
    assert not scan.valid[2] and not scan.valid[12] and len(scan.angles) == 39
    rows, _ = scan.sinograms(slice(1, 2))
    assert rows.shape == (1, 39, WIDTH)
    assert abs(rows[..., :2]).max() < 1e-4  # air: the light between both times is the beam's
    named = bracewell.TomographyScan(np.concatenate(parts), np.arange(40) * 4.5, degrees=True, keys=keys, leave_out=[2, 12])
    assert np.array_equal(named.sinograms()[0], scan.sinograms()[0])
    late = bracewell.TomographyScan(np.concatenate(parts), np.arange(40) * 4.5, degrees=True, keys=keys,
                                    times=np.concatenate([np.zeros(5), 100 + np.arange(40), [150, 1e6]]))
    first = light[[0, 1, 3]].mean()
    assert abs(late.sinograms()[0][0, -1, :2] + np.log(light[44] / first)).max() < 1e-3  # the last flat frame is far away


@pytest.mark.parametrize("options, words", [
    (dict(keys=[0, 1]), "keys: expected 120, one for every frame, found 2"),
    (dict(times=[0.0]), "times: expected 120"),
    (dict(leave_out=[120]), "leave_out: expected places of 0 to 119, found 120"),
    (dict(angles=np.arange(7)), "angles: expected 120 of projections or 120 of frames, found 7"),
    (dict(angles=np.full(120, np.nan)), "angles: expected finite values, found 120 that are not"),
    (dict(frames=np.zeros((2, 3))), r"frames: expected \[frames, rows, width\], found \[2, 3\]"),
    (dict(frames=np.where(np.arange(120)[:, None, None] < 40, 200, counts(EVEN))), "frames: expected light in .*, found none in 40 of 120"),
])
def test_what_does_not_fit_is_an_error(options, words):
    given = dict(frames=counts(EVEN), angles=EVEN, degrees=False, flat=frames(5, 60200), dark=frames(3, 200))
    with pytest.raises(ValueError, match="bracewell.TomographyScan: " + words):
        bracewell.TomographyScan(**{**given, **options})


def test_files_of_both_layouts_are_the_arrays(tmp_path):
    h5py = pytest.importorskip("h5py")
    rows, _ = scan_of(EVEN).sinograms()
    with h5py.File(tmp_path / "exchange.h5", "w") as file:
        file["exchange/data"], file["exchange/theta"] = counts(EVEN), EVEN
        file["exchange/data_white"], file["exchange/data_dark"] = frames(5, 60200), frames(3, 200)
    with h5py.File(tmp_path / "nexus.nxs", "w") as file:
        group = file.create_group("entry1/tomo_entry/instrument/detector")
        group["data"] = np.concatenate([frames(5, 60200), frames(3, 200), counts(EVEN)])
        group["image_key"] = [1] * 5 + [2] * 3 + [0] * 120
        file["entry1/tomo_entry/sample/rotation_angle"] = np.radians(np.concatenate([np.zeros(8), EVEN]))
        file["entry1/tomo_entry/sample/rotation_angle"].attrs["units"] = "rad"
    for name in ("exchange.h5", "nexus.nxs"):
        scan = bracewell.TomographyScan.open(tmp_path / name)
        assert relative_error(scan.sinograms()[0], rows) < 1e-6
        assert np.allclose(scan.angles, np.radians(EVEN))
    with h5py.File(tmp_path / "nothing.h5", "w") as file:
        file["other"] = [1]
    with pytest.raises(ValueError, match="TomographyScan.open: data: expected a dataset of .*nothing.h5, found None"):
        bracewell.TomographyScan.open(tmp_path / "nothing.h5")
