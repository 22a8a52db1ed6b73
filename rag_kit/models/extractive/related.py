"""The task ``related_questions``: subjects of the passages that were not asked for, each seen to be answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from rag_kit.models.extractive.answer import answer
from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text import detect_language, sentences
from rag_kit.text.evidence.terms import terms

_MAX_TRIED = 12
_USUAL = 3
_EN_SUBJECT = re.compile(
    r"^(?:(?:The|An?|Each|Every) )?(?P<name>[A-Za-z][\w-]*(?: [\w-]+){0,3}?)"
    r" (?:(?P<is>is|are)|was|were|has|have|can|must|starts?|stops?|uses?|needs?|takes?)\b"
)
_ZH_SUBJECT = re.compile(
    r"^(?P<name>[\u3400-\u9fffA-Za-z0-9]{2,12}?)(?:(?P<is>是)|位于|有|为|的|在|由|会|可以|应)"
)
_PRONOUN = re.compile(
    r"^(?:it|he|she|they|this|that|these|those|there|here|we|you|i|who|what|which|its?|one|if|when|in|on|at)\b"
    r"|^[它他她这那其该此]",
    re.IGNORECASE,
)


def related_questions(prompt: Prompt) -> Reply:
    """Ask about what the passages speak of besides; only what the task ``answer`` does not decline is offered.

    Example:
        >>> from rag_kit.text.evidence.passages import PassageText
        >>> text = "The pump starts at 40 degrees. The relief valve is a spring that opens at 3 bar."
        >>> prompt = Prompt("related_questions", "", "When does the pump start?", (PassageText(1, text),), (), None)
        >>> related_questions(prompt).fields
        {'queries': ['What is relief valve?']}
    """
    most = prompt.block("count")
    room = int(most) if most.isascii() and most.isdigit() and len(most) < 3 else _USUAL
    known = set(terms(f"{prompt.question}\n{prompt.block('answer')}"))
    for role, text in prompt.turns:
        known |= set(terms(text)) if role == "user" else set()
    found: list[str] = []
    for tried, (name, question) in enumerate(_candidates(prompt)):
        keys = set(terms(name))
        if tried >= _MAX_TRIED or len(found) >= room:
            break
        if not keys or keys <= known:
            continue
        if not answer(replace(prompt, question=question, turns=())).fields["declined"]:
            known |= keys
            found.append(question)
    return Reply("\n".join(found), {"queries": found}, as_json=True)


def _candidates(prompt: Prompt) -> Iterator[tuple[str, str]]:
    """Things that the passages speak of, each with a question; in the order of the passages."""
    chinese = prompt.language == "zh"
    for passage in prompt.passages:
        for sentence in sentences(passage.text)[:20]:
            text = sentence.text.strip()
            if (detect_language(text) == "zh") != chinese or _PRONOUN.search(text):
                continue
            match = (_ZH_SUBJECT if chinese else _EN_SUBJECT).search(text)
            if not match:
                continue
            name = match["name"]
            if chinese:
                yield name, f"{name}是什么？" if match["is"] else f"关于{name}，文档里写了什么？"
            else:
                yield name, f"What is {name}?" if match["is"] else f"What is said about {name}?"
