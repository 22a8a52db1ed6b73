"""The task ``condense``: a follow-up question made complete by rule, from the conversation before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text import detect_language, sentences
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.evidence.terms import question_terms

MAX_TURNS = 20
MAX_QUERY = 1000
_MAX_TOPIC = 80

_YEAR = re.compile(r"\b(?:1\d|20)\d{2}\b|(?<!\d)(?:1\d|20)\d{2}(?=年)")
_MARKS = re.compile(r"\s?[\[［【]\d[^\]］】]{0,20}[\]］】]")

_PERSON = re.compile(r"\b(?:he|she|him|his|her|hers)\b", re.IGNORECASE)
_PRONOUN = re.compile(
    r"\b(?P<own>its|his|their|theirs|hers|her(?= [a-z]))\b|\b(?P<it>it|he|she|they|them|him|her)\b"
    r"|\b(?P<this>(?:this|that|these|those)(?= (?:one|ones)\b)(?: ones?)?"
    r"|(?:this|that|these|those)(?=\s*(?:[?.!,]|$|is\b|was\b|are\b|were\b|has\b|do\b|does\b|did\b)))",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:there|then|former|latter|above|this|that|these|those|same|second one|first one|other one)\b",
    re.IGNORECASE,
)
_FRAGMENT = re.compile(
    r"^\s*(?:and\b|but\b|or\b|so\b|also\b|what about\b|how about\b|why\s*(?:not)?\s*\?*$|when\s*\?*$|where\s*\?*$"
    r"|who\s*\?*$|how(?: so)?\s*\?*$|how (?:many|much|long|often)\s*\?*$|since when\b|which (?:one|ones)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^\s*(?:and|but|or|so|also)?\s*(?:what about|how about|and|also)\s+(?:in\s+|for\s+)?", re.IGNORECASE
)
_NAME = re.compile(
    r"(?:[A-Z][\w'’.-]*|\d+(?:\.\d+)*)(?: (?:(?:of|the|de|von|van|der|la|le|and|for|&)(?= [A-Z]) ?)*[A-Z0-9][\w'’.-]*)*"
)
_PHRASE = re.compile(
    r"\b(?:of|about|is|are|was|were|does|do|did|the|a|an)\s+"
    r"((?:the |a |an )?[a-z][\w-]*(?: [a-z][\w-]*){0,3})\s*[?.!]?\s*$"
)
_STARTER_WORDS = (
    "what which who whom whose when where why how is are was were do does did can could will would should has have "
    "the a an in on at of for to from it he she they this that these those and but i please tell"
)
_STARTERS = frozenset(_STARTER_WORDS.split())

_ZH_PRONOUN = re.compile(
    r"(?P<own>其(?=[\u3400-\u9fff])(?![中他实余次它间]))|它们|他们|她们|[它他她]|(?:这|那)(?:个|种|本|部|位|家|款|项|件)(?![月年天日])|该(?=[\u3400-\u9fff])"
)
_ZH_INSIDE = re.compile(r"[\u3400-\u9fff]{2,}[和与及跟同、]$|[\u3400-\u9fff]{3,}[^\u3400-\u9fff]*[，,]")
_ZH_BACK = re.compile(r"那里|这里|那儿|这儿|当时|那时|前者|后者|上面|上述|刚才|第[一二三两]个")
_ZH_PERSON = re.compile(r"[他她]")
_ZH_FRAGMENT = re.compile(
    r"^(?:那么?|还有|以及|另外|然后)|呢[？?]?$|^(?:为什么|为何|怎么样?|何时|哪里|谁|多少|什么时候)[呢？?]*$"
)
_ZH_QUOTED = re.compile(r"[《「『“]([^》」』”]{1,40})[》」』”]")
_ZH_ASK = re.compile(
    r"的|是|有|在|叫|位于|什么|哪|谁|多少|几|如何|怎么|怎样|为何|为什么|何时|请问|吗|呢|了|由|被|能|可以|会|属于|于|[，。？！、,?!；：\s]"
)


def condense(prompt: Prompt) -> Reply:
    """Rewrite the question of the prompt so that it can be understood without the history.

    A question that stands alone passes unchanged. A pronoun takes the last topic; a fragment ("And in 2020?") takes
    over the question before it, with its year or number replaced.

    Example:
        >>> turns = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen wrote it.[1]"))
        >>> condense(Prompt("condense", "", "When did she die?", (), turns, None)).fields
        {'query': 'When did Jane Austen die?'}
        >>> turns = (("user", "《家》是谁写的？"), ("assistant", "巴金。[1]"))
        >>> condense(Prompt("condense", "", "他哪年去世的？", (), turns, None)).fields
        {'query': '巴金哪年去世的？'}
    """
    question = (prompt.question or prompt.user).strip()
    query = stand_alone(question, prompt.turns)
    return Reply(query, {"query": query}, as_json=True)


def stand_alone(question: str, turns: Sequence[tuple[str, str]]) -> str:
    """The question made complete with the topic of the turns.

    Args:
        question: The latest question.
        turns: ``(role, text)``, oldest first; the last MAX_TURNS count. Earlier questions of the user are
            completed in turn, so that a chain of follow-ups keeps its topic.
    """
    asked = reply = ""
    for role, text in list(turns)[-MAX_TURNS:]:
        if role == "user":
            asked = _complete(text.strip()[:MAX_QUERY], asked, reply)
            reply = ""
        else:
            reply = "" if is_declined(text) else _MARKS.sub("", text)[:MAX_QUERY]
    if len(question) > MAX_QUERY:
        return question
    return _complete(question, asked, reply)[:MAX_QUERY]


def _complete(question: str, asked: str, reply: str) -> str:
    if not question or not asked:
        return question
    return (
        _complete_zh(question, asked, reply)
        if detect_language(question) == "zh"
        else _complete_en(question, asked, reply)
    )


def _complete_en(question: str, asked: str, reply: str) -> str:
    fragment = _FRAGMENT.search(question)
    pronoun = _PRONOUN.search(question)
    names = _names(question)
    if fragment and not (pronoun and len(question_terms(question)) > 1):
        return _carry_over(_LEAD.sub("", question), question, asked)
    if pronoun and not _refers_inside(question, names, pronoun.start()):
        person = _PERSON.search(question) is not None
        topic = _topic_en(asked, reply, person=person)
        if topic:
            return _PRONOUN.sub(lambda m: f"{topic}'s" if m["own"] else topic, question, count=1)
    if _POINTS_BACK.search(question) and not names:
        topic = _topic_en(asked, reply, person=False)
        return _append(question, topic) if topic and topic.casefold() not in question.casefold() else question
    if not question_terms(question):
        return _carry_over(question, question, asked)
    return question


def _complete_zh(question: str, asked: str, reply: str) -> str:
    pronoun = _ZH_PRONOUN.search(question)
    if pronoun and _ZH_INSIDE.search(question[: pronoun.start()]):
        return question
    if pronoun:
        topic = _topic_zh(asked, reply, person=_ZH_PERSON.search(question) is not None)
        if topic and topic not in question:
            return _ZH_PRONOUN.sub(lambda m: f"{topic}的" if m["own"] else topic, question, count=1)
        return question
    if _ZH_FRAGMENT.search(question):
        rest = re.sub(r"^(?:那么?|还有|以及|另外|然后)[，,]?", "", question)
        return _carry_over(re.sub(r"呢?[？?。]*$", "", rest), question, asked)
    if _ZH_BACK.search(question) or not question_terms(question):
        topic = _topic_zh(asked, reply, person=False)
        return f"{topic}：{question}" if topic and topic not in question else question
    return question


def _carry_over(rest: str, question: str, asked: str) -> str:
    """The question before, with the year of the fragment in place of its own; else both, one after the other."""
    new, old = _YEAR.findall(rest), _YEAR.findall(asked)
    if len(new) == 1 and len(old) == 1 and len(question_terms(rest)) <= 2:
        return asked.replace(old[0], new[0])
    gap = "" if detect_language(question) == "zh" else " "
    return f"{asked}{gap}{question}"


def _append(question: str, topic: str) -> str:
    bare = question.rstrip(" ?.!")
    return f"{bare} ({topic}){question[len(bare) :].strip()}"


def _refers_inside(question: str, names: list[str], at: int) -> bool:
    """Whether a name in the same question stands before its pronoun: "Where did Ada live when she died?"."""
    return any(0 <= question.find(name) < at for name in names)


def _names(text: str) -> list[str]:
    found = []
    for match in _NAME.finditer(text):
        words = match.group().split()
        while words and (words[0].casefold() in _STARTERS):
            words = words[1:]
        name = " ".join(words).rstrip(".,")
        if name.endswith(("'s", "’s")):
            name = name[:-2]
        if name and not name[0].isdigit():
            found.append(name)
    return found


def _topic_en(asked: str, reply: str, *, person: bool) -> str:
    """What a pronoun stands for: a person named in the reply, or the subject of the question before."""
    answered = [s.text for s in sentences(reply)][:1]
    asked_names = _names(asked)
    if person and answered:
        new = [name for name in _names(answered[0]) if name.casefold() not in asked.casefold()]
        if new and re.search(r"\bwho|whose\b|\bwhich (?:person|man|woman)", asked, re.IGNORECASE):
            return new[0][:_MAX_TOPIC]
    if asked_names:
        return max(asked_names, key=len)[:_MAX_TOPIC]
    phrase = _PHRASE.search(asked)
    if phrase:
        return phrase[1][:_MAX_TOPIC]
    # No name and no clear phrase: the words of the question that carry its topic, in its own spelling.
    keys = {term.key for term in question_terms(asked) if term.salience >= 1.0}
    words = [
        word for word in re.findall(r"[\w-]+", asked) if {t.key for t in question_terms(f"x {word}")} & keys
    ]
    return " ".join(words)[:_MAX_TOPIC]


def _topic_zh(asked: str, reply: str, *, person: bool) -> str:
    answered = [s.text.strip('。！？!?.“”"') for s in sentences(reply)][:1]
    if person and re.search(r"谁|哪位|何人|什么人", asked) and answered:
        named = re.match(r"[\u3400-\u9fff·•・]{2,12}", answered[0])
        if len(answered[0]) <= 12 and named:
            return answered[0]
        parts = [part for part in _ZH_ASK.split(answered[0]) if len(part) >= 2 and part not in asked]
        if parts:
            return parts[0][:_MAX_TOPIC]
    quoted = _ZH_QUOTED.search(asked)
    if quoted:
        return quoted.group()[:_MAX_TOPIC]
    parts = [part for part in _ZH_ASK.split(asked) if len(part) >= 2]
    return parts[0][:_MAX_TOPIC] if parts else ""
