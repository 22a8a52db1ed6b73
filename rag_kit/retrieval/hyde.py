"""Search with passages that a model imagines, in place of the question or together with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import BaseModel, model_validator

from rag_kit.concurrency.steps import both_forms
from rag_kit.errors import InvalidInputError
from rag_kit.models.clients import embed_logic
from rag_kit.prompts.schemas import Passages
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Rewrites
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.rewriting import RewritingRetriever
from rag_kit.retrieval.vector import VectorRetriever, VectorSearch
from rag_kit.retrieval.vectors import checked_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_PASSAGE_CHARS = 4_000
_MAX_JOINED_CHARS = 2_000  # of a passage in one query with the question


class _ImaginingRetriever(RewritingRetriever):
    """A retriever that searches with what a model imagines; over vectors in a mode of its own by default."""

    answer_form: ClassVar[type[BaseModel]] = Passages
    vector_mode: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _set_mode(cls, values: Any) -> Any:
        """Wrap a vector store into a retriever, and set the mode over one; for "dense" over its retrievers as well."""
        retriever = values.get("retriever") if isinstance(values, dict) else None
        if isinstance(retriever, VectorStore):
            wrapped = VectorRetriever(vectorstore=retriever)
            return {"mode": cls.vector_mode, **values, "retriever": wrapped}
        if cls.vector_mode == "dense" and isinstance(retriever, VectorRetriever | VectorStoreRetriever):
            return {"mode": "dense", **values}
        return values


class HyDERetriever(_ImaginingRetriever):
    """Have a model write passages that might answer the question, and search with these.

    A made-up passage resembles the real ones more than a question does, even where its facts are wrong. The
    passages are written at the same time, each in another manner. The question itself takes part too; if no
    passage comes, it is searched for alone, and the provenance says so.

    Paper: Gao, Ma, Lin, Callan: Precise Zero-Shot Dense Retrieval without Relevance Labels, arXiv 2212.10496.

    Args:
        n: Passages to write, 1 to 32; one model call each. The paper uses 8.
        mode: ``"text"`` searches for the text of each passage and fuses the lists; any retriever will do.
            ``"vector"``, the default over a vector store, makes one search with the mean of the vectors of the
            passages and the question, as in the paper; ``weights`` weigh that mean.
        retriever: For ``"vector"``: a vector store, ``VectorRetriever``, ``store.as_retriever()`` with its filter.
        embeddings: Embeds the passages; by default the store's own.
        **more: See ``RewritingRetriever``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["Bees make honey.", "Insects pollinate flowers."])
        >>> model = FakeListChatModel(responses=["Flowers are pollinated by insects such as bumblebees."])
        >>> retriever = HyDERetriever.from_llm(model, words, include_original=False, k=1)
        >>> [doc.page_content for doc in retriever.invoke("How do plants reproduce?")]
        ['Insects pollinate flowers.']
    """

    task: ClassVar[str] = "hyde"
    vector_mode: ClassVar[str] = "vector"

    n: Rewrites = 1
    mode: Literal["text", "vector"] = "text"
    embeddings: Embeddings | None = None

    @model_validator(mode="after")
    def _check_vector_mode(self) -> Self:
        if self.mode == "text":
            return self
        if not isinstance(self.retriever, (VectorRetriever, VectorStoreRetriever)):
            raise InvalidInputError(
                f"mode='vector' needs a vector store, a VectorRetriever or vectorstore.as_retriever(); "
                f"{self.retriever.get_name()} is none of these. mode='text' works with any retriever."
            )
        if self._embeddings() is None:
            raise InvalidInputError("The vector store names no embedding model; give embeddings=.")
        return self

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        """Make a search for each imagined passage, or one by the mean of their vectors and the question's."""
        numbers = range(1, self.n + 1)
        values = [{"question": question, "number": number, "count": self.n} for number in numbers]
        passages = await self._ask_for_texts(
            values, "passages", call, max_texts=self.n, max_chars=MAX_PASSAGE_CHARS, cut=True
        )
        if self.mode == "text" or not passages:
            return [Search(passage, "passage") for passage in passages]
        texts = [question, *passages] if self.include_original else passages
        embedding, instead = self._embed(texts, call), "there is no vector of the passages"
        vectors = await call.attempt("embedding", embedding, instead, unsearched=True)
        if vectors is None:  # the embedding failed, and `attempt` has noted it
            return []
        import numpy as np

        call.extra["queries"] = texts
        mean = np.average(vectors, axis=0, weights=self._weights(len(texts))).tolist()
        return [Search(question, "passages", self._search_by(mean))]

    def _search_by(self, vector: list[float]) -> VectorSearch:
        """Make a search of the store by a vector, under the filter that the retriever over it has."""
        inner: Any = self.retriever
        is_kit = isinstance(inner, VectorRetriever)
        return VectorSearch(
            vectorstore=inner.vectorstore,
            vector=vector,
            name=inner.get_name(),
            filter=inner.filter if is_kit else None,
            store_filter=None if is_kit else inner.search_kwargs.get("filter"),
        )

    def _embeddings(self) -> Embeddings | None:
        return self.embeddings or self.retriever.vectorstore.embeddings  # type: ignore[attr-defined]

    async def _embed(self, texts: list[str], call: Call) -> NDArray[np.float64]:
        model: Any = self._embeddings()
        work = both_forms(embed_logic, model, "documents", texts)
        return checked_vectors(await call.do("embedding", *work), len(texts), model)


class Query2DocRetriever(_ImaginingRetriever):
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
        **more: See ``RewritingRetriever``.

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
    vector_mode: ClassVar[str] = "dense"

    mode: Literal["sparse", "dense"] = "sparse"
    repeat: Rewrites = 5
    separator: str = "[SEP]"
    include_original: bool = False

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        """Make one search: the question with the imagined passage behind it."""
        passages = await self._ask_for_texts(
            [{"question": question}], "passages", call, max_chars=_MAX_JOINED_CHARS, cut=True
        )
        if not passages:
            return []
        call.extra["passage"] = passages[0]
        if self.mode == "dense":
            query = f"{question} {self.separator} {passages[0]}"
        else:
            query = f"{question} " * self.repeat + passages[0]
        return [Search(query, "query2doc")]
