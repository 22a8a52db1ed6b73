"""A question searched together with a passage that a model imagines."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import BaseModel, model_validator

from rag_kit.prompts.schemas import Passages
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Rewrites
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.rewriting import RewritingRetriever
from rag_kit.retrieval.vector import VectorRetriever

_MAX_PASSAGE_CHARS = 2_000


class Query2DocRetriever(RewritingRetriever):
    """Have a model write a passage that answers the question, and make one query of the two.

    For keyword search the question is repeated before the passage, whose many words would outweigh it; for dense
    search the two are joined once. If no passage comes, the question alone is searched for, with a note.

    Paper: Wang, Yang, Wei: Query2doc: Query Expansion with Large Language Models, arXiv 2303.07678.

    Args:
        mode: ``"sparse"``: the question ``repeat`` times, then the passage, with blanks between them.
            ``"dense"``, the default over a vector store: the question, the separator, the passage.
        repeat: How often the question stands in the sparse form, 1 to 32; 5 in the paper.
        separator: Stands in the dense form between question and passage; ``"[SEP]"`` in the paper.
        include_original: Search for the question alone too, and fuse the two lists. Off, as in the paper.

    All other arguments are those of ``RewritingRetriever``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["Bees make honey.", "Insects pollinate flowers."])
        >>> model = FakeListChatModel(responses=["Flowers are pollinated by insects such as bumblebees."])
        >>> retriever = Query2DocRetriever.from_llm(model, words, k=1)
        >>> [doc.page_content for doc in retriever.invoke("How do plants reproduce?")]
        ['Insects pollinate flowers.']
    """

    task: ClassVar[str] = "query2doc"
    answer_form: ClassVar[type[BaseModel]] = Passages

    mode: Literal["sparse", "dense"] = "sparse"
    repeat: Rewrites = 5
    separator: str = "[SEP]"
    include_original: bool = False

    @model_validator(mode="before")
    @classmethod
    def _set_default_mode(cls, values: Any) -> Any:
        """Set the mode "dense" for a search by vectors, unless another is given."""
        if not isinstance(values, dict):
            return values
        retriever = values.get("retriever")
        if isinstance(retriever, VectorStore):
            retriever = VectorRetriever(vectorstore=retriever)
            values = {**values, "retriever": retriever}
        if isinstance(retriever, (VectorRetriever, VectorStoreRetriever)):
            values = {"mode": "dense", **values}
        return values

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        """Make one search: the question with the imagined passage behind it."""
        passages = await self._ask_for_texts(
            [{"question": question}], "passages", call, max_chars=_MAX_PASSAGE_CHARS, cut=True
        )
        if not passages:
            return []
        call.extra["passage"] = passages[0]
        if self.mode == "dense":
            query = f"{question} {self.separator} {passages[0]}"
        else:
            query = f"{question} " * self.repeat + passages[0]
        return [Search(query, "query2doc")]
