"""Documents and models, and the retrievers made of them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.evaluation.ranking.pipelines import Parts
    from rag_kit.retrieval.base import RagKitRetriever

_DEPTH = 100
"""Passages that each arm brings before they are fused, reranked and cut to k."""
_KEPT = 4
"""Chunk sizes whose indexes stay in memory."""
FUSIONS: dict[str, dict[str, str]] = {
    "feedback": {"fusion": "auto"},  # the kit's default
    "convex-z": {"fusion": "convex", "normalisation": "z-score"},
    "convex": {"fusion": "convex", "normalisation": "min-max"},
    "convex-maximum": {"fusion": "convex", "normalisation": "maximum"},
    "rrf": {"fusion": "rrf"},
    "auto": {"fusion": "auto"},
}
REWRITES = {
    "multi_query": "MultiQueryRetriever",
    "step_back": "StepBackRetriever",
    "hyde": "HyDERetriever",
    "query2doc": "Query2DocRetriever",
    "decomposition": "DecompositionRetriever",
}
_MARK = "rag_kit_tuning_document"
_OWNERS = ("parent_id", "doc_id", "source_id", "corpus_id")
"""Metadata by which judgements of a document are found for its chunks: `rag_kit.evaluation.outputs.Passage.ids`."""


class Workshop:
    """Documents and models, and the indexes made of them, one set for each chunk size.

    Args:
        documents: As for `RetrieverSpace`.
        embeddings: As there.
        llm: As there.
        cache: As there.
    """

    def __init__(
        self,
        documents: Sequence[Any],
        *,
        embeddings: Any = None,
        llm: Any = None,
        cache: Path | str | None = None,
    ) -> None:
        from rag_kit.models import chat_model, embedding_model

        self.documents = _named(documents)
        named = embeddings is None or isinstance(embeddings, str)
        self.embeddings: Any = embedding_model(embeddings) if named else embeddings
        self.llm: Any = chat_model(llm) if isinstance(llm, str) else llm
        self._cache = cache
        self._parts: OrderedDict[int | None, Parts] = OrderedDict()

    def identity(self) -> dict[str, Any]:
        """What decides a score beside the setting."""
        from rag_kit.documents import to_plain
        from rag_kit.models import embedding_name
        from rag_kit.models.rewrite_cache import model_identity

        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(f"{document.id}\n{document.page_content}\0".encode("utf-8", "backslashreplace"))
        told = None if self.llm is None else str(to_plain(model_identity(self.llm)))
        return {
            "documents": digest.hexdigest(),
            "embeddings": embedding_name(self.embeddings),
            "llm": None
            if told is None
            else hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest(),
        }

    def parts(self, chunk_size: int | None) -> Parts:
        """The keyword index and the vectors for a chunk size."""
        from rag_kit.evaluation.ranking.pipelines import Parts

        if chunk_size in self._parts:
            self._parts.move_to_end(chunk_size)
            return self._parts[chunk_size]
        made = Parts(
            _chunks(self.documents, chunk_size), depth=_DEPTH, embeddings=self.embeddings, cache=self._cache
        )
        self._parts[chunk_size] = made
        while len(self._parts) > _KEPT:
            self._parts.popitem(last=False)
        return made

    def retriever(self, settings: Mapping[str, Any], *, on_error: str) -> RagKitRetriever:
        """The retriever of a whole setting."""
        k, parts = settings["k"], self.parts(settings["chunk_size"])
        if settings["search"] != "bm25" and self.embeddings is None:
            raise InvalidInputError(
                f"search={settings['search']!r} needs an embedding model and there is none; give embeddings, or "
                "install one with `rag-kit models install minilm`"
            )
        depth = max(_DEPTH, k)
        found = self._searching(settings, parts, depth, k, on_error)
        if settings.get("diversity"):
            from rag_kit.retrieval import MMRReranker, RerankRetriever

            reranker = MMRReranker(parts.known_vectors, lambda_mult=settings["relevance"], relevance="score")
            found = RerankRetriever(retriever=found, reranker=reranker, k=k, fetch_k=depth, on_error=on_error)
        rewrite = settings.get("rewrite", "none")
        if rewrite == "none":
            return found
        if self.llm is None:
            raise InvalidInputError(f"rewrite={rewrite!r} needs a chat model and there is none; give llm")
        from rag_kit import retrieval

        technique = getattr(retrieval, REWRITES[rewrite])
        rewriting: RagKitRetriever = technique.from_llm(self.llm, found, k=k, on_error=on_error)
        return rewriting

    def _searching(
        self, settings: Mapping[str, Any], parts: Parts, depth: int, k: int, on_error: Any
    ) -> RagKitRetriever:
        from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, ExpansionRetriever
        from rag_kit.retrieval.hybrid import HybridRetriever

        search = settings["search"]
        arms: list[RagKitRetriever] = []
        own_k = k if search != "hybrid" else depth
        if search != "dense":
            learns = settings["feedback"]
            arms.append(
                ExpansionRetriever.from_feedback(parts.index, k=own_k, on_error=on_error)
                if learns
                else BM25Retriever(index=parts.index, k=own_k, name="bm25")
            )
        if search != "bm25":
            arms.append(parts.dense.model_copy(update={"k": own_k}))
        if len(arms) == 1:
            return arms[0]
        if settings["fusion"] == "feedback":
            return HybridRetriever(retrievers=arms, k=k, fetch_k=depth, on_error=on_error)
        fusion = dict(FUSIONS[settings["fusion"]])
        weight = settings.get("bm25_weight")
        return EnsembleRetriever(
            retrievers=arms,
            weights=None if weight is None else [weight, round(1 - weight, 6)],
            rrf_k=settings.get("rrf_k", 60),
            k=k,
            fetch_k=depth,
            on_error=on_error,
            **fusion,
        )


def _named(documents: Sequence[Any]) -> list[Document]:
    from langchain_core.documents import Document

    from rag_kit.documents import copy_document, document_key

    if isinstance(documents, (str, bytes, Mapping)) or not isinstance(documents, Sequence) or not documents:
        raise InvalidInputError(
            f"documents is {documents!r:.80}; give a list of LangChain documents, such as rag_kit.indexing.read gives"
        )
    found: list[Document] = []
    for place, item in enumerate(documents):
        if isinstance(item, Document):
            found.append(copy_document(item))
        elif isinstance(getattr(item, "id", None), str) and isinstance(getattr(item, "text", None), str):
            found.append(
                Document(item.text, id=item.id, metadata=dict(getattr(item, "metadata", None) or {}))
            )
        else:
            raise InvalidInputError(
                f"documents[{place}] is a {type(item).__name__}; give LangChain documents, or passages with id and text"
            )
    seen: dict[str, int] = {}
    for document in found:
        key = document_key(document)
        seen[key] = seen.get(key, 0) + 1
        document.id = key if seen[key] == 1 else f"{key}~{seen[key]}"
    return found


def _chunks(documents: Sequence[Document], chunk_size: int | None) -> list[Document]:
    """Chunks that know their document by its id; the id of each is its place there."""
    if chunk_size is None:
        return list(documents)
    from langchain_core.documents import Document

    from rag_kit.indexing import split

    marked = [Document(doc.page_content, metadata={**doc.metadata, _MARK: doc.id}) for doc in documents]
    chunks = split(marked, chunk_size=chunk_size, chunk_overlap=chunk_size // 10)
    for chunk in chunks:
        owner = chunk.metadata.pop(_MARK)
        chunk.id = f"{owner}#{chunk.metadata['start']}"
        free = [name for name in _OWNERS if name not in chunk.metadata]
        if free and owner not in [chunk.metadata.get(name) for name in _OWNERS]:
            chunk.metadata[free[0]] = owner
    return chunks
