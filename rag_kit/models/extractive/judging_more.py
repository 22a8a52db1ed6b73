"""The tasks of a judge of things named, goals, topics, queries and scales: by words alone.

Names are capitalised words, quoted titles, numbers with their unit and what the Chinese dictionary marks as a name; two
outcomes are the same where their words are; a query is the same where its spelling is. Paraphrase it does not see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rag_kit.models.extractive.blocks import MAX_PASSAGE_CHARS, Prompt
from rag_kit.models.extractive.judging import stated
from rag_kit.models.extractive.names import names
from rag_kit.models.extractive.tasks import Reply
from rag_kit.prompts import unescape_tags
from rag_kit.text import content_words, detect_language, fold
from rag_kit.text.citations import is_declined
from rag_kit.text.citations.match import Source, judge

_MOST_TOPICS = 20
_MOST_ITEMS = 1_000
_SAME = 0.6
"""Share of the words of what was wanted that what was reached must hold."""
_TOPIC_WORDS = 8
_LEVEL = re.compile(r"<level score=\"(-?\d{1,3})\">")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_REFUSES = re.compile(
    r"\b(?:cannot|can't|could not|couldn't|unable to|not able to|not allowed to|must not|won't|will not|refuse to)\b"
    r"[^.!?]{0,30}?\b(?:help|talk|discuss|answer|assist|say|advise|comment|provide|give|speak)"
    r"|\b(?:only|just) (?:help|talk|answer|assist)|\bnot (?:my|our) (?:field|topic|area|responsibility)"
    r"|(?:无法|不能|不便|不可以|没法|拒绝)[^。！？]{0,16}?(?:回答|讨论|谈论|提供|帮|评论|说)|只能(?:回答|讨论|谈)|不在[^。！？]{0,10}范围",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"\b(?:fail(?:ed|s)?|error|could not|couldn't|cannot|can't|unable|sorry|unfortunately|not available|no results?)\b"
    r"|失败|出错|错误|无法|不能|未能|没能|没有找到|抱歉|很遗憾",
    re.IGNORECASE,
)
_SQL_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|[\w.]+|<>|!=|<=|>=|[^\s\w]")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_ALIAS = re.compile(r"(?<=[\w)]) as \w+", re.IGNORECASE)

_SAID = {
    "en": {
        "goal": "Nothing was asked.", "end": "Nothing was reached.", "same": "It holds {:.0%} of the words.",
        "failed": "It says that it failed.", "number": "A number differs.", "query": "It reads: {}",
        "level": "{:.0%} of it is supported by words.",
    },
    "zh": {
        "goal": "没有提出要求。", "end": "没有结果。", "same": "含有其中 {:.0%} 的词语。",
        "failed": "文中说明没有成功。", "number": "数字不同。", "query": "查询为：{}",
        "level": "有 {:.0%} 的内容找得到依据。",
    },
}  # fmt: skip


def judge_entities(prompt: Prompt) -> Reply:
    """The names in a text."""
    found = names(prompt.block("text")[:MAX_PASSAGE_CHARS])
    return Reply("\n".join(found), {"entities": found}, as_json=True)


def judge_groundedness(prompt: Prompt) -> Reply:
    """2 where every statement is supported, 1 where one is, else 0."""
    share = _supported(prompt.block("response"), prompt.block("context"))
    rating = 2 if share == 1 else int(share > 0)
    return Reply(str(rating), {"rating": rating}, as_json=True)


def judge_goal(prompt: Prompt) -> Reply:
    """What the user said, and what the last turns say."""
    said = _SAID[prompt.language]
    asked = [text for role, text in prompt.turns if role == "user" and len(content_words(text)) > 1]
    done = [text for role, text in prompt.turns if role != "user" and text.strip()]
    goal = " ".join(asked)[:2000] or said["goal"]
    end = (done[-1] if done else "")[:2000] or said["end"]
    return Reply(end, {"user_goal": goal, "end_state": end}, as_json=True)


def judge_outcome(prompt: Prompt) -> Reply:
    """Whether what was reached holds the words and numbers of what was wanted, and does not say that it failed."""
    desired, arrived = prompt.block("desired"), prompt.block("arrived")
    said = _SAID[detect_language(desired)]
    share = _share(desired, arrived)
    if _FAILS.search(arrived) and not _FAILS.search(desired):
        reason, good = said["failed"], False
    elif set(_NUMBER.findall(fold(desired))) - set(_NUMBER.findall(fold(arrived))):
        reason, good = said["number"], False
    else:
        reason, good = said["same"].format(share), share >= _SAME
    return Reply(reason, {"reason": reason, "verdict": int(good)}, as_json=True)


def judge_topics(prompt: Prompt) -> Reply:
    """Each user turn of more than one content word, by its first few."""
    found = []
    for role, text in prompt.turns:
        if role == "user" and len(content_words(text)) > 1:
            found.append(_short(text))
    topics = list(dict.fromkeys(found))[:_MOST_TOPICS]
    return Reply("\n".join(topics), {"topics": topics}, as_json=True)


def judge_refusal(prompt: Prompt) -> Reply:
    """Whether the assistant's turn after the user's turn on the topic declines."""
    topic, place, best = prompt.block("topic"), 0, 0.0
    for number, (role, text) in enumerate(prompt.turns):
        share = _share(topic, text) if role == "user" else 0.0
        if share > best:
            place, best = number, share
    reply = ""
    for role, text in prompt.turns[place + 1 :]:
        if role == "user":
            break
        if role == "assistant":
            reply = text
    refused = not reply.strip() or is_declined(reply) or _REFUSES.search(reply[:1000]) is not None
    return Reply(str(refused), {"refused_to_answer": refused}, as_json=True)


def judge_topic_match(prompt: Prompt) -> Reply:
    """A topic is allowed where it shares a content word with an allowed one."""
    allowed = {word for text in _items(prompt.body, "reference_topics") for word in content_words(text)}
    found = [
        {"topic": text, "allowed": bool(allowed & set(content_words(text)))}
        for text in _items(prompt.body, "topics")
    ]
    return Reply(f"{len(found)} sorted", {"classifications": found}, as_json=True)


def judge_sql(prompt: Prompt) -> Reply:
    """Whether two queries are the same but for case, white space, aliases and the spelling of true."""
    mine, gold = prompt.block("response"), prompt.block("reference")
    said = _SAID["en"]["query"]
    fields = {
        "response_explanation": said.format(" ".join(mine.split())[:300]),
        "reference_explanation": said.format(" ".join(gold.split())[:300]),
        "equivalent": _query(mine) == _query(gold),
    }
    return Reply(str(fields["equivalent"]), fields, as_json=True)


def judge_rubric(prompt: Prompt) -> Reply:
    """The level by the share of the answer that reference and passages support; else by its question's words."""
    scores = sorted({int(score) for score in _LEVEL.findall(_raw(prompt.body, "rubric"))}) or [1, 5]
    answer, reference = prompt.block("answer"), prompt.block("reference")
    source = "\n".join(filter(None, (reference, prompt.block("context"))))
    if not answer.strip() or is_declined(answer):
        share = 0.0
    elif reference.strip():
        share = (_share(reference, answer) + _supported(answer, source)) / 2
    elif source.strip():
        share = _supported(answer, source)
    else:
        share = _share(prompt.question, answer)
    place = min(len(scores) - 1, round(share * (len(scores) - 1)))
    feedback = _SAID[prompt.language]["level"].format(share)
    return Reply(feedback, {"feedback": feedback, "score": scores[place]}, as_json=True)


def _supported(answer: str, context: str) -> float:
    """Share of an answer's statements that a text supports."""
    wanted = stated(answer)
    if not wanted or not context.strip():
        return 0.0
    source = Source(context[:MAX_PASSAGE_CHARS])
    return sum(judge(one, [source])[0].status == "supported" for one in wanted) / len(wanted)


def _share(wanted: str, text: str) -> float:
    """Share of the content words of one text that another holds."""
    words = set(content_words(wanted[:4000]))
    return len(words & set(content_words(text[:MAX_PASSAGE_CHARS]))) / len(words) if words else 0.0


def _short(text: str) -> str:
    text = " ".join(text.split())[:300].rstrip(" .。!！?？")
    if detect_language(text) == "zh":
        return text[:40]
    return " ".join(text.split()[: 2 * _TOPIC_WORDS])


def _query(text: str) -> list[str]:
    """The tokens of a query in one spelling; strings and quoted names keep their case."""
    plain = _ALIAS.sub("", _COMMENT.sub(" ", text[:MAX_PASSAGE_CHARS])).strip().rstrip("; \n")
    return list(_spelled(_SQL_TOKEN.findall(plain)))


def _spelled(tokens: Iterable[str]) -> Iterator[str]:
    spelling = {"true": "1", "false": "0", "!=": "<>"}
    for token in tokens:
        if token[0] == "'":
            yield token
        else:
            token = token.strip('"`').lower()
            yield spelling.get(token, token)


def _raw(body: str, block: str) -> str:
    """A block as it stands, still escaped, so that no text inside can pass for a tag."""
    start = body.find(f"<{block}>")
    end = body.find(f"</{block}>", start)
    return body[start:end] if 0 <= start < end else ""


def _items(body: str, block: str) -> list[str]:
    found = re.findall(r"<topic(?: id=\"\d{1,6}\")?>([^<]*(?:<(?!/topic>)[^<]*)*)</topic>", _raw(body, block))
    return [unescape_tags(text, ["topic"]).strip() for text in found[:_MOST_ITEMS]]
