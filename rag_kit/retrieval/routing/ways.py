"""Ways to choose sources: shared words, embeddings, a model, a function."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from langchain_core.runnables import Runnable

from rag_kit.concurrency.steps import both_forms
from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.indexing.document_index.vectors import unit
from rag_kit.models.clients import check_embeddings, embed_documents, embed_logic
from rag_kit.models.model_call import is_extractive
from rag_kit.models.runnables import acall_runnable
from rag_kit.prompts.schemas import routes_among
from rag_kit.retrieval.asking import LanguagePrompts
from rag_kit.retrieval.call import Call, Job, value_or_raise
from rag_kit.retrieval.fields import check_model
from rag_kit.retrieval.routing.source import Choice, Source
from rag_kit.retrieval.vectors import checked_vectors
from rag_kit.text import detect_language
from rag_kit.text.analysis import content_words

# Measured with MiniLM on four collections: docs/benchmarks.md, "Routing by similarity".
SIMILARITY_THRESHOLD = 0.1
_ANY_WORD = 1e-6  # just above the score of a source that shares no word
_REASON_WORDS, _REASON_CHARS = 6, 80  # in the reason of a choice
Decision = tuple[list[Choice], Mapping[str, float]]


def choose(
    scores: Mapping[str, float], threshold: float, max_choices: int, reason: Callable[[str], str]
) -> Decision:
    """Choose the names whose scores reach a threshold, best first, with reasons; also return all scores, rounded."""
    # Rounded, so that equal texts give equal scores whatever the order of the sums.
    scores = {name: round(score, 6) for name, score in scores.items()}
    fitting = [name for name, score in scores.items() if score >= threshold and math.isfinite(score)]
    best = sorted(fitting, key=lambda name: -scores[name])[:max_choices]
    return [Choice(name, scores[name], reason(name)) for name in best], scores


class KeywordWay:
    """Choose the sources whose names, descriptions and examples share the question's words.

    A word that few sources have counts more than one that many have; function words do not count. Chinese words of
    three or more characters count with their pairs of characters too.
    """

    name = "keywords"

    def __init__(self, sources: Sequence[Source], threshold: float | None) -> None:
        # A source without a common word must not pass, however low the threshold.
        self._threshold = max(threshold or 0, _ANY_WORD)
        self._texts = {source.name: [_terms(text) for text in source.texts] for source in sources}
        self._all_terms = {name: frozenset[str]().union(*texts) for name, texts in self._texts.items()}
        content_words("warm")  # loads what is read from files now, so that no call blocks on one

    async def decide(self, call: Call, sources: Sequence[Source], max_choices: int) -> Decision:
        """Compare the words of the question with those of the sources' texts."""
        scores = self.scores(call.query, [source.name for source in sources])
        return choose(scores, self._threshold, max_choices, partial(self._reason, call.query))

    def scores(self, question: str, names: Sequence[str]) -> dict[str, float]:
        """Score the sources of these names from 0 (no word of the question in them) to 1 (all words in one text).

        A score is the mean of two weighted shares of the question's words: of those in all texts of the source
        together, and of those in the one text with most. Sources of other names have no influence.
        """
        terms = sorted(_terms(question))
        source_counts = Counter(term for name in names for term in self._all_terms[name])
        weights = {term: math.log(1 + len(names) / max(1, source_counts[term])) for term in terms}
        total = math.fsum(weights.values()) or 1.0

        def share(text_terms: frozenset[str]) -> float:
            return math.fsum(weights[term] for term in terms if term in text_terms) / total

        scores = {}
        for name in names:
            best_share = max(map(share, self._texts[name]), default=0.0)
            scores[name] = (share(self._all_terms[name]) + best_share) / 2
        return scores

    def _reason(self, question: str, name: str) -> str:
        words = [word for word in dict.fromkeys(content_words(question)) if word in self._all_terms[name]]
        return f"shared words: {', '.join(words[:_REASON_WORDS])}"


class SimilarityWay:
    """Choose the sources whose descriptions and examples are near the question.

    The texts of the sources are embedded once, beside the first question, and kept; a failure is not kept.
    """

    name = "similarity"

    def __init__(self, sources: Sequence[Source], embeddings: Any, threshold: float | None) -> None:
        self._embeddings = check_embeddings(embeddings)
        self._threshold = SIMILARITY_THRESHOLD if threshold is None else threshold
        self._texts = [text for source in sources for text in source.texts]
        self._source_names = [source.name for source in sources for _ in source.texts]  # one for each text
        self._matrix: np.ndarray | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None, "_matrix": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    async def decide(self, call: Call, sources: Sequence[Source], max_choices: int) -> Decision:
        """Compare the vector of the question with those of the sources' texts."""
        jobs = [
            Job("query embedding", *both_forms(embed_logic, self._embeddings, "query", call.query)),
            Job("embeddings", self._vectors),
        ]
        with call.before_search():
            query_answer, matrix = map(value_or_raise, await call.side_by_side(jobs))
        vector = checked_vectors([query_answer], 1, self._embeddings)[0]
        if vector.size != matrix.shape[1]:
            raise ModelOutputError(
                f"The embedding model gave a vector of size {vector.size} for the question and of size "
                f"{matrix.shape[1]} for the descriptions; they must be of one size."
            )
        cosines = matrix @ unit(vector)
        scores, reasons = {}, {}
        for source in sources:
            mask = [name == source.name for name in self._source_names]  # of the texts of this source
            source_cosines = cosines[mask]
            scores[source.name] = float(source_cosines.mean())
            nearest_text = " ".join(source.texts[int(np.argmax(source_cosines))].split())
            reasons[source.name] = f"similar to: {nearest_text[:_REASON_CHARS]}"
        return choose(scores, self._threshold, max_choices, reasons.__getitem__)

    def _vectors(self) -> np.ndarray:
        """Return the unit vectors of the sources' texts, made at the first use."""
        with self._lock:
            if self._matrix is None:
                answer = embed_documents(self._embeddings, self._texts)
                self._matrix = unit(checked_vectors(answer, len(self._texts), self._embeddings))
            return self._matrix


class ModelWay:
    """Have a model choose, by names and descriptions; the schema of the answer lists the names that are allowed."""

    name = "model"

    def __init__(self, llm: Any, prompt: Any, language: str) -> None:
        self._llm = check_model(llm)
        self._prompts = LanguagePrompts("route", prompt, ("question", "sources"), language)

    async def decide(self, call: Call, sources: Sequence[Source], max_choices: int) -> Decision:
        """Have the model choose among the sources."""
        prompt = self._prompts.choose(call.query)
        metadata = getattr(prompt, "metadata", None) or {}
        language = metadata.get("language") or detect_language(call.query)
        lines = "\n".join(source.line(language) for source in sources)
        values = {"question": call.query, "sources": lines, "most": max_choices}
        schema = routes_among(tuple(source.name for source in sources))  # allows these names alone
        (outcome,) = await call.ask(self._llm, prompt, [values], schema, ["route"], form_holds=True)
        if outcome.error is not None:
            raise outcome.error
        answer: Any = outcome.value
        return [Choice(choice.name, None, choice.reason) for choice in answer.choices], {}


class FunctionWay:
    """Have a function of the question choose; it may be asynchronous, or a LangChain runnable."""

    name = "function"

    def __init__(self, func: Any) -> None:
        self._func = func

    async def decide(self, call: Call, sources: Sequence[Source], max_choices: int) -> Decision:
        """Have the function choose: it gives a name, several, a mapping of name to reason, or None."""
        func, arguments = self._func, (call.query, call.child("route"))
        with call.before_search():
            if isinstance(func, Runnable):
                native = partial(acall_runnable, func, *arguments)
                answer = await call.do("function", partial(func.invoke, *arguments), native)
            else:
                answer = await call.call("function", func, call.query)
        if answer is None:
            return [], {}
        is_single = isinstance(answer, str) or not isinstance(answer, Iterable)
        names = [answer] if is_single else [*answer]
        if not all(isinstance(name, str) for name in names):
            raise InvalidInputError(
                f"The routing function gave {answer!r:.80}; it must give a name, a list of names, a mapping of name "
                "to reason, or None."
            )
        reasons = answer if isinstance(answer, Mapping) else {}
        return [Choice(name, None, str(reasons.get(name, ""))) for name in names], {}


Way = ModelWay | FunctionWay | KeywordWay | SimilarityWay


def make_way(how: Any, sources: Sequence[Source], settings: Mapping[str, Any]) -> Way:
    """Make the way to choose sources from the arguments of ``RoutingRetriever``."""
    if how is None and settings["llm"] is not None:
        how = "model"
    elif how is None:
        how = "keywords" if settings["embeddings"] is None else "similarity"
    if how == "model" and is_extractive(settings["llm"]):
        how = "keywords"  # the extractive model is no language model: it would only compare words too
    threshold = settings["threshold"]
    if how == "model":
        return ModelWay(settings["llm"], settings["prompt"], settings["language"])
    if how == "similarity":
        return SimilarityWay(sources, settings["embeddings"], threshold)
    if how == "keywords":
        return KeywordWay(sources, threshold)
    if callable(how) or isinstance(how, Runnable):
        return FunctionWay(how)
    raise InvalidInputError(
        f"how={how!r} was given; allowed: 'model', 'similarity', 'keywords', or a function of the question."
    )


def _terms(text: str) -> frozenset[str]:
    """Return the content words of a text, and the pairs of characters of Chinese words of three or more."""
    words = content_words(text)
    long_words = [word for word in words if len(word) > 2 and not word.isascii()]
    pairs = ["".join(pair) for word in long_words for pair in pairwise(word)]
    return frozenset([*words, *pairs])
