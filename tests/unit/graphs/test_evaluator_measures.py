"""An evaluator with vectors that has to judge by words decides as one of words does."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.steps import run
from rag_kit.graphs.evaluators import lexical
from rag_kit.graphs.evaluators.lexical import LexicalEvaluator
from rag_kit.text.evidence.usefulness import Usefulness


class Vectors(Embeddings):
    """The same vector for every text, or none."""

    def __init__(self, fail: bool = False) -> None:
        self.fail = fail

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.fail:
            raise ConnectionError("away")
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def one(evaluator: LexicalEvaluator, question: str) -> tuple[str, float]:
    """The action that the evaluator's thresholds make of its confidence in one passage."""
    (grading,) = run(evaluator.grade(question, [Document("Some text.")], "en"), {})
    return evaluator.thresholds.action([grading.score]), grading.score


@pytest.mark.parametrize(
    "score", [-1.0, -0.5, -0.07, -0.05, 0.0, 0.07, 0.09, 0.5, 0.67, 0.69, 0.70, 0.72, 1.0]
)
def test_words_are_measured_by_the_thresholds_of_words(score: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed embedding call, and in a language the model does not read, words' thresholds decide."""

    def known(question: str, texts: Any, cosines: Any) -> list[Usefulness]:
        return [Usefulness((score + 1) / 2, {"own": 0.5, "timed": 0.0}) for _ in texts]

    monkeypatch.setattr(lexical, "usefulness", known)
    monkeypatch.setattr(Vectors, "english_only", True, raising=False)
    wanted, plain = one(LexicalEvaluator(), "Who wrote it?")
    assert plain == pytest.approx(score)
    failed, moved = one(LexicalEvaluator(embeddings=Vectors(fail=True)), "Who wrote it?")
    assert failed == wanted and -1 <= moved <= 1
    assert one(LexicalEvaluator(embeddings=Vectors()), "这本书的作者是谁？")[0] == wanted
    with_vectors = LexicalEvaluator(embeddings=Vectors())
    assert one(with_vectors, "Who wrote it?") == (with_vectors.thresholds.action([plain]), plain)
