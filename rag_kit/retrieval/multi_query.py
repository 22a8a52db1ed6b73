"""Other questions searched for beside a question: versions of it, or the more general one behind it."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import BaseModel

from rag_kit.prompts.schemas import Queries, Query
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Rewrites
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.rewriting import MAX_QUERY_CHARS, RewritingRetriever
from rag_kit.text.complexity import entity_queries, missing_queries

# words of a comparison, cheap to look for before the question is analysed
_COMPARISON_WORDS = re.compile(
    r"compar|contrast|differ|distinct|similar|trade-?off|\b(?:vs|versus|or)\b|[比对区差异优哪]", re.I
)


class MultiQueryRetriever(RewritingRetriever):
    """Ask a model for other versions of the question, search for all of them at once, and fuse the lists.

    Versions are written in the user's language. Those that are empty, repeat another, are in another script, or are
    longer than 500 characters are dropped. A question that compares several things ("compare A, B and C") also gets
    one search for each of them that no version is about alone, without another model call. If the model gives
    nothing usable, the question alone is searched for, and the provenance says so.

    Args:
        n: Versions to ask for, 1 to 32.
        **more: See ``RewritingRetriever``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["A fan cools the case.", "A ventilator hums at night."])
        >>> model = FakeListChatModel(responses=['{"queries": ["ventilator noise"]}'])
        >>> retriever = MultiQueryRetriever.from_llm(model, words, n=1)
        >>> [doc.page_content for doc in retriever.invoke("Why is the blower loud?")]
        ['A ventilator hums at night.']
    """

    task: ClassVar[str] = "multi_query"
    answer_form: ClassVar[type[BaseModel]] = Queries

    n: Rewrites = 3

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        """Make a search for each version of the question, and for each thing compared that none is about alone."""
        values = [{"question": question, "count": self.n}]
        variants = await self._ask_for_texts(
            values, "queries", call, max_texts=self.n, max_chars=MAX_QUERY_CHARS
        )
        if _COMPARISON_WORDS.search(question):
            variants += missing_queries(entity_queries(question), variants)
        return [Search(variant, "variant") for variant in variants]


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
