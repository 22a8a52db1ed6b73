"""Checks besides the words of citations: a language model's verdict, and passages that disagree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from langchain_core.documents import Document

from rag_kit.graphs.running import ask, compute
from rag_kit.graphs.state import Update, check_answer
from rag_kit.prompts import PromptTemplate, render_passages
from rag_kit.text.evidence.sentences import passage_texts
from rag_kit.text.versions import VersionStatement, find_disagreements

MAX_STATEMENTS = 100  # that a language model is asked about; those beyond are checked by words


async def check_answer_by_model(
    llm: Any, prompt: PromptTemplate, question: str, answer: str, documents: Sequence[Document], language: str
) -> Update:
    """Check an answer as `check_answer` does, by the verdicts of a language model.

    Where it has none, the words decide, and ``notes`` say so. A statement said in part is not supported.
    """
    by_words = check_answer(answer, documents, language=language)
    numbers: dict[str, list[int]] = {}
    for citation in by_words["citations"]:
        if citation["status"] != "missing_passage":
            numbers.setdefault(citation["statement"], []).append(citation["number"])
    statements = list(numbers)[:MAX_STATEMENTS]
    if not statements:
        return by_words
    cites = [f"{statement} [{', '.join(map(str, numbers[statement]))}]" for statement in statements]
    values = {
        "question": question,
        "passages": render_passages(documents),
        "statements": render_passages([Document(text) for text in cites]),
        "count": len(statements),
    }
    reply = await ask(llm, prompt, values, fallback=lambda error: error)
    if isinstance(reply, Exception):
        note = f"cite: no verdict of the model ({type(reply).__name__}); the words decided"
        return {**by_words, "notes": [note]}
    verdicts: dict[str, Literal["supported", "unsupported"]] = {
        statements[label.id - 1]: "supported" if label.support == "full" else "unsupported"
        for label in reply.labels
        if 1 <= label.id <= len(statements)
    }
    missing = len(numbers) - len(verdicts)
    notes = [f"cite: no verdict of the model on {missing} statements; the words decided"] if missing else []
    return {**check_answer(answer, documents, language=language, judged=verdicts), "notes": notes}


async def note_disagreements(
    question: str, documents: Sequence[Document], cited: int | None = None
) -> list[str]:
    """Note passages that state different values of the same thing, with their versions.

    Passages beyond the first `cited` ones have no number in the answer; they are named by their title.
    """
    passages = passage_texts(documents)

    def name(one: VersionStatement) -> str:
        return f"[{one.number}]" if cited is None or one.number <= cited else one.title or "another passage"

    notes = []
    for found in await compute(partial(find_disagreements, question, passages)):
        versions = [f" ({one.version.label})" if one.version.label else "" for one in found.statements]
        parts = [
            f"{name(one)} {one.shown}{label}" for one, label in zip(found.statements, versions, strict=True)
        ]
        newest = f"the newest is {name(found.newest)}" if found.newest else "nothing says which is the newest"
        notes.append(f"answer: passages disagree: {', '.join(parts)}; {newest}")
    return notes
