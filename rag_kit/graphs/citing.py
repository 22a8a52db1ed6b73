"""From an answer with ``[n]`` to citations that name file, page and heading, each with a verbatim quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.state import AnswerCitation, Update
from rag_kit.graphs.steps import ask
from rag_kit.prompts import render_passages
from rag_kit.text.citations.check import check_citations

MAX_STATEMENTS = 100
"""Statements that a language model is asked about; those beyond are checked by words."""

Judged = Mapping[str, Literal["supported", "unsupported"]]


def cited(
    answer: str, documents: Sequence[Document], *, language: str | None = None, judged: Judged | None = None
) -> Update:
    """Check the answer's citations against the documents, numbered from 1 in the order given.

    Args:
        answer: Text with citations such as ``[2]``.
        documents: The passages the model was shown, in that order.
        language: ``"en"`` or ``"zh"``; None: detected.
        judged: Statement -> what a language model says of it, in place of the check by words.

    Returns:
        ``citations`` (a list of `AnswerCitation`), ``uncited`` (statements without one) and ``status``.

    Example:
        >>> passages = [Document("Paris is the capital of France.", metadata={"file": "fr.md", "page": 2})]
        >>> found = cited("The capital of France is Paris. [1]", passages)
        >>> found["status"], found["citations"][0]["quote"], found["citations"][0]["page"]
        ('grounded', 'Paris is the capital of France.', 2)
    """
    report = check_citations(answer, [d.page_content for d in documents], language=language, judged=judged)
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


class CitationJudge:
    """Checks the citations of an answer by a language model: one call for all statements.

    Args:
        llm: The chat model.
        folder: Folder whose ``check_citations`` files replace the packaged ones.
    """

    def __init__(self, llm: Runnable[Any, Any], folder: Path | None = None) -> None:
        self.llm = llm
        self.prompts = GraphPrompts(["check_citations"], folder)

    async def cited(self, question: str, answer: str, documents: Sequence[Document], language: str) -> Update:
        """What `cited` gives, by the model's verdicts; where it has none for a statement, the words decide.

        A statement that the passages say in part is not supported. ``notes`` say where no verdict came.
        """
        by_words = cited(answer, documents, language=language)
        numbers: dict[str, list[int]] = {}
        for one in by_words["citations"]:
            if one["status"] != "missing_passage":
                numbers.setdefault(one["statement"], []).append(one["number"])
        asked = list(numbers)[:MAX_STATEMENTS]
        if not asked:
            return by_words
        cites = [f"{statement} [{', '.join(map(str, numbers[statement]))}]" for statement in asked]
        values = {
            "question": question,
            "passages": render_passages(documents),
            "statements": render_passages([Document(text) for text in cites]),
            "count": len(asked),
        }
        found = await ask(self.llm, self.prompts.pick("check_citations", language), values, fallback=_error)
        if isinstance(found, Exception):
            return {
                **by_words,
                "notes": [f"cite: no verdict of the model ({type(found).__name__}); the words decided"],
            }
        judged: dict[str, Literal["supported", "unsupported"]] = {
            asked[label.id - 1]: "supported" if label.support == "full" else "unsupported"
            for label in found.labels
            if 1 <= label.id <= len(asked)
        }
        notes = []
        if missing := len(numbers) - len(judged):
            notes.append(f"cite: no verdict of the model on {missing} statements; the words decided")
        return {**cited(answer, documents, language=language, judged=judged), "notes": notes}


def _error(error: Exception) -> Exception:
    return error
