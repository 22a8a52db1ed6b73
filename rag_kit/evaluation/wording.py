"""The texts of reports, plots and diagnoses in English and Chinese, and the kit's own sentences in Chinese."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, Self, cast

from rag_kit.documents.display import Table, TabularResult
from rag_kit.errors import InvalidInputError
from rag_kit.text.language import detect_language

_PLACEHOLDER = re.compile(r"\{(\w+)\}")  # "{name}"
_MAX_SENTENCE = 2_000  # characters; what is longer is no sentence of the kit
_MAX_DEPTH = 4  # of sentences within sentences
_NUMBERS = {"n", "m", "total"}  # names of placeholders that only a number fills
_NUMBER = r"[-+\d.,e]+"


class SpokenResult(TabularResult):
    """Base of results whose texts, which `_english` returns, are printed in their ``language``."""

    language: Any  # "en" or "zh": that of most questions, where nobody asked for another

    def in_language(self, language: Literal["en", "zh"]) -> Self:
        """Copy this result with its texts in another language."""
        spoken = copy(self)
        vars(spoken)["language"] = check_language(language)
        return spoken

    def _english(self) -> tuple[str, list[Table], list[str]]:
        """Return title, tables and notes in English; a cell is in the language already, if it is a word of the kit."""
        raise NotImplementedError

    def _contents(self) -> tuple[str, list[Table], list[str]]:
        title, tables, notes = self._english()
        spoken_title = "\n".join(map(self._say, title.split("\n")))
        return spoken_title, list(map(self._spoken, tables)), list(map(self._say, notes))

    def _spoken(self, table: Table) -> Table:
        """Put the header, the heading and the last line of a table into the language."""
        header = self._say("|".join(table.header)).split("|")
        return replace(table, header=header, heading=self._say(table.heading), more=self._say(table.more))

    def _say(self, text: str) -> str:
        return in_language(text, self.language)


@cache
def texts() -> dict[str, dict[str, str]]:
    """Return the texts by language and key."""
    by_key: dict[str, list[str]] = load_texts("reporting/assets/texts.json")
    return {code: {key: pair[i] for key, pair in by_key.items()} for i, code in enumerate(("en", "zh"))}


def say(key: str, language: str, **values: Any) -> str:
    """Return the text of a key with its values filled in; of a text ``one|many`` the form that fits ``n``.

    Example:
        >>> say("questions_all", "en", n=1), say("questions_all", "zh", n=2)
        ('1 question', '2 个问题')
    """
    singular, _, plural = texts()[language][key].partition("|")
    return _fill(plural if plural and values.get("n") != 1 else singular, values)


def main_language(questions: Iterable[str]) -> Literal["en", "zh"]:
    """Return the language of most questions."""
    is_chinese = [detect_language(question) == "zh" for question in questions]
    return "zh" if 2 * sum(is_chinese) > len(is_chinese) else "en"


def check_language(language: Any) -> Literal["en", "zh"]:
    """Return the language; refuse one in which there are no texts."""
    if language not in ("en", "zh"):
        raise InvalidInputError(f"language is {language!r:.80}; allowed are auto, en, zh")
    return cast('Literal["en", "zh"]', language)


def in_language(text: str, language: str) -> str:
    """Return a sentence of the kit, in Chinese if ``language`` is ``zh``; see `in_chinese`."""
    return in_chinese(text) if language == "zh" else text


@lru_cache(maxsize=4096)  # usual reasons come thousands of times
def in_chinese(text: str, depth: int = 0) -> str:
    """Translate a sentence that the kit's metrics, retrievers, graphs or comparisons write, and those within it.

    What a judge or a user wrote comes back as it is.

    Example:
        >>> in_chinese("3 supported, 1 missing"), in_chinese("looks fine")
        ('3 条得到支持，1 条缺少引用', 'looks fine')
    """
    if len(text) > _MAX_SENTENCE or depth > _MAX_DEPTH:
        return text
    # Several sentences first: "{n} missing" would take "3 supported, 1 missing" whole.
    for separator, chinese_separator in (("; ", "；"), (", ", "，")):
        if separator in text:
            parts = text.split(separator)
            translated = [in_chinese(part, depth + 1) for part in parts]
            if all(part != chinese for part, chinese in zip(parts, translated, strict=True)):
                return chinese_separator.join(translated)
    for literal, pattern, chinese in _sentences():
        if literal in text and (match := pattern.fullmatch(text)):  # the first test is quick
            values = {name: in_chinese(value, depth + 1) for name, value in match.groupdict().items()}
            return _fill(chinese, values)
    if text.endswith(".") and (chinese := in_chinese(text[:-1], depth)) != text[:-1]:
        return f"{chinese}。"
    # "run 2: no passage was retrieved"; one word after a colon may be a judge's own: "The claim: failed"
    name, _, note = text.partition(": ")
    if " " in note and (chinese := in_chinese(note, depth + 1)) != note:
        return f"{name}：{chinese}"
    return text


@cache
def _sentences() -> list[tuple[str, re.Pattern[str], str]]:
    """Return for each sentence of the kit: its longest literal part, its pattern, its Chinese.

    The one with most literal text comes first: "{name}: {why}" would match almost everything.
    """
    remedies = load_texts("remedies.json")
    of_cases = [pair for case in remedies["cases"].values() for pair in (case["title"], case["cause"])]
    of_remedies = [pair for _, *pair in remedies["remedies"].values()]  # the part's name comes first
    chinese: dict[str, str] = load_texts("sentences.json") | dict([*of_cases, *of_remedies])
    sentences = []
    for english in sorted(chinese, key=lambda text: -len(_PLACEHOLDER.sub("", text))):
        parts = _PLACEHOLDER.split(english)  # "{n} of {m}": "", "n", " of ", "m", "": every second is a name
        literals, names = parts[::2], parts[1::2]
        pattern = re.escape(literals[0])
        for name, literal in zip(names, literals[1:], strict=True):
            pattern += f"(?P<{name}>{_NUMBER if name in _NUMBERS else '.+?'}){re.escape(literal)}"
        sentences.append((max(literals, key=len), re.compile(pattern, re.DOTALL), chinese[english]))
    return sentences


def _fill(text: str, values: Mapping[str, Any]) -> str:
    """Replace each ``{name}`` by the value of that name; one within a value is not filled in again."""
    return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), text)


def load_texts(name: str) -> Any:
    """Read a JSON file of this package."""
    return json.loads((files("rag_kit.evaluation") / name).read_text(encoding="utf-8"))
