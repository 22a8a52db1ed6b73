"""The space of this kit's retrievers over one's own documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.tuning.space import PipelineSpace, SearchSpace
from rag_kit.evaluation.tuning.workshop import FUSIONS, REWRITES, Workshop

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from rag_kit.retrieval.base import RagKitRetriever

SEARCHES = ("hybrid", "bm25", "dense")


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
        rewrites: Sequence[str] = tuple(REWRITES),
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
        asked = _subset("rewrites", rewrites, tuple(REWRITES)) if self.workshop.llm is not None else []
        super().__init__(_parameters(chosen, _chunk_sizes(chunk_sizes), asked, _most(k)))

    def make(self, settings: Mapping[str, Any]) -> RagKitRetriever:
        """The retriever of a setting; what fails in it is raised, so that it does not pass for a result."""
        return self.workshop.retriever(self.settle(settings), on_error="raise")

    def identity(self) -> dict[str, Any]:
        """The documents' hash and the models' names."""
        return self.workshop.identity()


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
    every = SearchSpace(_parameters(list(SEARCHES), _chunk_sizes([sizes]), list(REWRITES), _most(k)))
    settled = every.settle(settings)
    if on_error not in ("raise", "skip"):
        raise InvalidInputError(f"on_error is {on_error!r:.80}; allowed are 'raise' and 'skip'")
    workshop = Workshop(documents, embeddings="none" if settled["search"] == "bm25" else embeddings, llm=llm)
    return workshop.retriever(settled, on_error=on_error)


def _parameters(
    searches: list[str], chunk_sizes: list[int | None], rewrites: list[str], k: tuple[int, int]
) -> dict[str, Any]:
    weighted = [name for name, settings in FUSIONS.items() if settings["fusion"] != "auto"]
    form: dict[str, Any] = {"search": searches, "chunk_size": chunk_sizes}
    if "bm25" in searches or "hybrid" in searches:
        keyword = [name for name in searches if name != "dense"]
        form["feedback"] = {"choices": [False, True], "when": {"search": keyword}}
    if "hybrid" in searches:
        form["fusion"] = {"choices": list(FUSIONS), "when": {"search": "hybrid"}}
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
