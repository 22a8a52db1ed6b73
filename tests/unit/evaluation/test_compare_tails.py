"""The reckoned tail of the sign-flip test against the exact count."""

from __future__ import annotations

import numpy as np
import pytest

from rag_kit.evaluation.comparing.significance import sign_flip_test
from rag_kit.evaluation.comparing.tails import sign_flip_tail


def exact(whole: np.ndarray) -> float:
    """The chances of every sum, one difference after the other; for whole numbers only."""
    total = int(np.abs(whole).sum())
    chances = np.zeros(2 * total + 1)
    chances[total] = 1
    for size in np.abs(whole).tolist():
        shifted = np.zeros_like(chances)
        shifted[size:] += chances[: len(chances) - size] / 2
        shifted[: len(chances) - size] += chances[size:] / 2
        chances = shifted
    return float(2 * chances[total + abs(int(whole.sum())) :].sum())


@pytest.mark.parametrize("n", [31, 60, 200, 1000])
@pytest.mark.parametrize(
    "sizes", [[1, 2], [1, 3, 4, 5, 12], list(range(1, 300))], ids=["half", "twelfths", "fine"]
)
@pytest.mark.parametrize("share", [0.65, 0.75, 0.85])
def test_the_tail_is_that_of_the_exact_count(n, sizes, share):
    """From a p-value of a few hundredths to 1e-100, on lattices and off them."""
    draw = np.random.default_rng(n)
    whole = draw.choice(sizes, n) * np.where(draw.random(n) < share, 1, -1)
    wanted = exact(whole)
    found = sign_flip_tail(whole / np.abs(whole).max())
    if wanted < 0.3:
        assert found == pytest.approx(wanted, rel=0.02 if wanted > 1e-6 or n > 31 else 0.3)
    else:
        assert found == pytest.approx(wanted, abs=0.02)


def test_many_tests_do_not_hide_a_great_difference():
    """9,999 random patterns end at 0.0002; corrected for 380 tests nothing could ever be better."""
    draw = np.random.default_rng(0)
    found = sign_flip_test(draw.normal(0.3, 0.2, 500))
    assert found.method == "saddlepoint" and 0 < found.p < 1e-50
    tail = sign_flip_test(draw.normal(0.02, 0.2, 500))
    assert tail.method == "permutation" or tail.p < 0.01


def test_both_ways_meet_where_one_takes_over():
    """Just above and below the border the reckoned tail is what the random patterns say."""
    draw = np.random.default_rng(3)
    pairs = []
    for _ in range(60):
        column = draw.normal(0.04, 0.2, 150)
        found = sign_flip_test(column)
        if found.method == "permutation" and found.p < 0.1:
            pairs.append(sign_flip_tail(column) / found.p)
    assert len(pairs) > 5 and all(0.7 < ratio < 1.4 for ratio in pairs)


def test_all_on_one_side():
    """Only one pattern and its mirror are as far from zero."""
    assert sign_flip_tail(np.array([1.0, 3.0] * 20)) == 2.0**-39
