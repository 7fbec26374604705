# SPDX-License-Identifier: MIT
"""A parallel-beam scan whose frames are known one by one: angle, kind, time, validity and place in the file."""

from __future__ import annotations

import math
from typing import Any, Iterable, Optional

import numpy

from ._arrays import on_host
from .tomography import _radians, angular_density_weights, normalise_projections

PROJECTION, FLAT, DARK, OTHER = range(4)  # NXtomo's image_key


def _sorted_by_angle(angles: Any) -> tuple[Any, Any]:
    """The order of the library's sort_by_angle, and the angles in it."""
    angles = numpy.asarray(angles, float)
    order, turn = numpy.arange(len(angles)), 2 * math.pi
    if not len(angles):
        return order, angles
    steps, span = numpy.diff(angles), abs(angles[-1] - angles[0])
    if (numpy.all(steps >= 0) or numpy.all(steps <= 0)) and (span <= 1.01 * turn or span < turn / 72 * len(angles)):
        return order, angles
    folded = angles - turn * numpy.floor((angles - angles.min()) / turn)
    folded[folded - angles.min() > turn - 1e-9] = angles.min()
    order = numpy.argsort(folded, kind="stable")
    folded = folded[order]
    gaps = numpy.diff(folded, prepend=folded[-1] - turn)
    begin = 0 if gaps[0] >= gaps.max() - 1e-9 else int(gaps.argmax())  # behind the largest gap
    return numpy.roll(order, -begin), numpy.concatenate([folded[begin:], folded[:begin] + turn])


class TomographyScan:
    """Frames of a scan, those of them that are projections in the order of their angles, and their attenuation.

    Flat and dark frames whose brightness is not that of the others, and projections without light, are left out. Steps along
    the angles (`remove_outliers`, `remove_stripes`) take rows in the order of `angles`.

    Args:
        frames: ``[frames, rows, width]``, an array or a dataset of h5py, which is read as rows are asked for.
        angles: of all frames or of the projections alone.
        degrees: True: angles are in degrees. False: in radians, as by default, where none of more than a turn is taken.
        keys: of all frames: 0 projection, 1 flat, 2 dark, others are left out (NXtomo's image_key); by default projections.
        times: of all frames, in any unit; by default their places.
        flat, dark: frames ``[any, rows, width]`` without object and without beam that lie elsewhere.
        leave_out: places of frames that are left out.

    Attributes:
        kinds, times, valid: of all frames, by place.
        places: of valid projections, in the order of their angles.
        angles: their angles in radians, within a turn unless they follow each other.
        left_out: how many frames of each kind are left out.

    Raises:
        ValueError: on numbers that do not fit each other, and scans of which more than a quarter has no light.
    """

    def __init__(self, frames: Any, angles: Any, *, degrees: Optional[bool] = None, keys: Any = None, times: Any = None,
                 flat: Any = None, dark: Any = None, leave_out: Iterable[int] = ()):
        def refuse(name: str, expected: str, found: Any) -> ValueError:
            return ValueError(f"bracewell.TomographyScan: {name}: expected {expected}, found {found}")

        if len(getattr(frames, "shape", ())) != 3:
            raise refuse("frames", "[frames, rows, width]", list(getattr(frames, "shape", [])))
        self._frames, count = frames, frames.shape[0]
        self.kinds = numpy.full(count, PROJECTION) if keys is None else on_host(keys, "int64").ravel()
        self.times = numpy.arange(float(count)) if times is None else on_host(times, "float64").ravel()
        for name, values in (("keys", self.kinds), ("times", self.times)):
            if len(values) != count:
                raise refuse(name, f"{count}, one for every frame", len(values))
        self.kinds = numpy.where((self.kinds >= 0) & (self.kinds < OTHER), self.kinds, OTHER)
        self.valid = self.kinds != OTHER
        projections = numpy.flatnonzero(self.kinds == PROJECTION)
        of_frames = numpy.zeros(count)
        values = on_host(angles, "float64").ravel()
        if len(values) not in (count, len(projections)):
            raise refuse("angles", f"{len(projections)} of projections or {count} of frames", len(values))
        values = numpy.array(_radians("TomographyScan", values[projections] if len(values) == count else values, degrees))
        if not numpy.isfinite(values).all():
            raise refuse("angles", "finite values", f"{(~numpy.isfinite(values)).sum()} that are not")
        of_frames[projections] = values
        for place in leave_out:
            if not 0 <= place < count:
                raise refuse("leave_out", f"places of 0 to {count - 1}", place)
            self.valid[place] = False

        self._darks = [self._good(DARK, dark)]
        self._flats, self._flat_times = self._sets(flat)
        self._leave_out_dark(refuse)
        order, self.angles = _sorted_by_angle(of_frames[self._of(PROJECTION)])
        self.places = self._of(PROJECTION)[order]
        self.left_out = {name: int(((self.kinds == kind) & ~self.valid).sum())
                         for kind, name in ((PROJECTION, "projections"), (FLAT, "flat"), (DARK, "dark"), (OTHER, "other"))}

    @classmethod
    def open(cls, path: Any, data: Optional[str] = None, **options: Any) -> TomographyScan:
        """A scan of an HDF5 file, which h5py reads: NXtomo (an image_key beside the data) or Data Exchange. The file stays open.

        Args:
            data: the dataset of the projections; by default that of the layout.
            options: those of the class, in place of what the file says.
        """
        import h5py

        file = h5py.File(path)

        def first(*names: str) -> Optional[str]:
            return next((name for name in names if name in file), None)

        if data is None:
            found: list[str] = []
            file.visit(lambda name: found.append(name) if name.endswith("/image_key") else None)
            groups = [name[:-len("image_key")] for name in found if name[:-len("image_key")] + "data" in file]
            groups.sort(key=lambda group: "detector" not in group)
            data = first("exchange/data", *(group + "data" for group in groups))
        if data is None or data not in file:
            raise ValueError(f"bracewell.TomographyScan.open: data: expected a dataset of {path}, found {data}")
        group = data.rpartition("/")[0]
        above = [group] + [group.rsplit("/", k)[0] for k in (1, 2) if group.count("/") >= k]
        names = [f"{group}/{name}" for name in ("theta", "angles", "angle")] + [
            f"{place}/{name}" for place in above for name in ("rotation_angle", "sample/rotation_angle", "data/rotation_angle")]
        for option, of in (("keys", [f"{group}/image_key"]), ("flat", [f"{group}/{n}" for n in ("data_white", "data_flat", "white")]),
                           ("dark", [f"{group}/{n}" for n in ("data_dark", "dark")])):
            if option not in options and first(*of):
                options[option] = file[first(*of)][:]
        angles = options.pop("angles", None)
        if angles is None:
            name = first(*names)
            if name is None:
                raise ValueError(f"bracewell.TomographyScan.open: angles: expected angles= or those of {path}, found none")
            angles = file[name][:]
            unit = file[name].attrs.get("units", "deg")
            options.setdefault("degrees", "rad" not in (unit.decode() if isinstance(unit, bytes) else str(unit)).lower())
        return cls(file[data], angles, **options)

    def _of(self, kind: int) -> Any:
        return numpy.flatnonzero((self.kinds == kind) & self.valid)

    def _good(self, kind: int, elsewhere: Any, places: Any = None) -> Any:
        """The mean of the frames of a kind, but for few whose brightness is another; None of none."""
        places = self._of(kind) if places is None else places
        frames = numpy.asarray(self._frames[list(map(int, places))] if elsewhere is None else elsewhere, float)
        if not len(frames):
            return None
        middle = frames[:, frames.shape[1] // 2]
        brightness = numpy.median(middle, axis=-1)
        odd = abs(brightness - numpy.median(brightness)) > 0.2 * abs(numpy.median(brightness))
        if len(frames) < 3 or 3 * odd.sum() > len(frames):
            odd[:] = False
        if elsewhere is None:
            self.valid[places[odd]] = False
        return frames[~odd].mean(axis=0)

    def _sets(self, elsewhere: Any) -> tuple[list[Any], Any]:
        """Mean flat frames of every time: no projection was taken between the frames of a time."""
        if elsewhere is not None:
            return [self._good(FLAT, elsewhere)], numpy.zeros(1)
        flats = self._of(FLAT)
        flats = flats[numpy.argsort(self.times[flats], kind="stable")]
        before = numpy.searchsorted(numpy.sort(self.times[self.kinds == PROJECTION]), self.times[flats])
        sets = numpy.split(flats, numpy.flatnonzero(numpy.diff(before)) + 1) if len(flats) else []
        means = [self._good(FLAT, None, places) for places in sets]
        return means, numpy.array([self.times[places[self.valid[places]]].mean() for places in sets])

    def _leave_out_dark(self, refuse: Any) -> None:
        """Projections whose middle row has 1 % of the light at most in nine tenths of its pixels."""
        places = self._of(PROJECTION)
        if not self._flats or not len(places):
            return
        row = self._frames.shape[1] // 2
        dark = 0 if self._darks[0] is None else self._darks[0][row]
        seen = numpy.asarray(self._frames[:, row], float)[places]
        no_light = ~(seen > dark + 0.01 * numpy.maximum(0, self._flats[0][row] - dark))
        bad = no_light.mean(axis=-1) > 0.9
        if 4 * bad.sum() > len(places):
            raise refuse("frames", "light in three quarters of the projections at least", f"none in {bad.sum()} of {len(places)}")
        self.valid[places[bad]] = False

    @property
    def weights(self) -> list[float]:
        """Of the angles, for plans: `angular_density_weights`."""
        return angular_density_weights(self.angles, degrees=False)

    def sinograms(self, rows: Optional[slice] = None, *, logarithm: bool = True, air: tuple[int, int] = (0, 0)) -> tuple[Any, Any]:
        """Attenuation of some rows of the detector, by default all, and the mask of `normalise_projections`.

        Returns:
            Two arrays ``[rows, angles, width]``, angles in the order of `angles`. Flat fields of several times are interpolated.
        """
        rows = slice(None) if rows is None else rows
        raw = numpy.asarray(self._frames[:, rows], numpy.float32)[self.places]
        dark = None if self._darks[0] is None else self._darks[0][rows].astype(numpy.float32)
        if len(self._flats) > 1:
            times = self.times[self.places]
            share = numpy.clip(numpy.interp(times, self._flat_times, numpy.arange(len(self._flat_times))), 0, len(self._flats) - 1)
            low = numpy.minimum(share.astype(int), len(self._flats) - 2)
            share, flats = (share - low)[:, None, None], numpy.stack(self._flats)[:, rows]
            shade = 0 if dark is None else dark
            light = (1 - share) * flats[low] + share * flats[low + 1] - shade
            with numpy.errstate(divide="ignore", invalid="ignore"):
                raw = numpy.where(light > 0, (raw - shade) / light, numpy.nan).astype(numpy.float32)
            return normalise_projections(raw, logarithm=logarithm, air=air, return_valid=True)
        flat = self._flats[0][rows].astype(numpy.float32) if self._flats else None
        return normalise_projections(raw, dark if flat is not None else None, flat, logarithm=logarithm, air=air, return_valid=True)
