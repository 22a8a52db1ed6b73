"""Tests of paired differences: worked figures, every pattern counted by hand, SciPy's own answers, symmetry."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compared import A, B
from support.later import later

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.statistics import (
    bootstrap_interval,
    bootstrap_intervals,
    holm,
    mcnemar_p,
    sign_flip_tests,
)

stats = later("scipy.stats")
scores = st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 0.9, 1.0])
few = st.lists(st.tuples(scores, scores), min_size=1, max_size=10)


def sign_flip_test(differences, **settings) -> float:
    """The p-value of one list of differences."""
    return sign_flip_tests(np.array(differences, dtype=float)[:, None], **settings)[0]


def by_hand(differences: list[float]) -> float:
    """Every pattern of signs, one by one."""
    seen = abs(sum(differences)) - 1e-9
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(one >= seen for one in sums) / len(sums)


def test_the_worked_figures_of_a_difference() -> None:
    """Mean difference 0.10625, exact p = 0.03125, interval 0.05 to 0.1625."""
    differences = np.array(A) - np.array(B)
    test = sign_flip_test(differences)
    assert differences.mean() == pytest.approx(0.10625)
    assert test == 0.03125
    assert bootstrap_interval(differences) == (pytest.approx(0.05), pytest.approx(0.1625))


@given(few)
@settings(max_examples=60, deadline=None)
def test_every_pattern_is_counted(pairs: list[tuple[float, float]]) -> None:
    """SciPy gives what counting all patterns by hand gives, ties of rounded fractions included."""
    differences = [a - b for a, b in pairs]
    assert sign_flip_test(differences) == pytest.approx(by_hand(differences), abs=1e-12)


@given(few, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_neither_side_is_preferred(pairs: list[tuple[float, float]], random: object) -> None:
    """Exchanging both systems, shuffling the questions, another unit, questions without difference: the same p."""
    differences = [a - b for a, b in pairs]
    p = sign_flip_test(differences)
    shuffled = list(differences)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert 0 < p <= 1
    assert sign_flip_test([-d for d in differences]) == pytest.approx(p, abs=1e-12)
    assert sign_flip_test(shuffled) == pytest.approx(p, abs=1e-12)
    assert sign_flip_test([100 * d for d in differences]) == pytest.approx(p, abs=1e-12)
    assert sign_flip_test([*differences, 0.0, 0.0]) == pytest.approx(p, abs=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_of_hits_both_tests_are_one(pairs: list[tuple[bool, bool]]) -> None:
    """With values 0 and 1 the sign-flip test is McNemar's, which is symmetric and is SciPy's binomial test."""
    only_first = sum(a and not b for a, b in pairs)
    only_second = sum(b and not a for a, b in pairs)
    p = mcnemar_p(only_first, only_second)
    assert mcnemar_p(only_second, only_first) == p
    assert sign_flip_test([int(a) - int(b) for a, b in pairs]) == pytest.approx(p, abs=1e-12)
    if only_first + only_second:
        assert p == pytest.approx(stats.binomtest(only_first, only_first + only_second).pvalue)


def test_random_patterns_come_close_to_all() -> None:
    """Above the limit random patterns are drawn; their p is near that of the t-test, and the seed decides it."""
    differences = np.random.default_rng(5).normal(0.25, 1, size=90)
    test = sign_flip_test(differences)
    assert test == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.01)
    assert sign_flip_test(differences) == test == sign_flip_test(-differences, seed=0)
    assert sign_flip_test(differences, seed=1) != test


def test_random_patterns_never_give_zero() -> None:
    """However great the difference, p is at least two of all patterns drawn; of many tests ten times as many are."""
    differences = np.linspace(1, 2, 100)
    assert sign_flip_test(differences) == pytest.approx(2 / 10_000)
    many = sign_flip_tests(np.repeat(differences[:, None], 51, axis=1))
    assert many[50] == pytest.approx(2 / 100_000)


def test_ties_of_random_patterns_count_as_ties() -> None:
    """Thirds that sum to the same value by another order of adding are the same sum."""
    differences = np.array([1 / 3, 2 / 3] * 20 + [-1 / 3, -2 / 3] * 20)
    assert sign_flip_test(differences) == 1.0


def test_a_table_is_tested_column_by_column() -> None:
    """A column's p does not depend on its neighbours."""
    table = np.random.default_rng(2).normal(size=(50, 4))
    table[:, 1] = 0
    table[5:, 2] = 0
    tests = sign_flip_tests(table)
    assert tests == [sign_flip_test(column) for column in table.T]


@pytest.mark.slow
def test_size_under_the_null() -> None:
    """About one in twenty of 200 pairs of equally good systems is called different, not more."""
    rng = np.random.default_rng(8)
    table = rng.normal(size=(24, 200))
    false_alarms = sum(test < 0.05 for test in sign_flip_tests(table))
    assert 2 <= false_alarms <= 20


def test_holm_by_hand() -> None:
    """The textbook's four p-values; a larger one is never corrected to less than a smaller one."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_holm_keeps_the_order_and_only_raises(values: list[float], random: object) -> None:
    """Corrected p-values are no smaller, in the same order, at most Bonferroni's, whatever the order given."""
    adjusted = holm(values)
    assert all(p <= q <= min(1.0, p * len(values)) + 1e-12 for p, q in zip(values, adjusted, strict=True))
    ordered = sorted(zip(values, adjusted, strict=True))
    assert [q for _, q in ordered] == sorted(adjusted)
    shuffled = list(range(len(values)))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert holm([values[i] for i in shuffled]) == [adjusted[i] for i in shuffled]


def test_many_lists_have_the_interval_that_each_has_alone() -> None:
    """To the last digit, whatever their lengths; below two values there is none."""
    numbers = np.random.default_rng(4)
    columns = [list(numbers.random(count)) for count in (40, 33, 40, 33, 2, 1, 0)]
    alone = [bootstrap_interval(column, n=2000) if len(column) > 1 else (None, None) for column in columns]
    assert bootstrap_intervals(columns, n=2000) == alone
    assert bootstrap_intervals([]) == []


def test_covers_the_true_mean_about_as_often_as_it_says():
    """95% intervals hold the known mean of 300 samples in 90% to 99% of the cases."""
    rng = np.random.default_rng(11)
    covered = 0
    for trial in range(300):
        low, high = bootstrap_interval(rng.random(60), n=600, seed=trial)
        covered += low <= 0.5 <= high
    assert 270 <= covered <= 297


def test_level_widens_the_interval():
    """A higher level gives a wider interval."""
    narrow, wide = bootstrap_interval(A, level=0.5), bootstrap_interval(A, level=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        ([], {}, "no flat list"),
        ([[0.1], [0.2]], {}, "no flat list"),
        ([0.1, math.nan], {}, "finite numbers"),
        ([0.1], {"level": 95}, "between 0 and 1"),
    ],
)
def test_bad_input_is_refused(values, settings, message):
    """Empty, nan and out-of-range input is refused."""
    with pytest.raises(InvalidInputError, match=message):
        bootstrap_interval(values, **settings)
