"""The tasks ``generate_single_hop``, ``generate_multi_hop`` and ``generate_check``: questions by rule.

A sentence of a known form is turned round: "The pump was built in 1912 by Ada" asks when it was built, and by whom.
Of other sentences with a date, a number or a name, that is left out as a gap to fill. Simple questions, near to the
words of the passage; each is answered by its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rag_kit.models.extractive.answer import answer
from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text import detect_language, sentences
from rag_kit.text.evidence.passages import PassageText
from rag_kit.text.evidence.terms import terms

_MAX_SENTENCES = 60
_USUAL = 1
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = rf"(?:(?:\d{{1,2}} )?{_MONTH}(?: \d{{1,2}},)? )?[12]\d{{3}}"
_NP = r"(?P<np>(?:(?:The|An?) )?[A-Z][\w'’-]*(?: [\w'’-]+){0,5}?)"
_PAST = (
    r"(?P<verb>\w+ed|built|made|born|founded|written|won|held|begun|sent|sold|known|drawn|given|taken|set up)"
)
_NAME = r"[A-Z][\w'’.-]+(?: (?:of|the|de|von|van|[A-Z][\w'’.-]*))*"
_BASE = {"opened": "open", "closed": "close", "began": "begin", "started": "start", "ended": "end", "died": "die",
         "appeared": "appear"}  # fmt: skip
_EN: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(rf"^{_NP} (?P<be>was|were) {_PAST}(?P<rest>(?: (?:by|in|at|for|from) {_NAME})?)"
                r" (?:in|on) "
                rf"(?P<a>{_DATE})\b"),
     lambda m: f"When {m['be']} {_low(m['np'])} {m['verb']}{m['rest']}?"),
    (re.compile(rf"^{_NP} (?P<be>was|were) {_PAST}(?: (?:in|on) {_DATE})? by (?P<a>(?:the )?{_NAME})"),
     lambda m: f"By whom {m['be']} {_low(m['np'])} {m['verb']}?"),
    (re.compile(rf"^{_NP} (?P<be>is|are|was|were) (?:located|situated) (?:in|on|at) (?P<a>(?:the )?{_NAME})"),
     lambda m: f"Where {m['be']} {_low(m['np'])} located?"),
    (re.compile(rf"^{_NP} (?P<verb>opened|closed|began|started|ended|died|appeared) (?:in|on) (?P<a>{_DATE})\b"),
     lambda m: f"In which year did {_low(m['np'])} {_BASE[m['verb']]}?"),
    (re.compile(rf"^{_NP} (?P<be>is|are|was|were) (?P<a>an? [^,.;:()\[\]]{{8,90}}?)(?<! of)"
                r"(?=,|[.;](?:\s|$)| which| that| who)"),
     lambda m: f"What {m['be']} {_low(m['np'])}?"),
)  # fmt: skip
_HAN = r"[\u3400-\u9fffA-Za-z0-9·《》“”]"
_HNP = rf"(?P<np>{_HAN}{{2,16}}?)"
_HDATE = r"(?:(?:公元前?)?\d{1,4}年(?:\d{1,2}月)?(?:\d{1,2}日)?|\d{1,2}世纪)"
_ZH: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(rf"^{_HNP}(?P<verb>始建|建立|建成|建|成立|创立|创建|创办|出生|生|逝世|发布|发行|开始|开通|完成)于(?P<a>{_HDATE})"),
     lambda m: f"{m['np']}{m['verb']}于什么时候？"),
    (re.compile(rf"^{_HNP}于(?P<a>{_HDATE})(?P<verb>成立|建成|出生|逝世|发布|开通|开业|创立|发行|上映|竣工)"),
     lambda m: f"{m['np']}是什么时候{m['verb']}的？"),
    (re.compile(rf"^{_HNP}位于(?P<a>{_HAN}{{2,24}}?)(?=[，。；、]|$)"), lambda m: f"{m['np']}位于哪里？"),
    (re.compile(rf"^{_HNP}由(?P<a>{_HAN}{{2,16}}?)(?P<verb>设计|建造|创立|创办|编写|发明|制作|执导|出版|开发|建立)"),
     lambda m: f"{m['np']}由谁{m['verb']}？"),
    (re.compile(rf"^{_HNP}是(?P<a>{_HAN}{{0,8}}?一[个种座位家所部条名类届场项片支艘款门]{_HAN}{{2,40}}?)(?=[，。；])"),
     lambda m: f"{m['np']}是什么？"),
)  # fmt: skip
#: What a gap may hide: a date, a number with what it counts, a name of several words after a preposition.
_UNIT = "(?: (?:percent|per cent|million|billion|years|people|kilometres|km|miles|metres))?%?"
_EN_GAP = re.compile(
    rf"(?: (?={_DATE}|[$\d])| (?:by|in|at|from|with|of) )"
    rf"(?P<a>{_DATE}|\$?\d[\d,.]*\d{_UNIT}|[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)+)(?=[ ,.;)])"
)
_ZH_GAP = re.compile(
    rf"(?P<a>{_HDATE}|\d[\d,.]*[万亿]?(?:%|％|[人个次名座米公里元票岁年]+)|《[^》]{{2,20}}》|“[^”]{{2,12}}”)"
)
_GAP = "____"
# rows of tables, code and its output, marks of citations, addresses: nobody asks for a gap in those
_NO_PROSE = re.compile(r"[|`{}<>\\]|^\s*(?:#|\$|//)|[-=]>|\[\d+\]|://|\w\(")
_EN_VAGUE = re.compile(
    r"^(?:it|he|she|they|this|that|these|those|there|here|we|you|i|who|what|which|one|if|when|in|on|at|its?|his|her"
    r"|their|but|and|however|also|then|after|before|during|since|for|as|by|from|with|most|many|some|all|both)\b",
    re.IGNORECASE,
)
_ZH_VAGUE = re.compile(
    r"^(?:[它他她这那其该此本]|但|而|并|也|又|在|从|对|因|如|当|后|前|同时|此外|另外|目前|现在|如今|有)"
)


def generate_single_hop(prompt: Prompt) -> Reply:
    """Questions from sentences of one passage, each subject once.

    Example:
        >>> passage = PassageText(1, "The Mizar pump was built in 1912. It is loud.")
        >>> reply = generate_single_hop(Prompt("generate_single_hop", "", "", (passage,), (), None))
        >>> reply.fields["questions"][0]["question"], reply.fields["questions"][0]["answers"]
        ('When was the Mizar pump built?', ['1912'])
    """
    found = [each for passage in prompt.passages[:1] for each in _asked(passage)][: _room(prompt)]
    return Reply(f"{len(found)} questions", {"questions": found}, as_json=True)


def generate_multi_hop(prompt: Prompt) -> Reply:
    """A question for each passage, on different subjects, joined into one with an answer of two parts."""
    first, second = (
        [*_asked(passage)] for passage in (*prompt.passages[:2], *([PassageText(0, "")] * 2))[:2]
    )
    found = []
    for one in first:
        for other in second:
            passage_terms = terms("\n".join(passage.text for passage in prompt.passages[:1]))
            if set(other["answers"]) & set(one["answers"]) or not set(terms(other["question"])) - set(
                passage_terms
            ):
                continue
            chinese = one["question"].endswith("？")
            joined = (
                f"{one['question'][:-1]}，{other['question']}"
                if chinese
                else f"{one['question'][:-1]}, and {other['question'][:1].lower()}{other['question'][1:]}"
            )
            found.append(
                {
                    "question": joined,
                    "answers": [*one["answers"], *other["answers"]],
                    "reference": f"{one['reference']}{'' if chinese else ' '}{other['reference']}",
                    "quotes": [*one["quotes"], *other["quotes"]],
                }
            )
            break
    found = found[: _room(prompt)]
    return Reply(f"{len(found)} questions", {"questions": found}, as_json=True)


def generate_check(prompt: Prompt) -> Reply:
    """The passages asked by the task ``answer``, each by itself; a passage is needed where it answers a part.

    This model cannot tell whether a question stands alone; what can be seen of its form is looked at elsewhere.
    """
    parts = []
    for passage in prompt.passages:
        reply = answer(replace(prompt, passages=(passage,)))
        if not reply.fields["declined"]:
            parts.append(str(reply.fields["answer"]))
    answerable = bool(parts)
    fields: dict[str, Any] = {
        "answerable": answerable,
        "answer": " ".join(parts)[:4000],
        "stands_alone": True,
        "needs_all": len(parts) == len(prompt.passages),
        "reason": f"{len(parts)} of {len(prompt.passages)} passages share the question's words.",
    }
    return Reply(fields["reason"], fields, as_json=True)


def _asked(passage: PassageText) -> Iterator[dict[str, Any]]:
    """Sentences turned round first; then those that can only be given with a gap."""
    seen: set[str] = set()
    gaps: list[dict[str, Any]] = []
    for sentence in sentences(passage.text)[:_MAX_SENTENCES]:
        text = sentence.text.strip()
        chinese = detect_language(text) == "zh"  # an English sentence may quote a Chinese word
        if len(text) > 500 or (_ZH_VAGUE if chinese else _EN_VAGUE).match(text):
            continue
        for pattern, ask in _ZH if chinese else _EN:
            match = pattern.search(text)
            if match is not None and match["np"] not in seen:
                seen.add(match["np"])
                yield _item(ask(match), match["a"], text)
                break
        else:
            gaps += _with_gap(text, chinese)
    yield from gaps


def _with_gap(text: str, chinese: bool) -> list[dict[str, Any]]:
    """A sentence that says enough to be known again, without its date, number or name."""
    least, most = (16, 80) if chinese else (50, 160)
    match = (_ZH_GAP if chinese else _EN_GAP).search(text)
    if not least <= len(text) <= most or "\n" in text or match is None or text.count(match["a"]) > 1:
        return []
    if _NO_PROSE.search(text):
        return []
    gapped = f"{text[: match.start('a')]}{_GAP}{text[match.end('a') :]}".replace('"', "'")
    question = f"“{gapped}”，空缺处是什么？" if chinese else f'What belongs in the gap: "{gapped}"?'
    return [_item(question, match["a"], text)]


def _item(question: str, answer: str, text: str) -> dict[str, Any]:
    return {"question": question, "answers": [answer.strip()], "reference": text, "quotes": [text]}


def _room(prompt: Prompt) -> int:
    most = prompt.block("count")
    return int(most) if most.isascii() and most.isdigit() and len(most) < 3 else _USUAL


def _low(name: str) -> str:
    """A subject within a question: its article loses the capital."""
    return re.sub(r"^(?:The|An?)(?= )", lambda m: m[0].lower(), name)
