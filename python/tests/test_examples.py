# SPDX-License-Identifier: MIT
"""The examples give the numbers that they are there for, and their figures."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture
def example(tmp_path):
    def run(name):
        path = Path(__file__).parents[1] / "examples" / f"{name}.py"
        specification = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
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
