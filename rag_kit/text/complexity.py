"""Classification of a question by its wording: talk, one search, several, or a question back. English and Chinese."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.comparisons import entity_queries
from rag_kit.text.language import detect_language


class QuestionKind(NamedTuple):
    """Kinds of questions by what they need."""

    intent: str  # "chat" (talk), "question", or "unclear" (what it refers to is unknown)
    complexity: str  # "none" (nothing to look up), "single" (one search) or "multi" (several facts)
    reason: str  # why, in one short sentence, in the language of the question


# intent, complexity, and the reason in English and Chinese
_KINDS = {
    "chat": ("chat", "none", "It is a greeting, or about this conversation.", "这是寒暄，或谈的是对话本身。"),
    "unclear": ("unclear", "single", "It refers to something that was not named.", "所指的对象没有说明。"),
    "comparison": ("question", "multi", "It compares several things.", "它比较几个事物。"),
    "single": ("question", "single", "It asks for one thing.", "它只问一件事。"),
}
_CHAT = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening|day))(?: there| all)?|great|ok(?:ay)?|(?:good)?bye"
    r"|(?:many )?thank(?:s| you)(?: very much| a lot)?|how are you(?: today)?|who are you|what can you do(?: for me)?"
    r"|(?:你|您)好呀?|大家好|(?:早上|下午|晚上)好|(?:非常|多)?(?:谢谢|感谢)(?:你|您)?(?:的帮助)?|好的?|再见|(?:你|您)是谁"
    r"|(?:你|您)(?:会|能)(?:做|干)(?:些)?什么",
    re.IGNORECASE,
)
_ENDS = " \t\n.!?,;:。！？，、；：~～…)("
_REPLY = re.compile(r"[(（][^()（）]+[)）]\s*$")
_POINTER = re.compile(
    r"\b(?:he|she|him|her|his|hers|they|them|theirs?|its?)\b|\bthe (?:former|latter|other one|same)\b"
    r"|\b(?:this|that|these|those)(?=\s*(?:[?.!,]|$|(?:ones?|is|was|are|were|do|does|did|mean|work)\b))"
    r"|^(?:那么?|请问)?[，,]?(?:[它他她]们?|[这那](?:个|种|些|件|款|家|位|本|部|里|(?=[是有在怎什多为]))|前者|后者)",
    re.IGNORECASE,
)
# an English name, letters in capitals or inside Chinese text, a figure, what is quoted
_NAMED = re.compile(
    r"(?<=\S )[A-Z][\w'’-]*[a-z]|\b[A-Z]{2,}\w*|\d|[\"“「《『]"
    r"|(?<=[\u3400-\u9fff])[A-Za-z]{2,}|[A-Za-z]{2,}(?=[\u3400-\u9fff])"
)
_FRAGMENT = re.compile(
    r"(?:and|but|or|so|then)\b.{0,25}|(?:what|how) about\b.{0,25}|tell me more|那么?.{0,8}呢|然后呢|还有吗|继续",
    re.IGNORECASE,
)
_MAX_CHARS, _MAX_TALK = 500, 100  # the patterns look no further, so that no text keeps them busy


def question_kind(question: str, *, has_history: bool = False) -> QuestionKind:
    """Classify a question by what it needs.

    Talk is known by its wording as a whole. What points back without a history to point to is unclear. What compares
    several things needs several facts. All else asks for one thing; a question whose hidden steps do not show in its
    words is not noticed. One that ends with a remark in brackets has been made clear by it, and with a history it may
    refer to that.

    Example:
        >>> question_kind("Hello!").complexity
        'none'
        >>> question_kind("When does it start?").intent
        'unclear'
        >>> question_kind("When does it start?", has_history=True).complexity
        'single'
        >>> [question_kind(q).complexity for q in ("What is the difference between BM25 and SPLADE?", "谁写了《家》？")]
        ['multi', 'single']
    """
    text = " ".join(question[:_MAX_CHARS].split())
    parts = [part.strip(_ENDS) for part in re.split(r"[.!?,;。！？，；~～]+", text[:_MAX_TALK])]
    parts = [part for part in parts if part]
    if parts and all(map(_CHAT.fullmatch, parts)):
        name = "chat"
    elif not has_history and not _REPLY.search(text) and points_back(text):
        name = "unclear"
    else:
        name = "comparison" if entity_queries(text) else "single"
    intent, complexity, english, chinese = _KINDS[name]
    return QuestionKind(intent, complexity, chinese if detect_language(text) == "zh" else english)


def points_back(question: str, max_words: int = 2) -> bool:
    """Tell whether a question points at something it does not name, or names nothing to search for.

    Args:
        question: The question.
        max_words: Most content words; a pronoun in a longer question is taken to stand for one of its words.

    Example:
        >>> [points_back(text) for text in ("When does it start?", "And in 2020?", "Does Ada know that she won?")]
        [True, True, False]
    """
    text = " ".join(question[:_MAX_CHARS].split())
    words = content_words(text.strip(_ENDS))
    if not words or _FRAGMENT.fullmatch(text.strip(_ENDS)):
        return True
    return len(words) <= max_words and _POINTER.search(text) is not None and not _NAMED.search(text)
