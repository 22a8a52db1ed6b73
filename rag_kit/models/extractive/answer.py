"""The task ``answer``: at most two sentences of the passages, each with its citation, or the decline sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.models.extractive.support import strength
from rag_kit.text import detect_language
from rag_kit.text.citations.decline import DECLINED
from rag_kit.text.evidence.passages import is_question
from rag_kit.text.evidence.question import analyse
from rag_kit.text.evidence.sentences import Candidate, choose, collect, without_distraction

MAX_SENTENCES = 2
_OWN_MARKS = re.compile(r"\s?[\[［【]\s*(?:\d{1,4}(?:\s*[,，、–-]\s*\d{1,4})*)\s*[\]］】]")
_LIST_MARK = re.compile(r"^(?:[-*•·‣]|#{1,6})\s+")
_ENDED = re.compile(r"[.!?。！？…][\"'”’」』)）\]]*$")


def answer(prompt: Prompt) -> Reply:
    """Answer from the passages of the prompt, or decline.

    Example:
        >>> from rag_kit.text.evidence.passages import PassageText
        >>> passage = PassageText(1, "BM25 ranks by words. It was made in the 1990s by Robertson.", "BM25")
        >>> prompt = Prompt("answer", "", "Who made BM25?", (passage,), (), None)
        >>> answer(prompt).text
        'BM25 ranks by words.[1] It was made in the 1990s by Robertson.[1]'
    """
    question = analyse((prompt.question or prompt.user)[:4000])
    found = collect(question, prompt.passages)
    # A question in the text, as in a FAQ, answers nothing; its words are surroundings of the sentence after it.
    picked = choose(question, [one for one in found if not is_question(one.text)] or found, MAX_SENTENCES)
    support = strength(question, prompt.passages, found, picked)
    if support < 0.5:
        text = DECLINED[question.language]
        return Reply(text, {"answer": text, "declined": True, "score": support})
    picked = without_distraction(picked)
    if len({one.place for one in picked}) == 1:
        picked.sort(key=lambda one: one.order)
    text = _join(_lines(picked))
    return Reply(text, {"answer": text, "declined": False, "score": support})


def _lines(picked: Sequence[Candidate]) -> list[str]:
    """The cited sentences; above the first row of a table stands its header, or nobody could read the row."""
    lines: list[str] = []
    shown: set[tuple[int, str]] = set()
    for one in picked:
        if one.header and (one.place, one.header) not in shown:
            shown.add((one.place, one.header))
            lines.append(cite(replace(one, text=one.header)))
        lines.append(cite(one))
    return lines


def cite(candidate: Candidate) -> str:
    """A sentence as it stands in the answer: on one line, ended, with its number.

    Bracketed numbers of the source's own are left out, since they would read as citations of passages.
    """
    text = " ".join(_OWN_MARKS.sub("", candidate.text).split())
    text = _LIST_MARK.sub("", text)
    if _is_row(text):
        return f"{text}[{candidate.number}]"
    if not _ENDED.search(text):
        text = text.rstrip(",;:，；：、") + ("。" if detect_language(text) == "zh" else ".")
    return f"{text}[{candidate.number}]"


def _is_row(text: str) -> bool:
    return text.startswith("|")


def _join(sentences: list[str]) -> str:
    """Sentences side by side, rows of a table on lines of their own."""
    text = ""
    for before, part in zip(["", *sentences], sentences, strict=False):
        rows = _is_row(before) or _is_row(part)
        blank = "" if not before else "\n" if rows else "" if detect_language(part) == "zh" else " "
        text += blank + part
    return text
