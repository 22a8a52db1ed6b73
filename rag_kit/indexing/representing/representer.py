"""Make the representations of documents, and families of them for an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import copy_document
from rag_kit.documents.explanation import SITUATION
from rag_kit.errors import ConfigurationError
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.indexing.representing.asking import Asker, ModelCost, OnProgress, PassageRequest
from rag_kit.indexing.representing.kinds import REPRESENTATION, TAG_PREFIX, RepresentationKind, kinds_of
from rag_kit.indexing.splitting.hierarchy import split_family
from rag_kit.models import chat_model
from rag_kit.models.model_call import is_extractive
from rag_kit.models.redact import host_of
from rag_kit.models.runnables import base_url, model_name

_MAX_BEFORE, _MAX_AFTER = 1_200, 400  # characters around a passage that a model is given to situate it
# metadata of the position in a source; by the others, passages of one source may be hidden from each other
_POSITION_FIELDS = ("start", "end", "chunk", "page", "heading", "sheet", "chapter", "row_start", "row_end", "ocr",
                    "table_header")  # fmt: skip


@dataclass
class Represented(ModelCost):
    """Documents with their representations, and the cost."""

    families: list[Family] = field(default_factory=list)  # one a document
    made: Counter[str] = field(default_factory=Counter)  # kind -> how many texts the families have of it
    failed: set[int] = field(default_factory=set)  # numbers of documents without a usable reply of the model


class Representer:
    """Makes representations of documents: the document itself first, then those of each kind.

    A family's children are the whole document and the texts made of it, which have no offsets in it. Each child has the
    document's metadata, and a made text its kind in the field ``representation``. A situating sentence is not a child:
    it goes into the metadata of the document, and is searched with its text. A model is asked once for each text, kind,
    model and prompt; for a situating sentence, the texts around count too.

    ``represent`` is as for `kinds_of`, ``cache`` as for `Asker`. ``llm`` is ``None`` afterwards where no kind needs it.
    """

    def __init__(
        self, represent: Sequence[str] | str, *, llm: Any = None, cache: Any = None, max_concurrency: int = 8
    ) -> None:
        self.kinds = kinds_of(represent)
        # "children" are cut by rule, for which no model is asked
        self._model_kinds = [kind for kind in self.kinds if kind.name != "children"]
        self.llm = None
        if self._model_kinds:
            self.llm = chat_model() if llm is None else llm
        if is_extractive(self.llm) and (lacking := [kind for kind in self._model_kinds if not kind.by_rule]):
            raise ConfigurationError(
                f"represent={lacking[0].spec!r} needs a language model, and 'extractive' is none: set "
                "RAG_KIT_CHAT_MODEL=PROVIDER:MODEL, or give llm= (--model)."
            )
        self._asker = Asker(self._model_kinds, self.llm, cache, max_concurrency)
        self._planned_keys: set[str] = set()  # of the requests that `plan` has counted

    @property
    def recorded(self) -> dict[str, Any]:
        """Return the settings that an index records: with other values, its documents are represented again."""
        model = "" if self.llm is None else model_name(self.llm) or type(self.llm).__name__
        if is_extractive(self.llm):
            model = "extractive"
        if host := host_of(base_url(self.llm) or ""):
            model += f" at {host}"
        return {
            "represent": [kind.spec for kind in self.kinds],
            "represent_model": model,
            "represent_prompts": self._asker.prompts,
        }

    def represent(
        self,
        documents: Sequence[Document],
        sources: Sequence[str] | None = None,
        progress: OnProgress = None,
    ) -> Represented:
        """Make a family of each document; passages of one source (default: that in the metadata) may share a call.

        ``progress`` gets calls done and calls in all. If the model fails, replies that came are kept for the next call.
        """
        requests = self._requests(documents, sources)
        represented = Represented()
        replies = self._asker.answer([request for _, request in requests], represented, progress)
        texts: list[dict[RepresentationKind, list[str]]] = [{} for _ in documents]
        for number, request in requests:
            if request.key in replies:
                texts[number][request.kind] = replies[request.key]
            else:
                represented.failed.add(number)
        for document, texts_by_kind in zip(documents, texts, strict=True):
            family = self._family(document, texts_by_kind)
            represented.families.append(family)
            for child in family.children[1:]:  # the first is the document itself
                represented.made[child.metadata[REPRESENTATION]] += 1
            for kind, kind_texts in texts_by_kind.items():
                if kind_texts and not kind.is_searched_alone:
                    represented.made[kind.spec] += 1
        return represented

    def plan(self, documents: Sequence[Document], sources: Sequence[str] | None = None) -> Represented:
        """Return the cost of `represent` without asking the model; requests of earlier plans are not counted again."""
        requests = [request for _, request in self._requests(documents, sources)]
        new = [request for request in requests if request.key not in self._planned_keys]
        self._planned_keys.update(request.key for request in new)
        self._asker.answer(new, planned := Represented(), dry=True)  # adds the cost to `planned`
        return planned

    def _requests(
        self, documents: Sequence[Document], sources: Sequence[str] | None
    ) -> list[tuple[int, PassageRequest]]:
        """Return (document's number, request) for each document with text and each kind that needs a model."""
        sources = sources or [str(document.metadata.get("source") or "") for document in documents]
        origins = [_origin(document, source) for document, source in zip(documents, sources, strict=True)]
        requests = []
        for number, (document, source) in enumerate(zip(documents, sources, strict=True)):
            if not document.page_content.strip():
                continue
            group = source or str(sorted(document.metadata.items(), key=str))  # only one group shares a call
            for kind in self._model_kinds:
                around = "" if kind.is_searched_alone else _around(documents, origins, number)
                requests.append((number, self._asker.request(kind, document, group, around)))
        return requests

    def _family(self, document: Document, texts: Mapping[RepresentationKind, Sequence[str]]) -> Family:
        """Make the family of a document: itself with its tags and situation in the metadata, its texts as children."""
        parent = copy_document(document)
        for kind, kind_texts in texts.items():
            if kind.name == "situation" and kind_texts:
                parent.metadata = {**parent.metadata, SITUATION: kind_texts[0]}
            if kind.name == "tags":
                fields = {f"{TAG_PREFIX}{name}": value for name, value in kind.tags(kind_texts).items()}
                parent.metadata = {**fields, **parent.metadata}
        children = [Child(parent.page_content, 0, len(parent.page_content))]
        for kind in self.kinds:
            label = {REPRESENTATION: kind.spec}
            if kind.name == "children":
                children += [
                    Child(part.text, part.start, part.end, metadata={**part.metadata, **label})
                    for part in split_family(parent, kind.count).children
                ]
            elif kind.is_searched_alone:
                # a text that equals the document too: without it the document would rank behind longer ones
                children += [Child(text, metadata=label) for text in kind.children(texts.get(kind, ()))]
        return Family(parent, children)


def _origin(document: Document, source: str) -> str:
    """Return a key equal for documents of one source with equal metadata but for positions; ``""`` without a source."""
    fields = {name: value for name, value in document.metadata.items() if name not in _POSITION_FIELDS}
    return f"{source}\0{sorted(fields.items(), key=str)}" if source else ""


def _around(documents: Sequence[Document], origins: Sequence[str], number: int) -> str:
    """Return the text around a document, ``before[...]after``, from those of its origin; ``""`` if there is none."""
    origin, before, after = origins[number], "", ""
    if not origin:
        return ""
    for previous in range(number - 1, -1, -1):
        if origins[previous] != origin or len(before) >= _MAX_BEFORE:
            break
        before = f"{documents[previous].page_content}\n\n{before}"
    if number + 1 < len(documents) and origins[number + 1] == origin:
        after = documents[number + 1].page_content
    if not before and not after:
        return ""
    return f"{before[-_MAX_BEFORE:]}[...]\n\n{after[:_MAX_AFTER]}"
