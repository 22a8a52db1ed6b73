"""Passages as the ids that judgements know them by."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, get_args

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.outputs import DOCUMENT_IDS, Passage

#: What several passages of one judged document are: one place in the ranking, or a place each, of which the
#: first alone counts.
Repeats = Literal["collapse", "keep"]

REPEATS: tuple[Repeats, ...] = get_args(Repeats)


def ranked_ids(
    passages: Sequence[Passage], judged: Collection[str], *, repeats: Repeats = "collapse"
) -> list[str]:
    """The ranking of judged things that a list of passages is.

    A passage is known by its own id where that is judged, else by the first id of its document that is judged and
    not yet taken; a document's id is what its metadata hold below ``corpus_id``, ``parent_id``, ``doc_id``,
    ``source_id`` or ``file``. So judgements may be about chunks, documents, or both.

    Where documents are judged, several passages of one document are one place, that of the best (``"collapse"``):
    the ranking of documents that `rag-kit benchmark` and published tables score. With ``"keep"`` each passage holds
    its place, and what comes again counts as not relevant: the list as a reader sees it.

    Args:
        passages: Best first.
        judged: Ids that there is a grade for.
        repeats: ``"collapse"`` or ``"keep"``.

    Returns:
        Ids, best first, none twice.

    Raises:
        InvalidInputError: If ``repeats`` is neither.

    Example:
        >>> found = [Passage("x#1", "", {"doc_id": "x"}), Passage("x#2", "", {"doc_id": "x"}),
        ...          Passage("a#7", "", {"doc_id": "a"})]
        >>> ranked_ids(found, {"a"}), ranked_ids(found, {"x#2"})
        (['x', 'a'], ['x#1', 'x#2', 'a#7'])
        >>> ranked_ids(found, {"x"}), ranked_ids(found, {"x"}, repeats="keep")
        (['x', 'a'], ['x', 'x#2', 'a'])
    """
    if repeats not in REPEATS:
        raise InvalidInputError(f"repeats is {repeats!r}; allowed are {', '.join(REPEATS)}")
    fields = _fields(passages, judged)
    taken: set[str] = set()
    ranking: list[str] = []
    for place, passage in enumerate(passages, start=1):
        known = _known(passage, judged, fields)
        name = next((one for one in known if one not in taken), None)
        if name is None and repeats == "keep":
            # an id of no document: the place is held, by nothing that could count
            name = passage.id if passage.id not in taken | set(judged) else f"\0{place}"
        if name is not None:
            taken.add(name)
            ranking.append(name)
    return ranking


def _fields(passages: Sequence[Passage], judged: Collection[str]) -> tuple[str, ...]:
    """The metadata by which some passage is judged: they say that documents are ranked, and by which name."""
    return tuple(
        field
        for field in DOCUMENT_IDS
        if any(
            passage.id not in judged and str(passage.metadata.get(field) or "") in judged
            for passage in passages
        )
    )


def _known(passage: Passage, judged: Collection[str], fields: Sequence[str]) -> list[str]:
    """Names that the passage may stand under, the most exact first."""
    if names := [name for name in passage.ids if name in judged]:
        return names
    document = next((str(passage.metadata[field]) for field in fields if passage.metadata.get(field)), None)
    return [passage.id if document is None else document]
