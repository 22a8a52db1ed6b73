"""The space of this kit's retrievers over one's own documents."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.tuning.space import PipelineSpace, SearchSpace

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from rag_kit.evaluation.pipelines import Parts
    from rag_kit.retrieval.base import RagKitRetriever

_DEPTH = 100
"""Passages that each arm brings before they are fused, reranked and cut to k."""
_KEPT = 4
"""Chunk sizes whose indexes stay in memory."""
_FUSIONS = {
    "convex-z": {"fusion": "convex", "normalisation": "z-score"},
    "convex": {"fusion": "convex", "normalisation": "min-max"},
    "convex-maximum": {"fusion": "convex", "normalisation": "maximum"},
    "rrf": {"fusion": "rrf"},
    "auto": {"fusion": "auto"},
}
_REWRITES = {
    "multi_query": "MultiQueryRetriever",
    "step_back": "StepBackRetriever",
    "hyde": "HyDERetriever",
    "query2doc": "Query2DocRetriever",
    "decomposition": "DecompositionRetriever",
}
SEARCHES = ("hybrid", "bm25", "dense")
_MARK = "rag_kit_tuning_document"
_OWNERS = ("parent_id", "doc_id", "source_id", "corpus_id")
"""Metadata by which judgements of a document are found for its chunks: `rag_kit.evaluation.outputs.Passage.ids`."""


class RetrieverSpace(PipelineSpace):
    """Retrievers over documents: how they are cut, searched, fused, and what is done with the question.

    ``search`` (hybrid, bm25 or dense), ``chunk_size`` (``None``: documents as they are), ``feedback`` (the keyword
    arm learns terms from its first results: RM3), ``fusion`` with ``bm25_weight`` (the dense arm has the rest) and
    ``rrf_k``, ``diversity`` (maximal marginal relevance), ``rewrite`` (where a model is given) and ``k``. The
    default setting is the kit's own default. Indexes and vectors are made once for each chunk size.

    Args:
        documents: What is searched: LangChain documents, or passages of an evaluation set.
        embeddings: The embedding model, or its name; ``None`` for the kit's default, ``"none"`` for keyword search.
        llm: The chat model of the rewriting techniques, or its name; ``None`` leaves them out.
        k: Passages that come back: a number, or ``(low, high)`` to have it tuned; then ``high`` is the default.
        chunk_sizes: Characters of a chunk that may be chosen; the first is the default. ``None`` among them stands
            for the documents as they are.
        searches: Those that may be chosen; the first is the default.
        rewrites: Techniques that may be chosen beside none.
        cache: Folder that keeps vectors between runs.

    Raises:
        InvalidInputError: If there are no documents, or a setting is not allowed.

    Example:
        >>> from langchain_core.documents import Document
        >>> lake = Document("The lake is deep.", id="lake")
        >>> space = RetrieverSpace([lake], embeddings="none", k=3)
        >>> space.default
        {'search': 'bm25', 'chunk_size': 1000, 'feedback': False, 'k': 3}
        >>> [found.metadata["parent_id"] for found in space.make(space.default).invoke("lake")]
        ['lake']
    """

    def __init__(
        self,
        documents: Sequence[Any],
        *,
        embeddings: Embeddings | str | None = None,
        llm: Any = None,
        k: int | tuple[int, int] = 10,
        chunk_sizes: Sequence[int | None] = (1000, 500, 2000, None),
        searches: Sequence[str] = SEARCHES,
        rewrites: Sequence[str] = tuple(_REWRITES),
        cache: Path | str | None = None,
    ) -> None:
        self.workshop = Workshop(documents, embeddings=embeddings, llm=llm, cache=cache)
        chosen = _subset("searches", searches, SEARCHES)
        if self.workshop.embeddings is None:
            if "bm25" not in chosen:
                raise InvalidInputError(
                    f"searches is {list(searches)!r:.120}, and there is no embedding model; install one with "
                    "`rag-kit models install minilm`, name one, or allow 'bm25'"
                )
            chosen = ["bm25"]
        asked = _subset("rewrites", rewrites, tuple(_REWRITES)) if self.workshop.llm is not None else []
        super().__init__(_parameters(chosen, _chunk_sizes(chunk_sizes), asked, _most(k)))

    def make(self, settings: Mapping[str, Any]) -> RagKitRetriever:
        """The retriever of a setting; what fails in it is raised, so that it does not pass for a result."""
        return self.workshop.retriever(self.settle(settings), on_error="raise")

    def identity(self) -> dict[str, Any]:
        """The documents' hash and the models' names."""
        return self.workshop.identity()

    def source(self) -> tuple[tuple[str, str], str]:
        """`build_retriever`, over documents that the caller of the written file gives."""
        return ("rag_kit.evaluation.tuning", "build_retriever"), "documents, *, embeddings=None, llm=None"


def build_retriever(
    documents: Sequence[Any],
    settings: Mapping[str, Any],
    *,
    embeddings: Embeddings | str | None = None,
    llm: Any = None,
    on_error: str = "skip",
) -> RagKitRetriever:
    """The retriever of a setting of `RetrieverSpace`, over any documents.

    Args:
        documents: What is searched.
        settings: As a search gave them.
        embeddings: The embedding model, or its name; ``None`` for the kit's default.
        llm: The chat model, or its name, where the setting rewrites questions.
        on_error: ``"skip"`` an arm that fails, and note it, or ``"raise"``.

    Raises:
        InvalidInputError: If a setting is not allowed, or needs a model that is not there.

    Example:
        >>> from langchain_core.documents import Document
        >>> settings = {"search": "bm25", "chunk_size": 200, "feedback": False, "k": 1}
        >>> found = build_retriever([Document("湖水很深。", id="lake")], settings, embeddings="none").invoke("湖水")
        >>> found[0].page_content
        '湖水很深。'
    """
    if not isinstance(settings, Mapping):
        raise InvalidInputError(f"settings is {settings!r:.120}; give the settings that a search found")
    sizes, k = settings.get("chunk_size", 1000), settings.get("k", 10)
    every = SearchSpace(_parameters(list(SEARCHES), _chunk_sizes([sizes]), list(_REWRITES), _most(k)))
    settled = every.settle(settings)
    if on_error not in ("raise", "skip"):
        raise InvalidInputError(f"on_error is {on_error!r:.80}; allowed are 'raise' and 'skip'")
    workshop = Workshop(documents, embeddings="none" if settled["search"] == "bm25" else embeddings, llm=llm)
    return workshop.retriever(settled, on_error=on_error)


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
        from rag_kit.evaluation.embedding_cache import EmbeddingCache
        from rag_kit.evaluation.pipelines import Parts

        if chunk_size in self._parts:
            self._parts.move_to_end(chunk_size)
            return self._parts[chunk_size]
        cache = None if self._cache is None else EmbeddingCache(self._cache)
        made = Parts(
            _chunks(self.documents, chunk_size), depth=_DEPTH, embeddings=self.embeddings, cache=cache
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

        technique = getattr(retrieval, _REWRITES[rewrite])
        rewriting: RagKitRetriever = technique.from_llm(self.llm, found, k=k, on_error=on_error)
        return rewriting

    def _searching(
        self, settings: Mapping[str, Any], parts: Parts, depth: int, k: int, on_error: Any
    ) -> RagKitRetriever:
        from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, ExpansionRetriever

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
        fusion = dict(_FUSIONS[settings["fusion"]])
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


def _parameters(
    searches: list[str], chunk_sizes: list[int | None], rewrites: list[str], k: tuple[int, int]
) -> dict[str, Any]:
    weighted = [name for name in _FUSIONS if name != "auto"]
    form: dict[str, Any] = {"search": searches, "chunk_size": chunk_sizes}
    if "bm25" in searches or "hybrid" in searches:
        keyword = [name for name in searches if name != "dense"]
        form["feedback"] = {"choices": [False, True], "when": {"search": keyword}}
    if "hybrid" in searches:
        form["fusion"] = {"choices": list(_FUSIONS), "when": {"search": "hybrid"}}
        form["bm25_weight"] = {
            "float": [0.1, 0.9], "step": 0.1, "default": 0.6, "when": {"search": "hybrid", "fusion": weighted}
        }  # fmt: skip
        form["rrf_k"] = {
            "int": [1, 100],
            "log": True,
            "default": 60,
            "when": {"search": "hybrid", "fusion": "rrf"},
        }
    if any(name != "bm25" for name in searches):
        by_vector = [name for name in searches if name != "bm25"]
        form["diversity"] = {"choices": [False, True], "when": {"search": by_vector}}
        form["relevance"] = {
            "float": [0.5, 0.9], "step": 0.1, "default": 0.7, "when": {"search": by_vector, "diversity": True}
        }  # fmt: skip
    if rewrites:
        form["rewrite"] = ["none", *rewrites]
    form["k"] = [k[0]] if k[0] == k[1] else {"int": list(k), "default": k[1]}
    return form


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


def _subset(name: str, given: Any, allowed: Sequence[str]) -> list[str]:
    values = [given] if isinstance(given, str) else list(given)
    if not all(value in allowed for value in values) or len(set(values)) != len(values):
        raise InvalidInputError(f"{name} is {given!r:.120}; allowed are {', '.join(allowed)}, each once")
    return values


def _chunk_sizes(given: Any) -> list[int | None]:
    sizes = list(given) if isinstance(given, (list, tuple)) else [given]
    if not sizes or not all(size is None or (type(size) is int and size >= 20) for size in sizes):
        raise InvalidInputError(
            f"chunk_sizes is {given!r:.120}; give whole numbers of 20 or more, or None for documents as they are"
        )
    return sizes


def _most(k: Any) -> tuple[int, int]:
    ends = (k, k) if type(k) is int else k
    right = isinstance(ends, (list, tuple)) and len(ends) == 2 and all(type(end) is int for end in ends)
    if not right or not 1 <= ends[0] <= ends[1] <= 1000:
        raise InvalidInputError(
            f"k is {k!r:.80}; give a whole number from 1 to 1000, or two, the smaller first"
        )
    return (ends[0], ends[1])
