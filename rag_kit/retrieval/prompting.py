"""What a part asks a model with, one prompt a language, and what is used of the answers: texts, numbers, grades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import load_prompt
from rag_kit.prompts.format import LANGUAGES
from rag_kit.text import detect_language, fold

# A number alone, or one within other words; there a sign would make it another number.
_NUMBER = re.compile(r"([+-]?\d{1,6})|[^\d+-]*(\d{1,6})[^\d]*")
_MOST_IN_LINE = 2_000  # characters; a longer text is a passage, whose lines stay


class LanguagePrompts:
    """The kit's own prompt of a name in each language, or the caller's; read now, as no call may wait for files.

    Args:
        name: Name of the kit's prompt.
        given: A prompt, one a language (``{"en": ..., "zh": ...}``), or ``None`` for the kit's own.
        needs: Variables that a prompt must take.
        language: ``"auto"`` goes by the question; else ``"en"`` or ``"zh"``.
    """

    def __init__(self, name: str, given: Any, needs: tuple[str, ...], language: str = "auto") -> None:
        if language not in ("auto", *LANGUAGES):
            raise InvalidInputError(f"language={language!r} was given; allowed: 'auto', 'en', 'zh'.")
        self.language = language
        if given is None:
            self._prompts = {tongue: load_prompt(name, language=tongue) for tongue in LANGUAGES}
            return
        self._prompts = dict(given) if isinstance(given, Mapping) else dict.fromkeys(LANGUAGES, given)
        given_prompts: Mapping[str, Any] = self._prompts or {"": None}
        for tongue, prompt in given_prompts.items():
            if tongue not in LANGUAGES or not isinstance(prompt, BasePromptTemplate):
                raise InvalidInputError(
                    f"prompt holds {type(prompt).__name__} for {tongue!r}; it must be a LangChain prompt, or "
                    f"one for each of: {', '.join(LANGUAGES)}."
                )
            if missing := [need for need in needs if need not in prompt.input_variables]:
                raise InvalidInputError(
                    f"The prompt takes {prompt.input_variables}; it must take {', '.join(map(repr, missing))} too."
                )

    def choose(self, question: str) -> Any:
        """The prompt in the language of a question, else in the one there is."""
        tongue = detect_language(question) if self.language == "auto" else self.language
        return self._prompts.get(tongue) or next(iter(self._prompts.values()))


def check_model(llm: Any) -> Runnable[Any, Any]:
    """See that something can be asked as a chat model."""
    if isinstance(llm, BaseRetriever):
        raise InvalidInputError(f"llm is the retriever {llm.get_name()}; from_llm takes the model first.")
    if not isinstance(llm, Runnable):
        raise InvalidInputError(
            f"llm is {type(llm).__name__}; it must be a chat model (or another runnable that takes messages)."
        )
    return llm


def field_of(answer: Any, name: str) -> Any:
    """A field of an answer that may be an object or a dict."""
    return answer.get(name) if isinstance(answer, Mapping) else getattr(answer, name, None)


def grade_score(grade: Any) -> float | None:
    """How surely a passage passes, from 0 to 1; ``None`` if the grade holds no usable score.

    Some models give how sure they are of their verdict instead; the verdict then decides the side.
    """
    score, relevant = field_of(grade, "score"), field_of(grade, "relevant")
    if not isinstance(score, (int, float)) or isinstance(score, bool) or not 0 <= score <= 1:
        return None
    if relevant is False and score >= 0.5:
        return min(1.0 - float(score), 0.49)
    if relevant is True and score < 0.5:
        return 0.5
    return float(score)


class Chosen(NamedTuple):
    """What could be used of the numbers that a model gave, as positions from 0, each once; and what could not."""

    places: list[int]
    problems: list[str]


def read_numbers(given: Any, count: int) -> Chosen:
    """Read a list of numbers 1 to ``count``, or of texts that hold one (``"[3]"``).

    Numbers out of range, repeats and what is no number (true and false among it) are left out and counted.

    Example:
        >>> read_numbers([2, "[1]", 2, 9, True], 3)
        Chosen(places=[1, 0], problems=['1 out of range', '1 repeated', '1 not a number'])
    """
    places: dict[int, None] = {}
    problems = dict.fromkeys(("out of range", "repeated", "not a number"), 0)
    items = given if isinstance(given, (list, tuple)) else ()
    for item in items:
        number = _number(item)
        if number is None:
            problems["not a number"] += 1
        elif not 1 <= number <= count:
            problems["out of range"] += 1
        elif number - 1 in places:
            problems["repeated"] += 1
        else:
            places[number - 1] = None
    return Chosen(list(places), [f"{times} {what}" for what, times in problems.items() if times])


def _number(item: Any) -> int | None:
    if isinstance(item, dict):
        item = next((item[key] for key in ("id", "number", "index") if key in item), None)
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return int(item) if item == item // 1 else None
    found = _NUMBER.fullmatch(item.strip()) if isinstance(item, str) else None
    return int(found[1] or found[2]) if found else None


def usable_variants(
    written: Iterable[str], question: str, *, most: int, max_chars: int, latin: bool = False
) -> tuple[list[str], list[str]]:
    """The first ``most`` texts that are worth a search, and for each dropped one a line that says why.

    Texts are the same if they differ only in case, width, punctuation, spacing, or simplified against
    traditional characters. A text is Chinese if the question is; with ``latin`` it need not be (names, abbreviations).
    """
    asked = folded(question)
    seen = {asked}
    languages = {detect_language(question), *(("en",) if latin else ())}
    kept: list[str] = []
    dropped: list[str] = []
    for text in written:
        text = " ".join(text.split()) if max_chars <= _MOST_IN_LINE else text.strip()
        key = folded(text)
        if not key:
            dropped.append("empty")
        elif key in seen:
            dropped.append("repeats the question" if key == asked else "repeats another")
        elif len(text) > max_chars:
            dropped.append(f"longer than {max_chars} characters")
        elif detect_language(text) not in languages:
            dropped.append("another language")
        elif len(kept) == most:
            dropped.append("more than asked for")
        else:
            seen.add(key)
            kept.append(text)
    return kept, dropped


def texts_of(answers: Sequence[Any], field: str) -> list[str]:
    """The texts under a field of the answers: the first of each answer, then the second of each..."""
    lists = []
    for answer in answers:
        value = field_of(answer, field)
        lists.append([value] if isinstance(value, str) else [str(item) for item in value or []])
    return [text for texts in zip_longest(*lists) for text in texts if text is not None]


_NOT_KEPT = {code: None for code in range(128) if not (chr(code).isalnum() or chr(code) in "+#")}


def folded(text: str) -> str:
    """What two versions of one text share: letters and digits alone, and signs that matter in names (C++, C#)."""
    if text.isascii():
        return text.lower().translate(_NOT_KEPT)
    return "".join(char for char in fold(text) if char.isalnum() or char in "+#")
