# SPDX-License-Identifier: MIT
"""The examples give the numbers that they are there for, and their figures."""

import importlib.util
import sys
from pathlib import Path

import pytest


def module_of(name):
    path = Path(__file__).parents[1] / "examples" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def example(tmp_path):
    def run(name):
        module = module_of(name)
        figure = tmp_path / f"{name}.png"
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            return module.main()
        result = module.main(str(figure))
        assert figure.stat().st_size > 10_000
        return result

    return run


def test_iterations_beat_filtered_backprojection(example):
    filtered, iterative = example("iterative_tomography")
    assert iterative < 0.7 * filtered


def test_images_find_their_2d_classes():
    assert module_of("classes_2d").main(count=160, starts=2) > 0.9


def test_the_prior_beats_the_data_alone(example):
    alone, with_prior = example("ptychography_prior")
    assert with_prior < 0.85 * alone


def test_the_arm_is_found(example):
    assert example("heterogeneous_reconstruction") > 0.9


def test_atoms_have_the_spectra_and_gradients_of_their_closed_form():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    spectra, *gradients, differences = module_of("atoms").main()
    assert spectra < 3e-4
    assert max(gradients) < 4e-3
    assert differences < 1e-7


def test_a_day_of_tomography():
    of_axis, of_slice, of_refined = module_of("day_tomography").main()
    assert of_axis < 0.25
    assert of_refined < 0.6 * of_slice < 0.2


def test_a_day_of_ptychography():
    plain, refined, before, after = module_of("day_ptychography").main()
    assert refined < 0.97 * plain
    assert after < 0.65 * before


def test_a_day_of_cryo_em():
    map_before, poses_before, map_after, poses_after = module_of("day_cryoem").main()
    assert map_after > map_before > 0.9
    assert poses_after < 0.6 * poses_before


@pytest.fixture
def with_torch(monkeypatch):
    """An example that takes its data from another: fewer steps than a reader makes."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "examples"), *sys.path])
    return lambda name, steps: module_of(name).main("cpu", steps)


def test_a_learned_slice_beats_filtered_backprojection(with_torch):
    filtered, learned, plain, *_ = with_torch("learned_tomography", 80)
    assert learned < 0.8 * filtered
    assert abs(plain - learned) < 0.2 * learned


def test_a_learned_phase_beats_pixels(with_torch):
    pixels, learned, plain, *_ = with_torch("learned_ptychography", 60)
    assert learned < 0.95 * pixels
    assert abs(plain - learned) < 0.2 * learned


def test_a_learned_map_has_better_poses(with_torch):
    map_before, poses_before, map_after, poses_after, map_plain, poses_plain, *_ = with_torch("learned_cryoem", 25)
    assert map_after > map_before and poses_after < 0.8 * poses_before
    assert abs(map_plain - map_after) < 0.02 and poses_plain < 0.8 * poses_before


def test_aberrations_are_found_with_pixels(with_torch):
    of_defocus, of_object, loss, plain_loss, *_ = with_torch("ptychography_lens", 60)
    assert of_defocus < 0.8 and of_object < 0.3
    assert abs(loss - plain_loss) < 0.02 * plain_loss
