"""From text to index terms: words, stems, identifiers whole and in parts, Chinese words and bigrams, n-grams."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar, Self

from rag_kit.errors import InvalidInputError
from rag_kit.text.asking import without_question_words
from rag_kit.text.language import (
    ASCII_RUNS,
    CHINESE_FUNCTION_WORDS,
    CLOSE,
    ENGLISH_FUNCTION_WORDS,
    ENGLISH_STOPS,
    FIRST_CLOSE,
    HAN,
    SPECIAL,
    fold,
    unicode_runs,
)

TERMS_VERSION = 2  # of the terms that texts give; an index holds those of one version
_CACHE_LIMIT = 200_000  # distinct words remembered per analyzer, about 40 MB at most
_MAX_TERM = 128  # longer runs (encoded blobs) are cut: nobody types them whole
_PARTS = re.compile(r"[.\-_]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_LETTERS_OR_DIGITS = re.compile(r"\d+|\D+")
# Names that are stop words in small letters; in a line of capitals they are not told from these.
_NAMES = ("IT", "US", "WHO")
_NAME = re.compile(rf"(?<![A-Z] )\b(?:{'|'.join(_NAMES)})\b(?! [A-Z]{{2}})")
_HAN = re.compile(f"[{HAN}]")


@cache
def load_segmenter() -> Callable[[str], list[str]]:
    """Load the Chinese dictionary (0.2 s with rjieba, 1 s with jieba); return its function from a run to words.

    The two packages share dictionary and algorithm, so an index built with one can be searched with the other.
    """
    try:
        import rjieba
    except ImportError:
        import jieba

        jieba.setLogLevel(logging.ERROR)
        jieba.initialize()
        return jieba.lcut  # type: ignore[no-any-return]
    rjieba.cut("预热")  # the first call loads the dictionary
    return rjieba.cut


def tag_words(run: str, guess_names: bool = False) -> list[tuple[str, str]]:
    """Cut a run of Chinese characters into words with their parts of speech, in jieba's letters.

    A word that is in no dictionary, as most names are, is cut into its characters: words then depend little on the text
    beside them, so that two texts can be aligned. With ``guess_names`` such characters may be joined to a word.

    Example:
        >>> tag_words("在北京大学")
        [('在', 'p'), ('北京大学', 'nt')]
    """
    try:
        import rjieba
    except ImportError:
        import jieba.posseg

        return [(pair.word, pair.flag) for pair in jieba.posseg.lcut(run, HMM=guess_names)]
    return list(rjieba.tag(run, guess_names))


class _Terms(dict[str, tuple[str, ...]]):
    """Remembers the terms of each word; computes them on first sight."""

    def __init__(self, stem: bool, stops: frozenset[str]) -> None:
        super().__init__()
        self._stops = stops
        self._lock = threading.Lock()  # for the stemmer and for writes to this dict
        self._stemmer = None
        if stem:
            import Stemmer

            self._stemmer = Stemmer.Stemmer("english", 0)  # 0: no cache in the stemmer, this class is one

    def __missing__(self, word: str) -> tuple[str, ...]:
        with self._lock:  # two threads must not be in one stemmer object
            terms = tuple(self._analyse(word))
            if len(self) >= _CACHE_LIMIT:
                self.clear()
            if len(word) <= _MAX_TERM:  # a longer run comes once, and many of them would fill the memory
                self[word] = terms
        return terms

    def _analyse(self, word: str) -> list[str]:
        """Return the terms of a run that may be joined by dots, hyphens, apostrophes or underscores."""
        if word.isalpha():
            return self._plain_terms(word)
        word = word.replace(",", "")
        if word.endswith(("+", "#")):  # c++
            return [word[:_MAX_TERM], *self._plain_terms(word.rstrip("+#"))]
        parts = _PARTS.split(word)
        if len(parts) == 1:
            return self._part_terms(word)
        if all(len(part) == 1 and part.isalpha() for part in parts):
            return self._plain_terms("".join(parts))  # U.S.A. is USA
        if _DECIMAL.fullmatch(word):
            return [word[:_MAX_TERM]]
        terms = [term for part in parts for term in self._part_terms(part)]
        has_digits = any(character.isdigit() for character in word)
        if has_digits and any(character.isalpha() for character in word):
            word = word.replace("-", "")  # XR-20 is XR20
        if "_" in word or "." in word or has_digits:
            terms.insert(0, word[:_MAX_TERM])
        return terms

    def _part_terms(self, word: str) -> list[str]:
        """Return a word without joins and, if it has both, its letters and its digits."""
        terms = self._plain_terms(word)
        pieces = _LETTERS_OR_DIGITS.findall(_without_apostrophes(word))
        if len(pieces) > 1 and len(word) <= _MAX_TERM:
            terms += [term for piece in pieces for term in self._plain_terms(piece)]
        return terms

    def _plain_terms(self, word: str) -> list[str]:
        """Return the stem of a word; nothing for a stop word."""
        word = _without_apostrophes(word)[:_MAX_TERM]
        if not word or word in self._stops:
            return []
        if self._stemmer is not None and word.isascii() and word.isalpha():
            word = self._stemmer.stemWord(word)
        return [word]


@dataclass
class StoredAnalyzer:
    """Base of dataclasses that turn a text into terms: their fields are settings that can be stored."""

    _constants: ClassVar[dict[str, Any]]  # settings that are no fields

    def query_terms(self, text: str) -> list[str]:
        """Return the terms of a query without question words; with them if there are no others, or own stop words.

        Example:
            >>> Analyzer().query_terms("What does the pump do?"), Analyzer().query_terms("What?")
            (['pump'], ['what'])
        """
        has_own_stops = getattr(self, "stop_words", True) is not True
        return self(text if has_own_stops else without_question_words(text)) or self(text)  # type: ignore[operator,no-any-return]

    def settings(self) -> dict[str, Any]:
        """The settings as plain JSON, to be stored with an index.

        Example:
            >>> Analyzer().settings()
            {'version': 2, 'language': 'auto', 'stem': True, 'stop_words': True, 'typos': True}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {**self._constants, **plain}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Make the analyzer that :meth:`settings` described.

        Raises:
            InvalidInputError: The settings are of a newer version, or not settings at all.

        Example:
            >>> Analyzer.from_settings(Analyzer(stem=False).settings())("cats")
            ['cats']
        """
        names = [field.name for field in fields(cls)]
        if (
            not isinstance(settings, Mapping)
            or not settings.keys() <= {*cls._constants, *names}
            or not cls._constants.items() <= settings.items()
        ):
            raise InvalidInputError(
                f"analyzer settings {settings!r} are not those of version {cls._constants['version']}; "
                "build the index again, or use the rag_kit that wrote it."
            )
        return cls(**{name: settings[name] for name in names if name in settings})

    def __reduce__(self) -> Any:
        """Pickle the settings alone; a copy in another process finds out the terms of words again."""
        return type(self).from_settings, (self.settings(),)


@dataclass(kw_only=True, unsafe_hash=True)
class Analyzer(StoredAnalyzer):
    """Turns a text into the terms that keyword search counts, the same way for documents and queries.

    One string may mix scripts. English words are stemmed (Porter2) and lose Lucene's 33 stop words; Chinese runs
    give their characters, every pair of neighbours and the words of three characters or more, so that a name the
    dictionary does not know is still found; identifiers stay whole and give their parts too, also those of letters and
    of digits; Korean, kana, Thai and the like give the run and its pairs; every other script its Unicode words. Calls
    are safe from several threads.

    Constructing one loads all that is read from files, so that no call blocks on one; the Chinese dictionary, which
    is compiled into rjieba, comes with the first Chinese text.

    Args:
        stem: Whether to stem English words.
        stop_words: ``True`` for the built-in English list (Chinese function words are kept: leaving them out
            was measured to be worse), ``False`` for none, or the words to leave out, of any language.
        typos: Whether a search takes the nearest word of the documents for a word that none of them has.

    Example:
        >>> Analyzer()("The GPT-4o models of 北京大学")
        ['gpt4o', 'gpt', '4o', '4', 'o', 'model', '北', '京', '大', '学', '北京', '京大', '大学', '北京大学']
    """

    _constants: ClassVar = {"version": TERMS_VERSION, "language": "auto"}
    stem: bool = True
    stop_words: bool | Iterable[str] = True
    typos: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.stop_words, str):
            raise InvalidInputError("stop_words is a string; give True, False or a list of words.")
        self._own_stops = frozenset[str]()
        if not isinstance(self.stop_words, bool):
            self.stop_words = tuple(sorted(set(self.stop_words)))
            self._own_stops = frozenset(map(fold, self.stop_words))
        stops = ENGLISH_STOPS if self.stop_words is True else self._own_stops
        self._terms = _Terms(self.stem, stops)
        self._names = [name for name in _NAMES if name.lower() in stops]
        if find_spec("rjieba") is None:
            load_segmenter()  # jieba's dictionary is a file, and a call on an event loop must not wait for one

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text in order, repeats kept; `InvalidInputError` if it is no string."""
        if not isinstance(text, str):
            raise InvalidInputError(f"a text to analyse must be a str, not {type(text).__name__}.")
        folded = fold(text)
        terms: list[str] = []
        if any(name in text for name in self._names):
            terms += (name.lower() for name in _NAME.findall(text) if name in self._names)
        extend, terms_of = terms.extend, self._terms
        if folded.isascii():
            for word in ASCII_RUNS.findall(folded):
                extend(terms_of[word])
            return terms
        for word in unicode_runs().findall(folded):
            if word < FIRST_CLOSE or not SPECIAL.match(word):  # a word of a script with spaces
                extend(terms_of[word])
            elif _HAN.match(word):
                terms += self._chinese_terms(word)
            else:
                terms += neighbour_pairs(word)
                if 2 < len(word) <= _MAX_TERM:
                    terms.append(word)
        return terms

    def _chinese_terms(self, run: str) -> list[str]:
        """Return the characters of a run, its pairs, and its words of three characters or more."""
        terms = list(run)
        if len(run) > 1:
            terms += neighbour_pairs(run)
        if len(run) > 2:
            terms += [word for word in load_segmenter()(run) if 2 < len(word) <= _MAX_TERM]
        return [term for term in terms if term not in self._own_stops] if self._own_stops else terms


class _ContentAnalyzer(Analyzer):
    """Analyzes Chinese by word instead of by pair, and drops words without a topic."""

    def _chinese_terms(self, run: str) -> list[str]:
        """Return the words of a run, without those that carry no topic."""
        return [word for word in load_segmenter()(run) if word not in CHINESE_FUNCTION_WORDS]


def neighbour_pairs(run: str) -> list[str]:
    """Return the pairs of neighbouring characters; a single character as it is: 北京大 -> 北京, 京大."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _without_apostrophes(word: str) -> str:
    return word.removesuffix("'s").replace("'", "")


@cache
def default_analyzer() -> Analyzer:
    """Return the analyzer used if none is given: one shared object with the default settings.

    Example:
        >>> default_analyzer()("Cats, cat's and CAT")
        ['cat', 'cat', 'cat']
    """
    return Analyzer()


@cache
def _content_analyzer() -> Analyzer:
    return _ContentAnalyzer(stop_words=ENGLISH_FUNCTION_WORDS)


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry its topic, for weighing evidence.

    Analysed as for the index, except that Chinese gives segmented words and that question words, pronouns and
    auxiliaries are left out in both languages. Stemmed and folded, in order, repeats kept.

    Example:
        >>> content_words("Which river runs through 北京的哪个地方?")
        ['river', 'run', '北京', '地方']
    """
    return _content_analyzer()(text)


def warm_up() -> None:
    """Load what the first call would read from files: stemmer, character tables, and the Chinese dictionary.

    Call it before an event loop starts where blocking calls are refused; making an :class:`Analyzer` does the same.
    """
    default_analyzer()("warm")
    content_words("warm")


# lengths of the n-grams of words, and of runs in scripts without spaces
_SIZES = {"sizes": [3, 4], "close_sizes": [1, 2]}
_LONGEST_CACHED = 64  # characters of a word that is worth remembering
_WORDS = re.compile(f"[{CLOSE}]+|[^\\W_{CLOSE}]+")


@dataclass(unsafe_hash=True)
class CharacterNgrams(StoredAnalyzer):
    """Turns a text into the n-grams of its words' characters.

    A word is taken with a space on both sides, so that its beginning and end count, and cut into three and four
    characters. Scripts without spaces (Chinese, kana, Hangul, Thai...) are cut into one and two, without marks at the
    ends. Case, width, and traditional or simplified characters do not matter.

    Example:
        >>> CharacterNgrams()("The 北京")
        [' th', 'the', 'he ', ' the', 'the ', '北', '京', '北京']
    """

    _constants: ClassVar = {"version": TERMS_VERSION, "kind": "characters", **_SIZES}

    def __call__(self, text: str) -> list[str]:
        """Return the n-grams of a text, repeats kept."""
        if not isinstance(text, str):
            raise InvalidInputError(f"a text to analyse must be a str, not {type(text).__name__}.")
        grams: list[str] = []
        for word in _WORDS.findall(fold(text)):
            grams += _ngrams(word) if len(word) <= _LONGEST_CACHED else _ngrams.__wrapped__(word)
        return grams


@lru_cache(200_000)
def _ngrams(word: str) -> tuple[str, ...]:
    """Cut a word into n-grams."""
    text, kind = (word, "close_sizes") if SPECIAL.match(word) else (f" {word} ", "sizes")
    return tuple(text[n : n + size] for size in _SIZES[kind] for n in range(len(text) - size + 1))
