"""The summary of a cluster, as a representation of its members' texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_kit.documents import clean_text
from rag_kit.indexing.representing.kinds import Kind
from rag_kit.models.attempts import estimate_tokens

_MOST = 4_000  # characters of a summary


class _ClusterKind(Kind):
    def values(self, language: str) -> dict[str, str]:
        return {}

    def texts(self, reply: Any) -> list[str]:
        given = [clean_text(text).strip() for text in reply if isinstance(text, str)]
        return [text[:_MOST] for text in given if text][:1]


#: What a model is asked for; its prompts are ``represent_cluster``.
CLUSTER = _ClusterKind("cluster", "cluster")


def joined(texts: Sequence[str], most: int) -> str:
    """The texts of a cluster as one, each shortened if they have more than ``most`` tokens together."""
    total = sum(map(estimate_tokens, texts))
    if total > most:
        texts = [text[: max(1, len(text) * most // total)] for text in texts]
    return "\n\n".join(texts)
