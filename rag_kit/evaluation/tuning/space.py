"""What a search may change: parameters as plain data, and ready ones for this kit's retrievers."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

_FORM = (
    "give a list of choices, or an object with one of choices, int and float (such as {'int': [1, 20]}) and any of "
    "step, log, default and when"
)
_GREATEST = 2**53  # beyond it, floats cannot hold every whole number
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


@contextmanager
def quiet() -> Iterator[Any]:
    """Import Optuna, and silence it within the context.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("eval", "rag_kit.evaluation.tune") from None
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield optuna
    finally:
        optuna.logging.set_verbosity(before)


def label(value: Any) -> str:
    """A plain value as one text: equal for equal values, and different for 1, True and "1".

    Raises:
        InvalidInputError: If it holds anything but texts, finite numbers, booleans, ``None``, lists and dicts.

    Example:
        >>> label({"b": 1, "a": [True]})
        '{"a": [true], "b": 1}'
    """
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError(
            f"{value!r:.160} is no plain value; allowed are texts, finite numbers, True, False, None, and lists and "
            "dicts of these. Name what is something else, and look it up in make_pipeline"
        ) from None


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Args:
        name: Its name, as ``make_pipeline`` gets it.
        form: What the user gave, for messages and the file.
        distribution: Its values as Optuna's distribution; choices by their labels.
        when: Name of an earlier parameter -> labels of the values with which this parameter is active.
    """

    name: str
    form: Mapping[str, Any]
    distribution: Any
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def default(self) -> Any:
        """The value in the default setting: as given, or the first choice, or the middle of the range."""
        if "default" in self.form:
            return self.check(self.form["default"])
        if "choices" in self.form:
            return json.loads(self.distribution.choices[0])
        low, high, step = self.distribution.low, self.distribution.high, self.distribution.step
        if self.distribution.log:
            return self._number(math.sqrt(low * high))
        middle = (low + high) / 2
        return self._number(low + round((middle - low) / step) * step if step else middle)

    def check(self, value: Any) -> Any:
        """The value in its plain form.

        Raises:
            InvalidInputError: If it is not allowed.
        """
        import optuna

        stored = self.stored(value)
        try:
            optuna.trial.create_trial(
                value=0.0, params={self.name: stored}, distributions={self.name: self.distribution}
            )
        except (ValueError, TypeError, OverflowError):
            raise InvalidInputError(
                f"parameter {self.name!r} is {value!r:.160}; allowed are {label(self.form):.400}"
            ) from None
        return json.loads(stored) if "choices" in self.form else self._number(value)

    def stored(self, value: Any) -> Any:
        """The value as a trial of Optuna holds it."""
        return label(value) if "choices" in self.form else value

    def suggest(self, trial: Any) -> Any:
        """The value that a trial of Optuna proposes."""
        found = self.distribution
        if "choices" in self.form:
            return json.loads(trial.suggest_categorical(self.name, found.choices))
        ask = trial.suggest_int if "int" in self.form else trial.suggest_float
        return self._number(ask(self.name, found.low, found.high, step=found.step, log=found.log))

    def is_active(self, settings: Mapping[str, Any]) -> bool:
        """Whether the values of earlier parameters are those of ``when``."""
        return all(
            name in settings and label(settings[name]) in allowed for name, allowed in self.when.items()
        )

    def _number(self, value: float) -> Any:
        if "int" in self.form:
            return round(value)
        return min(max(float(f"{value:.6g}"), self.distribution.low), self.distribution.high)


class SearchSpace:
    """The parameters of a search, in order, and the setting to compare with.

    A parameter is a list of choices, or an object with one of ``choices``, ``int`` and ``float`` (the last two as
    ``[low, high]``), and with any of ``step``, ``log`` (spread over orders of magnitude), ``default``, and ``when``:
    the parameter is active only while an earlier one has the value, or one of the values, named there. A choice is
    a text, a number, True, False, None, or a list or dict of these.

    Args:
        parameters: Name -> parameter.
        default: Values of the default setting; what is not named has its own ``default``, else the first choice or
            the middle of the range.

    Raises:
        InvalidInputError: If a parameter is malformed, or depends on what is not there.
        MissingExtraError: If Optuna is not installed.
    """

    #: Makes the pipeline of a whole setting, where the space knows how.
    make: Callable[[dict[str, Any]], Any] | None = None
    #: What else decides a score, as plain data; a search is resumed only while it is the same.
    identity: Mapping[str, Any] = {}

    def __init__(self, parameters: Mapping[str, Any], default: Mapping[str, Any] | None = None) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise InvalidInputError(
                f"the space is {parameters!r:.160}; give parameters by name, such as {{'k': {{'int': [1, 20]}}}}"
            )
        self.parameters: dict[str, Parameter] = {}
        for name, form in parameters.items():
            self.parameters[name] = self._parameter(name, form)
        self.default: dict[str, Any] = {}
        self.default = self.settle(default or {})

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
        What fails in a retriever is raised, so that it does not pass for a result.

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
        _check_names("pipelines", pipelines, RECIPES)
        _check_names("rewrites", rewrites, REWRITES)
        usable = [name for name in pipelines if model is not None or "dense" not in RECIPES[name].arms]
        if not usable:
            raise InvalidInputError(
                f"pipelines is {list(pipelines)!r:.120}, and there is no embedding model; install one with "
                "`rag-kit models install minilm`, or allow 'bm25'"
            )
        form: dict[str, Any] = {"pipeline": usable, "chunk_size": list(chunk_sizes)}
        if weighted := [name for name in usable if name in _WEIGHTED]:
            form["bm25_weight"] = {
                "float": [0.1, 0.9],
                "step": 0.1,
                "default": 0.6,
                "when": {"pipeline": weighted},
            }
        if llm is not None and rewrites:
            form["rewrite"] = ["none", *rewrites]
        form["k"] = [k] if isinstance(k, int) else {"int": list(k), "default": k[1]}
        space = cls(form)
        make = _retriever_maker(found, model, llm, cache)
        space.make = lambda settings: make(space.settle(settings))
        space.identity = _identity(found, model, llm)
        return space

    def _parameter(self, name: Any, form: Any) -> Parameter:
        """Check a parameter, with Optuna's own rules for ranges.

        Raises:
            InvalidInputError: If the form does not say what values there are.
        """
        if isinstance(form, list | tuple):
            form = {"choices": form}
        kinds = [kind for kind in ("choices", "int", "float") if isinstance(form, Mapping) and kind in form]
        if not isinstance(name, str) or len(kinds) != 1:
            raise InvalidInputError(f"parameter {name!r:.120} is {form!r:.160}; {_FORM}")
        form = {key: value for key, value in json.loads(label(form)).items() if value is not None}
        allowed_keys = {kinds[0], "default", "when", *(() if kinds[0] == "choices" else ("step", "log"))}
        try:
            if unknown := set(form) - allowed_keys:
                raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
            distribution = _distribution(kinds[0], form)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise InvalidInputError(
                f"parameter {name!r:.120} is {label(form):.160} ({error}); {_FORM}"
            ) from error
        when = {}
        for earlier, values in form.get("when", {}).items():
            if earlier not in self.parameters:
                raise InvalidInputError(
                    f"parameter {name!r:.120} depends on {earlier!r:.120}, which does not stand before it; before it "
                    f"are {', '.join(map(repr, self.parameters)) or 'none'}"
                )
            allowed = values if isinstance(values, list) else [values]
            when[earlier] = tuple(label(self.parameters[earlier].check(value)) for value in allowed)
        return Parameter(name, form, distribution, when)

    def pick(self, choose: Callable[[Parameter], Any]) -> dict[str, Any]:
        """Settings in which every active parameter has the value that ``choose`` returns for it."""
        settings: dict[str, Any] = {}
        for parameter in self.parameters.values():
            if parameter.is_active(settings):
                settings[parameter.name] = choose(parameter)
        return settings

    def settle(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The active parameters with these values, and the defaults of those that are not named.

        Raises:
            InvalidInputError: If a name is unknown, or a value is not allowed.
        """
        if unknown := [name for name in values if name not in self.parameters]:
            raise InvalidInputError(
                f"there is no parameter {unknown[0]!r:.120}; there are {', '.join(map(repr, self.parameters)):.400}"
            )
        checked = {name: self.parameters[name].check(value) for name, value in values.items()}
        return self.pick(lambda p: checked.get(p.name, self.default.get(p.name, p.default)))

    def trial(self, settings: Mapping[str, Any], **more: Any) -> Any:
        """A trial of Optuna that has these settings; ``more`` as for ``optuna.trial.create_trial``."""
        import optuna

        known = {name: self.parameters[name] for name in settings}
        return optuna.trial.create_trial(
            params={name: each.stored(settings[name]) for name, each in known.items()},
            distributions={name: each.distribution for name, each in known.items()},
            **more,
        )

    @property
    def is_finite(self) -> bool:
        """Whether every parameter has values that can be counted."""
        return all(getattr(p.distribution, "step", 1) is not None for p in self.parameters.values())

    def to_json(self) -> dict[str, Any]:
        """The parameters as plain data."""
        return {name: dict(parameter.form) for name, parameter in self.parameters.items()}

    def __repr__(self) -> str:
        return f"SearchSpace({', '.join(self.parameters)})"


def _distribution(kind: str, form: Mapping[str, Any]) -> Any:
    """Optuna's distribution; a malformed form is its ValueError or TypeError."""
    with quiet() as optuna:
        if kind == "choices":
            labels = [label(choice) for choice in form["choices"]]
            if len(set(labels)) != len(labels):
                raise ValueError("a choice comes twice")
            return optuna.distributions.CategoricalDistribution(labels)
        low, high = form[kind]
        if not -_GREATEST <= low <= high <= _GREATEST:
            raise ValueError(f"the ends are two numbers, the smaller first, within {_GREATEST} of 0")
        if kind == "float":
            return optuna.distributions.FloatDistribution(low, high, form.get("log", False), form.get("step"))
        if not all(isinstance(end, int) for end in (low, high, form.get("step", 1))):
            raise ValueError("an int has whole numbers")
        return optuna.distributions.IntDistribution(low, high, form.get("log", False), form.get("step", 1))


def _check_names(what: str, names: Any, allowed: Any) -> None:
    if unknown := [name for name in names if name not in allowed]:
        raise InvalidInputError(f"{what} names {unknown[0]!r:.80}; allowed are {', '.join(allowed)}")


def _with_ids(documents: Any) -> list[Document]:
    """Copies of the documents, each with an id of its own."""
    from langchain_core.documents import Document

    from rag_kit.documents import copy_document
    from rag_kit.documents.identity import document_key

    given = list(documents) if isinstance(documents, Sequence) else []
    if not given or not all(isinstance(document, Document) for document in given):
        raise InvalidInputError(
            f"documents is {documents!r:.80}; give a list of LangChain documents, such as rag_kit.indexing.read or "
            "EvaluationSet.documents gives"
        )
    found = list(map(copy_document, given))
    seen: set[str] = set()
    for place, document in enumerate(found):
        key = document_key(document)
        document.id = f"{key}~{place}" if key in seen else key
        seen.add(key)
    return found


def _chunks(documents: Sequence[Document], chunk_size: int | None) -> list[Document]:
    """Chunks by which judgements of their document are found: one key of its metadata holds the document's id."""
    from rag_kit.evaluation.outputs import DOCUMENT_IDS
    from rag_kit.indexing import split

    if chunk_size is None:
        return list(documents)
    chunks = []
    for document in documents:
        for chunk in split([document], chunk_size=chunk_size, chunk_overlap=chunk_size // 10):
            chunk.id = f"{document.id}#{chunk.metadata['start']}"
            free = [name for name in DOCUMENT_IDS if name not in chunk.metadata]
            chunk.metadata.update(dict.fromkeys(free[:1], document.id))
            chunks.append(chunk)
    return chunks


def _retriever_maker(
    documents: Sequence[Document], embeddings: Any, llm: Any, cache: Path | str | None
) -> Callable[[Mapping[str, Any]], Any]:
    from rag_kit import retrieval
    from rag_kit.evaluation.ranking.pipelines import Parts

    @lru_cache(_KEPT)
    def parts(chunk_size: int | None) -> Parts:
        return Parts(_chunks(documents, chunk_size), embeddings=embeddings, cache=cache)

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

    digest = hashlib.sha256()
    for document in documents:
        digest.update(f"{document.id}\n{document.page_content}\0".encode("utf-8", "backslashreplace"))
    model = "" if llm is None else label(to_plain(model_identity(llm)))
    return {
        "documents": digest.hexdigest(),
        "embeddings": None if embeddings is None else embedding_name(embeddings),
        "llm": hashlib.sha256(model.encode()).hexdigest(),
    }
