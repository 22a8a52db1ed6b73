"""Query expansion: the question with synonyms and related terms, of a model or a thesaurus."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import Annotated, Any, ClassVar, NamedTuple, Self, Unpack

from pydantic import BaseModel, Field, field_validator, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.schemas import Queries
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.expansion.thesaurus import Entries, Thesaurus
from rag_kit.retrieval.fields import Model, Rewrites
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.indexed import KeywordRetriever, WeightedTermsRetriever, reader_of
from rag_kit.retrieval.rewriting import RewritingRetriever
from rag_kit.retrieval.settings import RewritingSettings
from rag_kit.text.analysis import load_segmenter
from rag_kit.text.language import CHINESE_FUNCTION_WORDS, ENGLISH_FUNCTION_WORDS, HAN, detect_language, fold

Templates = Annotated[list[Annotated[str, Field(pattern=r"\{term\}")]], Field(min_length=1)]

_MAX_TERM_CHARS = 80
_TEMPLATES = {
    "en": ("What is {term}?", "How does {term} work?"),
    "zh": ("什么是{term}？", "{term}有什么作用？"),
}
# a run of Chinese characters, or one word of another script: "don't", "heat-pump", "C++"
_HAN_OR_WORD = re.compile(f"[{HAN}]+|[^\\W_{HAN}]+(?:[.'’+#_\\-]*[^\\W_{HAN}]+)*[+#]*")
_IS_HAN = re.compile(f"[{HAN}]")
_MAX_PHRASE_WORDS = 5
_MAX_TERMS, _MAX_TEMPLATE_SEARCHES = 32, 4


class Added(NamedTuple):
    """A term added to the search, and its source: ``"model"`` or ``"thesaurus"``."""

    text: str
    source: str


class ExpansionRetriever(RewritingRetriever):
    """Search for more than the words of the question.

    Terms come from a model (``from_llm``), from your own thesaurus (``from_thesaurus``), or from both. Over a
    ``BM25Retriever``, or the keyword part of a ``DocumentIndex`` (``index_retriever(index, "bm25")``), they join
    the question's words in one search, each with a weight; any other retriever is asked the question, and the
    question with the terms behind it, and the two lists are fused. Question templates ("What is {term}?") are
    searches of their own. The provenance names each added term with its weight and source under ``terms``.

    Paper: Voorhees, Query Expansion Using Lexical-Semantic Relations, SIGIR 1994.

    Args:
        llm: A model to ask for terms.
        thesaurus: A :class:`Thesaurus`, the entries of one, or the path of its file.
        templates: Texts with ``{term}`` in them, or ``True`` for the built-in ones in the question's language.
        n: Terms to ask the model for, 1 to 32.
        term_weight: What an added term counts beside one of the question (over BM25); above 0.
        include_original: Ask for the bare question too, where the question's words are not in a search over BM25.

    All other arguments are those of ``RewritingRetriever``; the first of its ``weights`` is for the question or,
    over BM25, for the question with its terms.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["Myocardial infarction: signs", "The heart of the matter", "Tea"]
        >>> words = BM25Retriever.from_texts(texts)
        >>> retriever = ExpansionRetriever.from_thesaurus({"heart attack": ["myocardial infarction"]}, words)
        >>> [doc.page_content for doc in retriever.invoke("heart attacks")]
        ['The heart of the matter', 'Myocardial infarction: signs']
    """

    task: ClassVar[str] = "expansion"
    answer_form: ClassVar[type[BaseModel]] = Queries

    llm: Model | None = None  # type: ignore[assignment]
    thesaurus: Thesaurus | None = None
    templates: Templates | bool = False
    n: Rewrites = 8
    term_weight: float = Field(default=0.5, gt=0, le=100)

    @classmethod
    def from_thesaurus(
        cls,
        thesaurus: Thesaurus | Entries | str | PathLike[str],
        retriever: Any,
        *,
        k: int = 4,
        **settings: Unpack[RewritingSettings],
    ) -> Self:
        """Expand by a thesaurus, the entries of one, or the path of a ``.json`` or ``.csv`` file."""
        options: Any = settings  # Any, for not all keys are fields of this class
        return cls(thesaurus=thesaurus, retriever=retriever, k=k, **options)

    @field_validator("thesaurus", mode="before")
    @classmethod
    def _open_thesaurus(cls, value: Any) -> Any:
        if value is None or isinstance(value, Thesaurus):
            return value
        return Thesaurus.from_file(value) if isinstance(value, (str, PathLike)) else Thesaurus(value)

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        if self.llm is None and self.thesaurus is None and not self.templates:
            raise InvalidInputError(
                "Nothing would be added; give llm, thesaurus or templates (see from_llm, from_thesaurus)."
            )
        return self

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        """Make searches with the terms of the model and the thesaurus added, and one for each template."""
        added = await self._ask_for_terms(question, call)
        related_terms = self.thesaurus.find(question) if self.thesaurus is not None else {}
        for terms in related_terms.values():
            added += [Added(term, "thesaurus") for term in terms]
        added = new_terms(added, question)
        if len(added) > _MAX_TERMS:
            call.note(f"expansion: {len(added)} terms, of which the first {_MAX_TERMS} were added")
            added = added[:_MAX_TERMS]
        searches = await self._expanded_search(question, added, call) if added else []
        searches += self._template_searches(question, related_terms)
        is_degraded = any(note.startswith("degraded") for note in call.notes)
        if not searches and not is_degraded:  # nothing went wrong: the question alone is all there is to ask
            call.settled = True
            call.note("expansion: nothing to add")
        return searches

    async def _ask_for_terms(self, question: str, call: Call) -> list[Added]:
        """Ask the model for up to ``n`` terms related to the question; without a model return none."""
        if self.llm is None:
            return []
        values = [{"question": question, "count": self.n}]  # of the prompt's variables
        limits: Any = {"max_texts": self.n, "max_chars": _MAX_TERM_CHARS}
        # the answer lists its terms under "queries"; one may be in Latin letters though the question is Chinese
        terms = await self._ask_for_texts(values, "queries", call, **limits, noun="term", latin=True)
        return [Added(term, "model") for term in terms]

    async def _expanded_search(self, question: str, added: Sequence[Added], call: Call) -> list[Search]:
        """Make one search for question and added terms: weighted over a keyword index, else joined into one text."""
        inner = self.retriever
        if not isinstance(inner, KeywordRetriever):
            call.extra["terms"] = [{"term": term, "weight": None, "source": source} for term, source in added]
            return [Search(" ".join([question, *(term for term, _ in added)]), "expansion")]
        weighing = call.do("keyword index", partial(self._weigh_terms, inner, question, added))
        weights, details = await call.attempt("keyword index", weighing, "nothing is added") or ({}, [])
        if not details:  # the index failed, or all terms are in the question
            return []
        call.extra["terms"] = details
        searcher = WeightedTermsRetriever(
            index=inner.index,
            terms=weights,
            filter=inner.filter,
            name=inner.get_name(),
            note=getattr(inner, "note", None),
        )
        return [Search(" ".join([question, *(detail["term"] for detail in details)]), "expansion", searcher)]

    def _weigh_terms(
        self, inner: KeywordRetriever, question: str, added: Sequence[Added]
    ) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Return the weight of each index term to search for, and a record of each added text for the provenance.

        A term of the question weighs the number of its occurrences there, an added one ``term_weight``. An added text
        whose terms are all in the question is left out. Reads the index, which may block.
        """
        reader = reader_of(inner.index)
        query_terms = Counter(reader.query_terms(question))
        weights: dict[str, float] = dict(query_terms)
        details = []
        for text, source in added:
            new_index_terms = [term for term in reader.analyzer(text) if term not in query_terms]
            if new_index_terms:
                weights.update(dict.fromkeys(new_index_terms, self.term_weight))
                details.append({"term": text, "weight": self.term_weight, "source": source})
        return weights, details

    def _template_searches(self, question: str, thesaurus_terms: Iterable[str]) -> list[Search]:
        """Fill each template with each thesaurus term and phrase of the question; return the first 4 as searches."""
        if not self.templates:
            return []
        built_in = _TEMPLATES[detect_language(question)]
        templates = built_in if isinstance(self.templates, bool) else self.templates
        terms = dict.fromkeys([*thesaurus_terms, *key_phrases(question)])
        queries = [template.replace("{term}", term) for term in terms for template in templates]
        new = [query for query in dict.fromkeys(queries) if fold(query) != fold(question)]
        return [Search(query, "template") for query in new[:_MAX_TEMPLATE_SEARCHES]]


def new_terms(added: Sequence[Added], question: str) -> list[Added]:
    """Return each term once, without those in the question."""
    distinct: dict[str, Added] = {}
    for term in added:
        distinct.setdefault(fold(term.text), term)
    padded_question = f" {fold(question)} "  # as are the terms, to match whole words only
    return [term for key, term in distinct.items() if f" {key} " not in padded_question]


def key_phrases(question: str) -> list[str]:
    """Find the phrases of a question: runs of at most five words between function words and punctuation, each once.

    ``"How does the heat pump start?" -> ["heat pump start"]``
    """
    phrases: list[str] = []
    words: list[tuple[int, int]] = []  # start and end of each word of the phrase so far
    end_mark = (len(question), len(question), True)  # ends the last phrase as a function word does
    for start, end, is_function_word in [*_words(question), end_mark]:
        if words:
            phrase_start, phrase_end = words[0][0], words[-1][1]
            is_adjacent = not question[phrase_end:start].strip()  # nothing but blanks between
            if is_function_word or not is_adjacent or len(words) == _MAX_PHRASE_WORDS:
                phrases.append(question[phrase_start:phrase_end])
                words = []
        if not is_function_word:
            words.append((start, end))
    return [phrase for phrase in dict.fromkeys(phrases) if len(phrase) > 1]


def _words(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of each word, and whether it is a function word: ``the``, ``的``."""
    for match in _HAN_OR_WORD.finditer(text):
        if not _IS_HAN.match(match[0]):
            word = match[0].lower().replace("’", "'")
            yield match.start(), match.end(), word in ENGLISH_FUNCTION_WORDS
            continue
        start = match.start()
        for word in load_segmenter()(match[0]):
            yield start, start + len(word), word in CHINESE_FUNCTION_WORDS
            start += len(word)
