"""The bootstrap: coverage, and determinism."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.statistics import bootstrap_interval

A = [0.9, 0.8, 0.7, 0.6, 0.9, 0.8, 0.75, 0.85]


def test_the_seed_decides():
    """The same seed gives the same interval; blocks of draws do not change it; another seed may."""
    values = np.random.default_rng(0).random(500)
    assert bootstrap_interval(values, n=2000, seed=3) == bootstrap_interval(values, n=2000, seed=3)
    assert bootstrap_interval(values, n=2000, seed=3) != bootstrap_interval(values, n=2000, seed=4)


def test_covers_the_true_mean_about_as_often_as_it_says():
    """Of 300 samples with a known mean, 95% intervals hold it in 90% to 99%."""
    rng = np.random.default_rng(11)
    held = 0
    for trial in range(300):
        low, high = bootstrap_interval(rng.random(60), n=600, seed=trial)
        held += low <= 0.5 <= high
    assert 270 <= held <= 297


def test_level_widens_the_interval():
    """A higher level gives a wider interval."""
    narrow, wide = bootstrap_interval(A, level=0.5), bootstrap_interval(A, level=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_one_value_is_its_own_interval():
    """One query has no spread."""
    assert bootstrap_interval([0.25]) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        ([], {}, "no values"),
        ([0.1, math.nan], {}, "not finite"),
        ([0.1], {"level": 95}, "between 0 and 1"),
        ([0.1], {"n": 0}, "resamples"),
    ],
)
def test_bad_input_is_refused(values, settings, message):
    """Empty, nan and out-of-range input is refused."""
    with pytest.raises(InvalidInputError, match=message):
        bootstrap_interval(values, **settings)
