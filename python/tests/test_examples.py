# SPDX-License-Identifier: MIT
"""The examples give the numbers that they are there for, and their figures."""

import importlib.util
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
