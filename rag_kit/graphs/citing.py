"""From an answer with ``[n]`` to citations that name file, page and heading, each with a verbatim quote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.graphs.state import AnswerCitation, Update
from rag_kit.text.citations import check_citations


def cited(answer: str, documents: Sequence[Document], *, language: str | None = None) -> Update:
    """Check the answer's citations against the documents, numbered from 1 in the order given.

    Args:
        answer: Text with citations such as ``[2]``.
        documents: The passages the model was shown, in that order.
        language: ``"en"`` or ``"zh"``; None: detected.

    Returns:
        ``citations`` (a list of `AnswerCitation`), ``uncited`` (statements without one) and ``status``.

    Example:
        >>> passages = [Document("Paris is the capital of France.", metadata={"file": "fr.md", "page": 2})]
        >>> found = cited("The capital of France is Paris. [1]", passages)
        >>> found["status"], found["citations"][0]["quote"], found["citations"][0]["page"]
        ('grounded', 'Paris is the capital of France.', 2)
    """
    report = check_citations(answer, [d.page_content for d in documents], language=language)
    citations = []
    for item in report.citations:
        metadata: dict[str, Any] = {}
        if 1 <= item.number <= len(documents):
            metadata = documents[item.number - 1].metadata
        citations.append(
            AnswerCitation(
                number=item.number,
                statement=item.statement,
                quote=item.quote,
                status=item.status,
                reason=item.reason,
                score=item.score,
                file=metadata.get("file"),
                title=metadata.get("title"),
                page=metadata.get("page", metadata.get("slide", metadata.get("sheet"))),
                heading=metadata.get("heading"),
                source=metadata.get("source"),
            )
        )
    return {"citations": citations, "uncited": list(report.uncited), "status": report.status}
