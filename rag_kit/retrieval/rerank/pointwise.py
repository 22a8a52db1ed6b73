"""Reranking by a language model that judges each passage by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.concurrency.branches import describe_failure
from rag_kit.prompts import render_passages
from rag_kit.prompts.grading import Grade
from rag_kit.retrieval.prompting import LanguagePrompts, check_model, field_of, grade_score
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import Ranking, Reranker, by_scores

_MAX_CHARS = 8_000


class PointwiseReranker(Reranker):
    """Have a model grade each passage, all passages at the same time.

    The score, from 0 to 1, is how surely the passage helps to answer the query; the model's reason goes into the
    provenance. ``score_threshold=0.5`` of the retriever then keeps what the model calls relevant. A passage whose
    grade failed stays in its place, and the notes say so.

    Args:
        llm: A chat model.
        prompt: A prompt with the variables ``question`` and ``passages``, or one a language; ``None`` for the
            kit's own (``rerank_pointwise``) in the language of the query.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the query.
        max_chars: Longest part of a passage that is shown to the model, in characters.
        depth: See ``Reranker``; it caps the model calls.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> model = FakeListChatModel(responses=['{"relevant": true, "score": 0.9, "reason": "It says why."}'])
        >>> words = BM25Retriever.from_texts(["The fan is loud because it is worn."])
        >>> ranked = RerankRetriever(retriever=words, reranker=PointwiseReranker(model), score_threshold=0.5)
        >>> len(ranked.invoke("Why is the fan loud?"))
        1
    """

    name = "pointwise"

    def __init__(
        self,
        llm: Any,
        *,
        prompt: Any = None,
        language: str = "auto",
        max_chars: int = _MAX_CHARS,
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        self.llm = check_model(llm)
        self.prompts = LanguagePrompts("rerank_pointwise", prompt, ("question", "passages"), language)
        self.max_chars = max_chars
        render_passages([], max_chars=max_chars)  # refuses what is no length

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        values = [
            {"question": query, "passages": render_passages([doc], max_chars=self.max_chars)}
            for doc in documents
        ]
        names = [f"grade of passage {number}" for number in range(1, len(documents) + 1)]
        outcomes = await call.ask(self.llm, self.prompts.choose(query), values, Grade, names)
        failed = call.failures(outcomes)
        scores = [grade_score(outcome.value) if outcome.ok else None for outcome in outcomes]
        details = [{name: field_of(one.value, name) for name in ("relevant", "reason")} for one in outcomes]
        notes = []
        if failed:
            why = describe_failure(failed[0].name, failed[0].error)
            notes.append(
                f"degraded: rerank:{self.name}: {len(failed)} of {len(documents)} passages got no grade and stay in "
                f"their place ({why})"
            )
        return by_scores(scores, details=details, notes=notes)

    def parts(self) -> Iterator[Runnable[Any, Any]]:
        """The model."""
        yield self.llm
