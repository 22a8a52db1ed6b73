"""Choose the representations of an ingest: those asked for, else those that the index records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.index import DocumentIndex
    from rag_kit.indexing.representing.representer import Representer


@contextmanager
def representing(
    index: DocumentIndex,
    represent: Sequence[str] | str | None,
    llm: Any,
    max_concurrency: int | None,
    *,
    dry_run: bool,
) -> Iterator[Representer | None]:
    """The `Representer` for an index, closed afterwards.

    Args:
        index: The index; the model's replies are kept with it.
        represent: Those asked for; ``None`` for those recorded.
        llm: The chat model, ``None`` for the configured one.
        max_concurrency: Most calls at a time.
        dry_run: Whether no file may be made.

    Yields:
        ``None`` where none are asked for, and none ever were.

    Raises:
        InvalidInputError: None are asked for, and those recorded were made by another model than there is now.
    """
    recorded = index.settings
    if represent is None and "represent" not in recorded:
        yield None
        return
    from rag_kit.indexing.representing.representer import Representer  # imports the models

    replies = index.replies
    made = Representer(
        recorded["represent"] if represent is None else represent,
        llm=llm,
        cache=None if dry_run and isinstance(replies, Path) and not replies.exists() else replies,
        max_concurrency=max_concurrency or 8,
    )
    before, now = recorded.get("represent_model", ""), made.recorded["represent_model"]
    if represent is None and before != now:
        raise InvalidInputError(
            f"The representations of this index were made by {before!r}, and the chat model is {now!r} now. Give that "
            f"one (llm=, --model); or represent={recorded['represent']!r} (--represent) to have {now!r} make them all "
            "again; or represent=[] (--represent none) to drop them."
        )
    with closing(made):
        yield made
