"""The tasks for questions of several facts: comparisons in parts, comparisons and descriptions step by step."""

from __future__ import annotations

import re
from dataclasses import replace

from rag_kit.models.extractive.answer import answer, cite
from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.models.extractive.condense import _topic_en, _topic_zh
from rag_kit.models.extractive.support import strength
from rag_kit.text import detect_language, fold
from rag_kit.text.citations.decline import DECLINED, is_declined
from rag_kit.text.comparisons import entity_queries
from rag_kit.text.evidence.question import analyse
from rag_kit.text.evidence.sentences import choose, collect

_MAX_HOPS = 10
_MAX_SUBQUESTION = 400
_EN_DESCRIBED = re.compile(
    r"\bthe (?P<role>(?:[a-z][\w-]* )?(?:director|author|writer|creator|founder|inventor|composer|singer|producer"
    r"|publisher|developer|designer|architect|owner|manufacturer|president|king|queen|ceo|leader|coach|captain|mayor|husband"
    r"|wife|mother|father|capital|headquarters|discoverer|editor|head|chief))"
    r" of (?P<thing>(?:the )?"
    r"(?:[\"“][^\"”]+[\"”]|[A-Z0-9][\w'’.-]*(?: (?:(?:of|the|and) )?[A-Z0-9][\w'’.-]*)*|[a-z][\w-]*))",
)
_PLACES = ("capital", "headquarters")
_ZH_DESCRIBED = re.compile(
    r"(?P<thing>《[^》]{1,40}》|[\u3400-\u9fffA-Za-z0-9·]{2,16}?)的(?P<role>导演|作者|创始人|创办人"
    r"|发明者|发明人|作曲|主演|制片人"
    r"|开发商|开发者|设计师|设计者|建筑师|老板|制造商|总统|国王|女王|皇帝|首相|总理|校长|市长|教练|队长|丈夫|妻子|母亲|父亲|首都|省会|总部)"
    r"(?=.{2,})"
)
_ZH_PLACES = ("首都", "省会", "总部")
_MEASURES = {
    "longer": "long", "shorter": "long", "taller": "tall", "higher": "high", "lower": "high", "deeper": "deep",
    "wider": "wide", "larger": "large", "bigger": "large", "smaller": "large", "heavier": "heavy",
    "lighter": "heavy", "faster": "fast", "slower": "fast", "hotter": "hot", "colder": "hot", "older": "old",
    "younger": "old", "newer": "old", "farther": "far", "closer": "far",
}  # fmt: skip
_EN_MEASURE = re.compile(rf"\b({'|'.join(_MEASURES)})\b", re.IGNORECASE)
_EN_THAN = re.compile(
    r"^(?:is|are|was|were) (?P<a>(?:the )?[\w'’.-]+(?: [\w'’.-]+){0,5}?) (?:much |any )?\w+er than (?P<b>[^?]{1,60})",
    re.IGNORECASE,
)
_ZH_OPPOSITE = {
    "短": "长",
    "低": "高",
    "小": "大",
    "轻": "重",
    "近": "远",
    "慢": "快",
    "浅": "深",
    "窄": "宽",
}
_ZH_MEASURE = re.compile(
    r"(?:更|还|最|[比].{1,20}?)(?P<adj>[长短高低大小重轻远近快慢深浅宽窄])(?=吗|[？?]|$)"
)
_ZH_THAN = re.compile(
    r"^(?P<a>.{1,20}?)比(?P<b>.{1,20}?)(?:更|还)?[长短高低大小重轻远近快慢深浅宽窄]吗?[？?]?$"
)


def decompose(prompt: Prompt) -> Reply:
    """A question about each thing that is compared; none for a question of another kind.

    Example:
        >>> decompose(Prompt("decompose", "", "Is the Po longer than the Rhine?", (), (), None)).fields
        {'queries': ['How long is the Po?', 'How long is the Rhine?']}
    """
    question = prompt.question.strip()[:_MAX_SUBQUESTION]
    return Reply("", {"queries": _sides(question, detect_language(question) == "zh")}, as_json=True)


def merge_answers(prompt: Prompt) -> Reply:
    """The answers to the parts, one after the other, each once; or the decline sentence."""
    answers = [text for role, text in prompt.turns if role == "assistant" and not is_declined(text)]
    joined = ("" if prompt.language == "zh" else " ").join(dict.fromkeys(answers))
    return Reply(joined or DECLINED[prompt.language])


def next_hop(prompt: Prompt) -> Reply:
    """The next thing to search for: each side of a comparison, or what a description stands for and then the rest.

    A question of another kind is asked as it is, once.

    Example:
        >>> question = "Where was the director of Alien born?"
        >>> next_hop(Prompt("next_hop", "", question, (), (), None)).fields
        {'done': False, 'query': 'Who is the director of Alien?'}
        >>> turns = (("user", "Who is the director of Alien?"), ("assistant", "Ridley Scott directed Alien."))
        >>> next_hop(Prompt("next_hop", "", question, (), turns, None)).fields["query"]
        'Where was Ridley Scott born?'
    """
    asked = [(text, _reply(prompt, at)) for at, (role, text) in enumerate(prompt.turns) if role == "user"]
    query = _next(prompt.question.strip()[:_MAX_SUBQUESTION], asked)
    if any(fold(query) == fold(text) for text, _ in asked):
        query = ""
    return Reply(query, {"done": not query, "query": query}, as_json=True)


def _reply(prompt: Prompt, at: int) -> str:
    """The answer that follows the question at this turn; "" if there is none."""
    role, text = prompt.turns[at + 1] if at + 1 < len(prompt.turns) else ("user", "")
    return "" if role == "user" or is_declined(text) else text


def _next(question: str, asked: list[tuple[str, str]]) -> str:
    chinese = detect_language(question) == "zh"
    if sides := _sides(question, chinese):
        return next((query for query in sides if query not in [text for text, _ in asked]), "")
    match = (_ZH_DESCRIBED if chinese else _EN_DESCRIBED).search(question)
    if match is None or len(match.group()) + 3 >= len(question):
        return question if not asked else ""
    if not asked:
        if chinese:
            return f"{match.group()}{'是哪里' if match['role'] in _ZH_PLACES else '是谁'}？"
        return f"{'What' if match['role'] in _PLACES else 'Who'} is {match.group()}?"
    if len(asked) > 1:
        return ""
    text, reply = asked[0]
    found = _topic_zh(text, reply, person=True) if chinese else _topic_en(text, reply, person=True)
    if not reply or not found or fold(found) in fold(match.group()):
        return question
    return question[: match.start()] + found + question[match.end() :]


def _sides(question: str, chinese: bool) -> list[str]:
    """A question about each thing that is compared: for its measure, where the comparison names one."""
    pairs = entity_queries(question)
    match = (_ZH_THAN if chinese else _EN_THAN).search(question)
    names = [name for name, _ in pairs] or ([match["a"], match["b"].strip()] if match else [])
    measure = (_ZH_MEASURE if chinese else _EN_MEASURE).search(question)
    if not names or measure is None:
        return [query for _, query in pairs] or names
    if chinese:
        adjective = measure["adj"]
        return [f"{name}有多{_ZH_OPPOSITE.get(adjective, adjective)}？" for name in names]
    return [f"How {_MEASURES[measure[1].lower()]} is {name}?" for name in names]


def answer_from_hops(prompt: Prompt) -> Reply:
    """For each sub-question the sentence that answers it best, each with its citation; or the decline sentence.

    Example:
        >>> from rag_kit.text.evidence.passages import PassageText
        >>> texts = ["The Rhine is 1230 km long.", "The Po is 652 km long."]
        >>> passages = tuple(PassageText(i, text) for i, text in enumerate(texts, 1))
        >>> turns = (("user", "How long is the Rhine?"), ("user", "How long is the Po?"))
        >>> answer_from_hops(Prompt("answer_from_hops", "", "Which is longer?", passages, turns, None)).text
        'The Rhine is 1230 km long.[1] The Po is 652 km long.[2]'
    """
    language = prompt.language
    asked = [text for role, text in prompt.turns if role == "user"][:_MAX_HOPS]
    lines: list[str] = []
    for text in asked:
        line = _best(prompt, text)
        if line and line not in lines:
            lines.append(line)
    if not lines:
        whole = answer(replace(prompt, turns=()))
        return whole if not asked or not whole.fields["declined"] else Reply(DECLINED[language])
    return Reply(("" if language == "zh" else " ").join(lines))


def _best(prompt: Prompt, text: str) -> str:
    question = analyse(text[:_MAX_SUBQUESTION])
    found = collect(question, prompt.passages)
    picked = choose(question, found, 1)
    return cite(picked[0]) if picked and strength(question, prompt.passages, found, picked) >= 0.5 else ""
