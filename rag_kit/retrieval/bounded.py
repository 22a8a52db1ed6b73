"""What retrievers that call others have in common: what a search is asked for, what a failure does, and bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from rag_kit.concurrency.branches import FanOut
from rag_kit.concurrency.budget import check_seconds
from rag_kit.errors import BranchError, BudgetExceededError
from rag_kit.retrieval.base import OptionalCount, RagKitRetriever

Seconds = Annotated[float | None, BeforeValidator(lambda v, info: check_seconds(info.field_name, v))]


class BranchingRetriever(RagKitRetriever):
    """Base of the retrievers that call others."""

    fetch_k: OptionalCount = None
    on_error: Literal["raise", "skip"] = "skip"
    timeout: Seconds = None
    max_concurrency: OptionalCount = None


def raise_all_failed(what: str, result: FanOut[Any]) -> None:
    """Raise where there was something to do, and all of it failed; a used-up budget as it is."""
    errors = [outcome.error for outcome in result.outcomes]
    if None in errors or not errors:
        return
    for error in errors:
        if isinstance(error, BudgetExceededError):
            raise error
    raise BranchError(f"All {what} failed. {'; '.join(result.degradations)}") from errors[0]
