"""What the writer of a conversation says about themselves, and questions to ask next."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_kit.models.extractive.answering import extract_answer
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.text import detect_language, fold, sentences
from rag_kit.text.evidence.questions import terms

_MAX_FACTS, _MAX_FACT_CHARS, _MAX_TRIED = 8, 200, 12
_CLAUSE = re.compile(r"[^.!?;,\n。！？；，]+[?？]?")
_SAID = re.compile(
    r"\b(?:my name is|call me|i live in|i(?: a|')m (?:from|an?|based in)\b|i come from|i work (?:at|for|as|in|on)"
    r"|i (?:own|drive|speak|prefer|usually use|always use)\b|remember that i\b"
    r"|my (?:name|role|job|company|team|department|city|country|language|model|device|printer|machine) is)"
    r"|我叫|我是|我住在|我来自|我(?:家)?在.{1,20}(?:工作|上班|上学)|我(?:平时|一直|通常)?用的是|我更?(?:喜欢|习惯)"
    r"|我的(?:名字|职务|公司|部门|城市|型号|设备|语言)是",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？]|吗|呢$|是不是|谁|什么|哪|\b(?:what|who|how|why|whether|if)\b", re.IGNORECASE)
_SECRET = re.compile(
    r"password|passphrase|\bpin\b|\btoken\b|api[ _-]?key|secret|credit card|account number"
    r"|密码|口令|密钥|卡号|账号|身份证",
    re.IGNORECASE,
)
_SUBJECT = {
    "en": re.compile(
        r"^(?!(?:it|he|she|they|this|that|these|those|there|here|we|you|i|who|what|which|its?|one|if|when|in|on|at)\b)"
        r"(?:(?:the|an?|each|every) )?(?P<name>[a-z][\w-]*(?: [\w-]+){0,3}?)"
        r" (?:is|are|was|were|has|have|can|must|starts?|stops?|uses?|needs?|takes?)\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"^(?![它他她这那其该此])(?P<name>[\u3400-\u9fffA-Za-z0-9]{2,12}?)(?:是|位于|有|为|的|在|由|会|可以|应)"
    ),
}
_ABOUT = {"en": "What is {}?", "zh": "{}是什么？"}


def remember_facts(prompt: Prompt) -> dict[str, list[str]]:
    """The clauses in which the writer names their place, role, devices or wishes, as they stand.

    Example:
        >>> remember_facts(Prompt("remember_facts", "I live in Bonn, where can I register my car?"))
        {'facts': ['I live in Bonn']}
    """
    stored = {fold(line.strip(" -")) for line in prompt.block("facts").splitlines()}
    facts: dict[str, str] = {}
    for match in _CLAUSE.finditer(prompt.request):
        clause = " ".join(match.group().split())
        match_of_fact = _SAID.search(clause)
        if match_of_fact and not _ASKS.search(clause) and not _SECRET.search(clause):
            fact = clause[match_of_fact.start() :][:_MAX_FACT_CHARS]
            facts.setdefault(fold(fact), fact)
    return {"facts": [fact for key, fact in facts.items() if key not in stored][:_MAX_FACTS]}


def related_questions(prompt: Prompt) -> dict[str, list[str]]:
    """Questions about subjects of the passages that were not asked for; only those that are answered."""
    earlier = [text for role, text in prompt.turns if role == "user"]
    covered = set(terms("\n".join([prompt.question, prompt.block("answer"), *earlier])))
    room = prompt.number("count", 3)
    questions: list[str] = []
    for tried, name in enumerate(_subjects(prompt)):
        if tried >= _MAX_TRIED or len(questions) >= room:
            break
        keys = set(terms(name))
        question = _ABOUT[prompt.language].format(name)
        if keys - covered and extract_answer(question, prompt.passages):
            covered |= keys
            questions.append(question)
    return {"queries": questions}


def _subjects(prompt: Prompt) -> Iterator[str]:
    """Things that the passages speak of, in the language of the question."""
    for passage in prompt.passages:
        for sentence in sentences(passage.text)[:20]:
            text = sentence.text.strip()
            match = _SUBJECT[prompt.language].search(text)
            if match and detect_language(text) == prompt.language:
                yield match["name"]
