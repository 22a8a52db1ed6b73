"""The task ``remember_facts``: what a message says about its writer, by its wording."""

from __future__ import annotations

import re

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text import fold

MAX_FACTS = 8
_MAX_CHARS = 200
_CLAUSE = re.compile(r"[^.!?;,\n。！？；，]+[?？]?")
_OWN = r"name|role|job|company|team|department|city|country|language|model|device|printer|machine"
_SAID = re.compile(
    r"\b(?:my name is|call me|i live in|i(?: a|')m (?:from|an?|based in)\b|i come from|i work (?:at|for|as|in|on)"
    r"|i (?:own|drive|speak|prefer|usually use|always use)\b|remember that i\b"
    rf"|my (?:{_OWN}) is)"
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


def remember_facts(prompt: Prompt) -> Reply:
    """The clauses in which the writer names their place, role, devices or wishes, as they stand.

    Example:
        >>> message = "I live in Bonn, where can I register my car?"
        >>> remember_facts(Prompt("remember_facts", "", message, (), (), None)).fields
        {'facts': ['I live in Bonn']}
        >>> remember_facts(Prompt("remember_facts", "", "Who am I?", (), (), None)).fields
        {'facts': []}
    """
    known = {fold(line.strip(" -")) for line in prompt.block("facts").splitlines()}
    facts: list[str] = []
    for match in _CLAUSE.finditer((prompt.question or prompt.user)[:4000]):
        clause = " ".join(match.group().split())
        said = _SAID.search(clause)
        if not said or _ASKS.search(clause) or _SECRET.search(clause):
            continue
        fact = clause[said.start() :][:_MAX_CHARS]
        if fold(fact) not in known:
            known.add(fold(fact))
            facts.append(fact)
    facts = facts[:MAX_FACTS]
    return Reply("\n".join(facts), {"facts": facts}, as_json=True)
