"""What a search may change: parameters as plain data, and ready ones for this kit's retrievers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.tuning.parameter import Parameter, label, make_parameter

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

PIPELINES = ("hybrid", "bm25", "dense", "rm3", "mmr", "rrf", "convex", "convex-z", "convex-maximum")
REWRITES = {
    "multi_query": "MultiQueryRetriever",
    "step_back": "StepBackRetriever",
    "hyde": "HyDERetriever",
    "query2doc": "Query2DocRetriever",
    "decomposition": "DecompositionRetriever",
}
_WEIGHTED = ("rrf", "convex", "convex-z", "convex-maximum")
_KEPT = 4  # chunk sizes whose indexes stay in memory


class SearchSpace:
    """The parameters of a search, in order, and the setting to compare with.

    A parameter is a list of choices, or an object with one of ``choices``, ``int`` and ``float`` (the last two as
    ``[low, high]``), and with any of ``step``, ``log`` (spread over orders of magnitude), ``default``, and ``when``:
    the parameter is active only while an earlier one has the value, or one of the values, named there. A choice is
    a text, a number, True, False, None, or a list or dict of these.

    Args:
        parameters: Name -> parameter. One without a ``default`` has its first choice, or the middle of its range.

    Raises:
        InvalidInputError: If a parameter is malformed, or depends on an unknown one.
        MissingExtraError: If Optuna is not installed.
    """

    #: Makes the pipeline of a whole setting, where the space knows how.
    make: Callable[[dict[str, Any]], Any] | None = None
    #: What else decides a score, as plain data; a search is resumed only while it is the same.
    identity: Mapping[str, Any] = {}

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise InvalidInputError(
                f"the space is {parameters!r:.160}; give parameters by name, such as {{'k': {{'int': [1, 20]}}}}"
            )
        self.parameters: dict[str, Parameter] = {}
        for name, form in parameters.items():
            self.parameters[name] = make_parameter(name, form, self.parameters)
        self.default = self.settle({})

    @classmethod
    def of_retrievers(
        cls,
        documents: Sequence[Document],
        *,
        embeddings: Embeddings | str | None = None,
        llm: Any = None,
        k: int | tuple[int, int] = 10,
        chunk_sizes: Sequence[int | None] = (1000, 500, 2000, None),
        pipelines: Sequence[str] = PIPELINES,
        rewrites: Sequence[str] = tuple(REWRITES),
        cache: Path | str | None = None,
    ) -> SearchSpace:
        """This kit's retrievers over documents; ``space.make(settings)`` is the retriever of a setting.

        The parameters are ``pipeline`` (a name of ``rag-kit benchmark``), ``chunk_size`` (``None``: documents as
        they are), ``bm25_weight`` of the fusions that weigh (vectors have the rest), ``rewrite`` (where a model is
        given) and ``k``. The default setting is the kit's own default. Indexes are made once for each chunk size.
        A retriever that fails raises, so that a failure does not pass for a result.

        Args:
            documents: What is searched.
            embeddings: The embedding model, or its name; ``None``: the kit's default, ``"none"``: keywords alone.
            llm: The chat model that rewrites questions, or its name; ``None`` leaves rewriting out.
            k: Passages that come back: a number, or ``(low, high)`` to have it tuned; then ``high`` is the default.
            chunk_sizes: Characters of a chunk; the first is the default.
            pipelines: Those that may be chosen; the first is the default.
            rewrites: Techniques that may be chosen beside none.
            cache: Folder that keeps vectors between runs.

        Raises:
            InvalidInputError: If there are no documents, or a pipeline or technique is not known.
        """
        from rag_kit.evaluation.ranking.pipelines import RECIPES
        from rag_kit.models import chat_model, embedding_model

        found = _with_ids(documents)
        named = embeddings is None or isinstance(embeddings, str)
        model: Any = embedding_model(embeddings) if named else embeddings  # type: ignore[arg-type]
        llm = chat_model(llm) if isinstance(llm, str) else llm
        for what, names, known in (("pipelines", pipelines, RECIPES), ("rewrites", rewrites, REWRITES)):
            if unknown := [name for name in names if name not in known]:
                raise InvalidInputError(f"{what} names {unknown[0]!r:.80}; allowed are {', '.join(known)}")
        usable = [name for name in pipelines if model is not None or "dense" not in RECIPES[name].arms]
        if not usable:
            raise InvalidInputError(
                f"pipelines is {list(pipelines)!r:.120}, and there is no embedding model; install one with "
                "`rag-kit models install minilm`, or allow 'bm25'"
            )
        form: dict[str, Any] = {"pipeline": usable, "chunk_size": list(chunk_sizes)}
        if weighted := [name for name in usable if name in _WEIGHTED]:
            shares = {"float": [0.1, 0.9], "step": 0.1, "default": 0.6}
            form["bm25_weight"] = {**shares, "when": {"pipeline": weighted}}
        if llm is not None and rewrites:
            form["rewrite"] = ["none", *rewrites]
        form["k"] = [k] if isinstance(k, int) else {"int": list(k), "default": k[1]}
        space = cls(form)
        make = _retriever_maker(found, model, llm, cache)
        space.make = lambda settings: make(space.settle(settings))
        space.identity = _identity(found, model, llm)
        return space

    def pick(self, choose: Callable[[Parameter], Any]) -> dict[str, Any]:
        """Settings in which every active parameter has the value that ``choose`` returns for it."""
        settings: dict[str, Any] = {}
        for parameter in self.parameters.values():
            if parameter.is_active(settings):
                settings[parameter.name] = choose(parameter)
        return settings

    def settle(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The active parameters with these values, and the defaults of those that are not named."""
        if unknown := [name for name in values if name not in self.parameters]:
            raise InvalidInputError(
                f"there is no parameter {unknown[0]!r:.120}; there are {', '.join(map(repr, self.parameters)):.400}"
            )
        checked = {name: self.parameters[name].check(value) for name, value in values.items()}
        return self.pick(lambda p: checked.get(p.name, p.default))

    def trial(self, settings: Mapping[str, Any], *, state: str, **more: Any) -> Any:
        """A trial of Optuna in a state by name that has these settings; ``more`` as for ``create_trial``."""
        import optuna

        parts = [self.parameters[name].trial_of(value) for name, value in settings.items()]
        return optuna.trial.create_trial(
            params={name: value for each in parts for name, value in each.params.items()},
            distributions={name: value for each in parts for name, value in each.distributions.items()},
            state=optuna.trial.TrialState[state],
            **more,
        )

    @property
    def is_finite(self) -> bool:
        """Whether every parameter has values that can be counted."""
        return all(getattr(p.distribution, "step", 1) is not None for p in self.parameters.values())

    def to_json(self) -> dict[str, Any]:
        """The parameters as plain data."""
        return {name: dict(parameter.form) for name, parameter in self.parameters.items()}


def _with_ids(documents: Any) -> list[Document]:
    """Copies of the documents, each with an id of its own, which a free key of its metadata holds for its chunks."""
    from langchain_core.documents import Document

    from rag_kit.documents import copy_document
    from rag_kit.documents.identity import document_key
    from rag_kit.evaluation.outputs import DOCUMENT_IDS

    given = list(documents) if isinstance(documents, Sequence) else []
    if not given or not all(isinstance(document, Document) for document in given):
        raise InvalidInputError(
            f"documents is {documents!r:.80}; give a list of LangChain documents, such as rag_kit.indexing.read or "
            "EvaluationSet.documents gives"
        )
    found = {}
    for place, document in enumerate(map(copy_document, given)):
        key = document_key(document)
        document.id = f"{key}~{place}" if key in found else key
        free = [name for name in DOCUMENT_IDS if name not in document.metadata]
        document.metadata.update(dict.fromkeys(free[:1], document.id))
        found[document.id] = document
    return list(found.values())


def _retriever_maker(
    documents: Sequence[Document], embeddings: Any, llm: Any, cache: Path | str | None
) -> Callable[[Mapping[str, Any]], Any]:
    from rag_kit import retrieval
    from rag_kit.evaluation.ranking.pipelines import Parts
    from rag_kit.indexing import split

    @lru_cache(_KEPT)
    def parts(size: int | None) -> Parts:
        chunks = documents if size is None else split(documents, chunk_size=size, chunk_overlap=size // 10)
        for number, chunk in enumerate(() if size is None else chunks):
            chunk.id = f"chunk {number}"  # texts may be the same
        return Parts(chunks, embeddings=embeddings, cache=cache)

    def make(settings: Mapping[str, Any]) -> Any:
        update = {"k": settings["k"]}
        if weight := settings.get("bm25_weight"):
            update["weights"] = [weight, round(1 - weight, 6)]
        found = parts(settings["chunk_size"]).build(settings["pipeline"]).retriever.model_copy(update=update)
        rewrite = settings.get("rewrite", "none")
        if rewrite == "none":
            return found
        technique = getattr(retrieval, REWRITES[rewrite])
        return technique.from_llm(llm, found, k=settings["k"], on_error="raise")

    return make


def _identity(documents: Sequence[Document], embeddings: Any, llm: Any) -> dict[str, Any]:
    """A hash of the documents, and the models' names; no text of either."""
    from rag_kit.documents.plain import to_plain
    from rag_kit.models.embedding import embedding_name
    from rag_kit.models.identity import model_identity

    texts = [[document.id, document.page_content] for document in documents]
    model = None if llm is None else to_plain(model_identity(llm))
    hashed = {"documents": texts, "llm": model}
    digests = {name: hashlib.sha256(label(value).encode()).hexdigest() for name, value in hashed.items()}
    return {**digests, "embeddings": embedding_name(embeddings)}
