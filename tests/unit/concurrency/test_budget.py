from __future__ import annotations

import threading
import time

import pytest

from rag_kit.concurrency import Budget, use_budget
from rag_kit.concurrency.budget import (
    charge_call,
    charge_tokens,
    remaining_seconds,
)
from rag_kit.errors import BudgetExceededError, InvalidInputError


def test_calls_are_refused_before_they_are_made() -> None:
    """The call over the cap is refused and not counted; 0 allows none."""
    budget = Budget(max_calls=2)
    budget.charge_call()
    budget.charge_call()
    with pytest.raises(BudgetExceededError, match="max_calls=2"):
        budget.charge_call()
    assert budget.calls == 2
    with pytest.raises(BudgetExceededError):
        Budget(max_calls=0).charge_call()


def test_tokens_stop_the_next_call() -> None:
    """Tokens are known afterwards: the call that goes over is kept, the next is refused."""
    budget = Budget(max_tokens=10)
    budget.charge_call()
    budget.charge_tokens(10)
    with pytest.raises(BudgetExceededError, match="max_tokens=10"):
        budget.charge_call()


def test_deadline() -> None:
    """After the deadline no call passes; the remaining time never falls below 0."""
    budget = Budget(deadline=0.05)
    assert 0 < (budget.remaining_seconds() or 0) <= 0.05
    time.sleep(0.08)
    assert budget.remaining_seconds() == 0
    with pytest.raises(BudgetExceededError, match="deadline"):
        budget.charge_call()


def test_nested_budgets_are_all_charged_or_none() -> None:
    """Every enclosing budget counts; when one refuses, none has counted."""
    with use_budget(Budget(max_calls=3)) as outer, use_budget(Budget(max_calls=1)) as inner:
        charge_call()
        charge_tokens(7)
        with pytest.raises(BudgetExceededError, match="max_calls=1"):
            charge_call()
        assert (outer.calls, inner.calls, outer.tokens, inner.tokens) == (1, 1, 7, 7)
    with use_budget(Budget(max_calls=1)) as outer:
        with use_budget(Budget(max_calls=5)) as inner:
            charge_call()
            with pytest.raises(BudgetExceededError, match="max_calls=1"):
                charge_call()
            assert inner.calls == 1


def test_a_block_needs_a_budget() -> None:
    """A block without a budget, which would cap nothing, is refused; the budgets around it stay."""
    with use_budget(Budget(max_calls=1)) as outer:
        with pytest.raises(InvalidInputError, match="given no budget"), use_budget():
            pass
        charge_call()
    assert outer.calls == 1


def test_outside_a_budget_everything_is_allowed() -> None:
    """Without an active budget the functions do nothing."""
    charge_call()
    charge_tokens(5)
    assert remaining_seconds() is None


def test_remaining_is_the_nearest() -> None:
    """The nearest of the active deadlines counts, wherever it was set."""
    with use_budget(Budget(deadline=100)), use_budget(Budget()), use_budget(Budget(deadline=1000)):
        left = remaining_seconds()
        assert left is not None and 90 < left <= 100


def test_threads_never_overspend() -> None:
    """Many threads at once stay within the cap."""
    budget = Budget(max_calls=100)
    passed: list[int] = []

    def spend() -> None:
        for _ in range(50):
            try:
                budget.charge_call()
                passed.append(1)
            except BudgetExceededError:
                pass

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == budget.calls == 100


@pytest.mark.parametrize(
    "caps",
    [
        {"max_calls": -1},
        {"max_calls": True},
        {"max_tokens": 1.5},
        {"deadline": -1},
        {"deadline": "1"},
        {"deadline": 1e300},
        {"deadline": float("inf")},
        {"deadline": 10**400},
    ],
)
def test_wrong_caps(caps: dict[str, object]) -> None:
    """A cap that makes no sense is refused by name."""
    with pytest.raises(InvalidInputError, match=next(iter(caps))):
        Budget(**caps)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        Budget().charge_tokens(-1)
