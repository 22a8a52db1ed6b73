"""What retrievers that call others have in common: what a search is asked for, what a failure does, and bounds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator

from rag_kit.concurrency import Budget
from rag_kit.concurrency.budget import check_seconds
from rag_kit.concurrency.outcome import FanOut
from rag_kit.errors import BranchError, BudgetExceededError
from rag_kit.retrieval.base import RagKitRetriever, check_count


class CallingRetriever(RagKitRetriever):
    """Base of the retrievers that call another.

    Args:
        fetch_k: How many documents a search is asked for; each class says what ``None`` means.
        on_error: ``"skip"`` what fails and say so in the notes, or ``"raise"``.
        timeout: Seconds a call may take.
    """

    fetch_k: int | None = None
    on_error: Literal["raise", "skip"] = "skip"
    timeout: float | None = None

    @field_validator("fetch_k", mode="before")
    @classmethod
    def _depth_is_allowed(cls, value: Any) -> Any:
        return None if value is None else check_count("fetch_k", value)

    @field_validator("timeout", mode="before")
    @classmethod
    def _timeout_is_allowed(cls, value: Any) -> float | None:
        return check_seconds("timeout", value)


class BranchingRetriever(CallingRetriever):
    """Base of the retrievers that call several at a time.

    Args:
        max_concurrency: Most calls at a time; ``None`` for the config's ``max_concurrency``, else all.
    """

    max_concurrency: int | None = None

    @field_validator("max_concurrency", mode="before")
    @classmethod
    def _width_is_allowed(cls, value: Any) -> Any:
        return None if value is None else check_count("max_concurrency", value)


class BudgetedRetriever(BranchingRetriever):
    """Base of the retrievers that may ask a model: with caps on what a whole call may cost.

    Args:
        max_calls: Most requests to models, retries included.
        max_tokens: Most tokens in and out.
        deadline: Seconds for the whole call.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    deadline: float | None = None

    @field_validator("deadline", mode="before")
    @classmethod
    def _deadline_is_allowed(cls, value: Any) -> float | None:
        return check_seconds("deadline", value)

    @field_validator("max_calls", "max_tokens", mode="before")
    @classmethod
    def _cap_is_allowed(cls, value: Any, info: Any) -> Any:
        Budget(**{info.field_name: value})  # before a True is taken for a cap of 1, and a text for its number
        return value


def raise_all_failed(what: str, result: FanOut[Any]) -> None:
    """Raise where there was something to do, and all of it failed.

    Raises:
        BudgetExceededError: A budget was used up.
        BranchError: Else; the first failure is its cause.
    """
    errors = [outcome.error for outcome in result.outcomes]
    if None in errors or not errors:
        return
    for error in errors:
        if isinstance(error, BudgetExceededError):
            raise error
    raise BranchError(f"All {what} failed. {'; '.join(result.degradations)}") from errors[0]
