"""Search an index: the representations of its documents side by side, if it has any; and make its retriever."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import field_validator

from rag_kit.concurrency.notes import outages, write_note
from rag_kit.documents import combine_filters
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.rows import Family
from rag_kit.indexing.representing.kinds import REPRESENTATION, TEXT, kinds_of
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.ensemble import EnsembleRetriever
from rag_kit.retrieval.fields import Fusion, OptionalCount, Seconds, translate_arguments, unknown_arguments
from rag_kit.retrieval.indexed import Pipeline, embed_first, rows_retriever
from rag_kit.retrieval.inside import own_filter
from rag_kit.retrieval.parents.base import FamilyWriter
from rag_kit.retrieval.parents.parent_document import ParentDocumentRetriever
from rag_kit.retrieval.rerank.retriever import RerankRetriever

_log = logging.getLogger(__name__)
_MAX_QUERY_TOKENS = 64  # on longer queries cross-encoders made results worse
_DEPTH = 30  # documents that each representation gives to the fusion
# weight of representations in other words than the document's; docs/benchmarks.md
_DERIVED_WEIGHT = 0.25
_OWN_WORDS_KINDS = (TEXT, "children")  # these consist of the document's own words
SETTING = "represent"


class MultiRepresentationRetriever(FamilyWriter):
    """Find documents by their text and by further texts made of them; return the documents.

    Each representation is searched by itself, so that none crowds out another, and what they find is fused by document.
    Several chunkings of a corpus (``"children:200"``, ``"children:400"``) stand side by side in the same way. The
    provenance of a result names the representations that found it. Documents and representations are written, replaced
    and deleted together; a representation has the metadata of its document, and passes the same filters.

    Args:
        index: The index, as ``ingest(represent=[...])`` or ``from_documents`` writes it.
        pipeline: How each is searched: ``"hybrid"``, ``"bm25"`` or ``"dense"``.
        retriever: Searches instead: any LangChain retriever over the same index that takes ``filter``.
        kinds: The representations to search, as they are written in the metadata field ``representation``;
            ``"text"`` is the document itself. Default: it, and all that the index was written with.
        weights: Representation -> weight in the fusion; 0 leaves it out. Where none is given, 1 for ``text`` and
            ``children``, which are the document's own words, and .25 for others.
        fusion: ``"convex"``, the weighted mean of scores brought to one scale, or ``"rrf"``, which looks at ranks.
        k: Most documents to return.
        filter: Metadata filter for every call. Tags that were made are fields ``tag_NAME``.
        fetch_k: How many documents each representation gives to the fusion; 30 if not given, never fewer than ``k``.
        on_error: ``"skip"`` a representation whose search fails and say so, or ``"raise"``.
        timeout: Seconds the search of one may take.
        max_concurrency: Most of them searched at a time, and most calls of the model.
        represent: For writing: what to make, such as ``["summary", "questions:3"]``; default: as recorded in the index.
        llm: For writing: the chat model; default: the configured one.
        cache: For writing: a file that keeps the model's replies, so that no text is asked for twice.
        id_key: Metadata key that holds a document's id, for writing.

    Raises:
        InvalidInputError: An argument is not allowed.
        ConfigurationError: What ``represent`` names needs a language model.

    Example:
        >>> from rag_kit.documents import get_provenance
        >>> fans = Document("Fans cool cases. A loud fan is changed for a larger one.", id="fans")
        >>> with MultiRepresentationRetriever.from_documents([fans], represent=["summary", "children:20"]) as made:
        ...     [found] = made.invoke("loud fan")
        >>> found.id, found.page_content == fans.page_content
        ('fans', True)
        >>> [s["stage"] for s in get_provenance(found)["stages"] if s["stage"].startswith("representation")]
        ['representation:text', 'representation:summary', 'representation:children:20']
    """

    kinds: tuple[str, ...] | None = None
    weights: Mapping[str, float] | None = None
    fusion: Fusion = "convex"
    on_error: Literal["raise", "skip"] = "skip"
    timeout: Seconds = None
    max_concurrency: OptionalCount = None
    represent: tuple[str, ...] | None = None
    llm: Any = None
    cache: str | PathLike[str] | None = None

    @field_validator("represent", mode="before")
    @classmethod
    def _read_represent(cls, value: Any) -> Any:
        return None if value is None else tuple(kind.spec for kind in kinds_of(value))

    @field_validator("kinds", mode="before")
    @classmethod
    def _read_kinds(cls, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(dict.fromkeys(value)) or None
        return (value,) if isinstance(value, str) else value

    def model_post_init(self, context: Any, /) -> None:
        """Make the ensemble once now, so that weights for unknown representations are refused at construction."""
        super().model_post_init(context)
        self._make_ensemble()

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search each representation side by side, and fuse the documents that they lead to."""
        ensemble = await blocking_step("representations", self._make_ensemble)  # reads the index
        await embed_first(self._row_retriever, query)
        # The ensemble fetches documents by id, so the inner retriever's own filter must be applied to them too.
        inner_filter = own_filter(self._row_retriever, call.config)
        return await call.search(ensemble, query, call.k, combine_filters(call.filter, inner_filter))

    def _make_ensemble(self) -> EnsembleRetriever:
        """Make an ensemble with one retriever for each representation that the index has at this moment."""
        written = kinds_of(self.index.settings.get(SETTING, ()))
        kinds = self.kinds or (TEXT, *(kind.spec for kind in written if kind.is_searched_alone))
        own_weights = self.weights or {}
        if unknown := sorted(set(own_weights) - set(kinds)):
            raise InvalidInputError(
                f"weights names {unknown}; the representations searched are {', '.join(kinds)}."
            )
        depth = self.fetch_k or _DEPTH
        retrievers, weights = [], []
        for kind in kinds:
            retriever = ParentDocumentRetriever(
                index=self.index,
                retriever=_KindRetriever(inner=self._row_retriever, kind=kind),
                name=kind,
                stage=f"{REPRESENTATION}:{kind}",
                # a document may be found by several of its representations
                fetch_k=depth if kind == TEXT else 2 * depth,
            )
            retrievers.append(retriever)
            kind_name = kind.partition(":")[0]  # "children:200" -> "children"
            default = 1.0 if kind_name in _OWN_WORDS_KINDS else _DERIVED_WEIGHT
            weights.append(own_weights.get(kind, default))
        return EnsembleRetriever(
            retrievers=retrievers,
            weights=weights,
            fusion=self.fusion,
            fetch_k=depth,
            on_error=self.on_error,
            timeout=self.timeout,
            max_concurrency=self.max_concurrency,
            name=self.get_name(),
        )

    def _families(self, documents: Sequence[Document]) -> list[Family]:
        """Make the representations of documents, and record in the index which kinds were made."""
        from rag_kit.indexing.representing.representer import Representer  # imports splitters and prompts

        settings = self.index.settings
        kinds = settings.get(SETTING, ()) if self.represent is None else self.represent
        width = self.max_concurrency or 8
        representer = Representer(kinds, llm=self.llm, cache=self.cache, max_concurrency=width)
        representations = representer.represent(documents)
        new_settings = {**settings, **representer.recorded}
        if representations.failed:
            count = f"{len(representations.failed)} of {len(documents)} documents"
            note = f"degraded: the model gave no usable reply for {count}, which lack some representations"
            outages.failed(_log, f"{self.get_name()} > representations", note)
            write_note(note)
        if new_settings != settings:
            self.index.record_settings(new_settings)
        return representations.families


class _KindRetriever(RagKitRetriever):
    """A retriever over the index's texts of one representation, such as ``"summary"``.

    The condition on the representation is no ``filter`` field, for that would be applied to the documents as well.
    """

    inner: Runnable[Any, Any]
    kind: str

    def inner_retrievers(self) -> Sequence[Any]:
        return [self.inner]

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search the whole index under a filter on the field that names the representation."""
        # a document itself has no such field
        condition = {"$exists": False} if self.kind == TEXT else {"$eq": self.kind}
        where = combine_filters(call.filter, {REPRESENTATION: condition})
        return await call.search(self.inner, query, call.k, where)


def index_retriever(
    index: DocumentIndex,
    pipeline: Pipeline = "hybrid",
    k: int = 5,
    filter: Mapping[str, Any] | None = None,
    *,
    fetch_k: int | None = None,
    reranker: Any = None,
    **ensemble: Any,
) -> RagKitRetriever:
    """Make a retriever over an index; if it has representations, a `MultiRepresentationRetriever`.

    Args:
        index: An open index; it must stay open as long as the retriever is used.
        pipeline: ``"bm25"``, ``"dense"``, or ``"hybrid"``: both, fused as `HybridRetriever` does. Over an index without
            vectors, and with ``on_error="skip"`` over one opened without its model, ``"hybrid"`` is keyword search,
            and says so in the provenance of what it finds. ``"trigram"`` and ``"sparse"`` search those legs of an
            index that has them (``DocumentIndex.create(legs=...)``); beside others, put them into an ensemble.
        k: Most documents to return.
        filter: Metadata filter for every call.
        fetch_k: How many documents each half of a hybrid fetches; default: ten times ``k``, at least 100.
        reranker: What `RerankRetriever` takes, such as ``"cross-encoder"``; its scores are blended half and half with
            those of the search over the first 20, and a question of more than 64 tokens is not reranked.
        **ensemble: Further arguments of `EnsembleRetriever`: ``timeout``, ``on_error``... With ``weights``, ``fusion``
            or ``rrf_k`` the two halves are fused as these say, without feedback. A single search takes of these
            ``id_key``, ``metadata``, ``name`` and ``tags``; it has no use for the others.

    Raises:
        InvalidInputError: The pipeline is unknown, or needs vectors, a leg or a model that are not there.

    Example:
        >>> import tempfile
        >>> from langchain_core.documents import Document
        >>> index = DocumentIndex.create(tempfile.mkdtemp())
        >>> _ = index.upsert([Document("The pump starts at 40 degrees.", id="pump")])
        >>> [doc.id for doc in index_retriever(index).invoke("pump")]
        ['pump']
        >>> index.close()
    """
    if not isinstance(index, DocumentIndex):
        raise InvalidInputError(f"index is {index!r:.60}; give DocumentIndex.open(folder).")
    allowed = EnsembleRetriever.model_fields.keys() - {"retrievers"}
    ensemble = translate_arguments(EnsembleRetriever, ensemble)
    if unknown := sorted(ensemble.keys() - allowed):
        raise InvalidInputError(f"index_retriever: {unknown_arguments(unknown, allowed, {})}.")
    limits = {name: ensemble[name] for name in ("on_error", "timeout", "max_concurrency") if name in ensemble}
    if reranker is not None:
        inner = index_retriever(index, pipeline, k, filter, fetch_k=fetch_k, **ensemble)
        return RerankRetriever(
            retriever=inner, reranker=reranker, k=k, blend=0.5, max_query_tokens=_MAX_QUERY_TOKENS, **limits
        )
    if SETTING not in index.settings:  # it has no representations
        return rows_retriever(index, pipeline, k, filter, fetch_k=fetch_k, **ensemble)
    rows = rows_retriever(index, pipeline, k, filter=None, fetch_k=fetch_k, **ensemble)
    return MultiRepresentationRetriever(index=index, retriever=rows, k=k, filter=filter, **limits)
