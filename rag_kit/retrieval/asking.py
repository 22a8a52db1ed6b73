"""Prompts that retrievers ask models by, one for each language; and the reading of grades and numbers in answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.prompts import BasePromptTemplate

from rag_kit.documents.identity import field_of
from rag_kit.errors import InvalidInputError
from rag_kit.prompts import load_prompt
from rag_kit.prompts.format import LANGUAGES
from rag_kit.text import detect_language


class LanguagePrompts:
    """A prompt for each language; read now, as no call may wait for files.

    ``prompt`` is one prompt, or one a language (``{"en": ..., "zh": ...}``), with the variables that ``needs`` names;
    ``None`` for the kit's own of that ``name``. ``language="auto"`` goes by the question.
    """

    def __init__(self, name: str, prompt: Any, needs: Sequence[str], language: str = "auto") -> None:
        if language not in ("auto", *LANGUAGES):
            raise InvalidInputError(f"language={language!r} was given; allowed: 'auto', 'en', 'zh'.")
        if prompt is None:
            prompt = {code: load_prompt(name, language=code) for code in LANGUAGES}
        self.language = language
        self._prompts = dict(prompt) if isinstance(prompt, Mapping) else dict.fromkeys(LANGUAGES, prompt)
        for code, template in (self._prompts or {"": None}).items():  # an empty mapping is refused as well
            variables = template.input_variables if isinstance(template, BasePromptTemplate) else None
            if code not in LANGUAGES or variables is None or not {*needs} <= {*variables}:
                raise InvalidInputError(
                    f"prompt holds {type(template).__name__} for {code!r}, which takes {variables}; it must be a "
                    f"LangChain prompt that takes {', '.join(needs)}, or one for each of: {', '.join(LANGUAGES)}."
                )

    def choose(self, question: str) -> Any:
        """Return the prompt in the language of a question, else the first one there is."""
        code = detect_language(question) if self.language == "auto" else self.language
        return self._prompts.get(code) or next(iter(self._prompts.values()))


# A number alone ("3", "-1"), or the only one among words ("[3]", "passage 3"); after words a sign makes no number.
_NUMBER = re.compile(r"(?P<alone>[+-]?\d{1,6})|[^\d+-]*(?P<in_words>\d{1,6})[^\d]*")


def grade_score(grade: Any) -> float | None:
    """Return the score of a model's grade: how surely a passage is relevant, 0 to 1; ``None`` without a usable one.

    Some models write how sure they are of their verdict instead. A score that contradicts the verdict is moved to the
    verdict's side of 0.5.
    """
    score, relevant = field_of(grade, "score"), field_of(grade, "relevant")
    if not isinstance(score, (int, float)) or isinstance(score, bool) or not 0 <= score <= 1:
        return None
    if relevant is False and score >= 0.5:
        return min(1.0 - float(score), 0.49)  # sure that it is irrelevant
    if relevant is True and score < 0.5:
        return 0.5
    return float(score)


def read_numbers(answer: Any, count: int) -> tuple[list[int], list[str]]:
    """Read the passage numbers, 1 to ``count``, in a model's list, such as ``[3, "[1]"]``.

    Returns the positions from 0, each once, and the counts of entries that are of no use ("2 repeated").
    """
    positions: dict[int, None] = {}  # in the order of the list
    problems = dict.fromkeys(("out of range", "repeated", "not a number"), 0)
    for item in answer if isinstance(answer, (list, tuple)) else ():
        number = _passage_number(item)
        if number is None:
            problems["not a number"] += 1
        elif not 1 <= number <= count:
            problems["out of range"] += 1
        elif number - 1 in positions:
            problems["repeated"] += 1
        else:
            positions[number - 1] = None
    return list(positions), [f"{times} {problem}" for problem, times in problems.items() if times]


def _passage_number(entry: Any) -> int | None:
    """Read the passage number out of one entry of a model's list; ``None`` if it holds no whole number.

    The entry is a number, a text with one number in it (``"[3]"``), or a dict with either under a usual key.
    """
    if isinstance(entry, dict):
        entry = next((entry[key] for key in ("id", "number", "index") if key in entry), None)
    if isinstance(entry, (int, float)) and not isinstance(entry, bool):
        return int(entry) if entry % 1 == 0 else None  # 2.0 is whole; 2.5, infinity and NaN are not
    match = _NUMBER.fullmatch(entry.strip()) if isinstance(entry, str) else None
    return int(match["alone"] or match["in_words"]) if match else None
