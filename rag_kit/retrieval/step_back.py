"""A question searched together with the more general question behind it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from rag_kit.prompts.schemas import Query
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.rewriting import MAX_QUERY_CHARS, RewritingRetriever


class StepBackRetriever(RewritingRetriever):
    """Ask a model for the more general question behind a question, search for both at once, fuse the lists.

    The general question finds the background (a history, a law, a definition) that a question about a detail
    needs. If the model gives nothing usable, the question alone is searched for, and the provenance says so.
    The prompt file holds worked examples as user and model turns; replace it to show examples of your own field.

    Paper: Zheng et al.: Take a Step Back: Evoking Reasoning via Abstraction in Large Language Models, arXiv 2310.06117.

    All arguments are those of ``RewritingRetriever``; ``weights=[2, 1]`` counts the question twice as much.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["The gas law: pressure falls as volume grows.", "Tea is hot."])
        >>> model = FakeListChatModel(responses=['{"query": "What does the gas law say about pressure?"}'])
        >>> retriever = StepBackRetriever.from_llm(model, words, k=1)
        >>> [doc.page_content for doc in retriever.invoke("Why does my bottle bulge on a mountain?")]
        ['The gas law: pressure falls as volume grows.']
    """

    task: ClassVar[str] = "step_back"
    answer_form: ClassVar[type[BaseModel]] = Query

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        values = [{"question": question}]
        questions = await self._ask_for_texts(values, "query", call, max_chars=MAX_QUERY_CHARS)
        return [Search(text, "step_back") for text in questions]
