"""Tasks on a conversation: follow-up questions made complete, summaries, facts about the user, what to ask next."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_kit.models.extractive.answering import MARKS, extract_answer
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.phrases import phrases
from rag_kit.text import detect_language, fold, sentences
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.complexity import EMPTY_IT
from rag_kit.text.evidence.questions import question_terms, terms

_MAX_TURNS = 20
_MAX_QUERY = 1000
_MAX_TOPIC = 80
_YEAR = re.compile(r"\b(?:1\d|20)\d{2}\b|(?<!\d)(?:1\d|20)\d{2}(?=年)")
_WHO = re.compile(r"\b(?:who|whose)\b|\bwhich (?:person|man|woman)|谁|哪位|何人|什么人", re.IGNORECASE)
_PERSON = re.compile(r"\b(?:he|she|him|his|her|hers)\b|[他她]", re.IGNORECASE)
_PRONOUN = re.compile(
    r"\b(?P<own>its|his|their|theirs|hers|her(?= [a-z]))\b|\b(?:it|he|she|they|them|him|her)\b"
    r"|\b(?:this|that|these|those)(?: ones?\b|(?=\s*(?:[?.!,]|$|is\b|was\b|are\b|were\b|has\b|do\b|does\b|did\b)))"
    r"|(?P<own_zh>其(?=[\u3400-\u9fff])(?![中他实余次它间]))|它们|他们|她们|[它他她]"
    r"|[这那][个种本部位家款项件](?![月年天日])|该(?=[\u3400-\u9fff])",
    re.IGNORECASE,
)
_FRAGMENT = re.compile(
    r"^\s*(?:and|but|or|so|also|what about|how about|since when|which ones?)\b"
    r"|^\s*(?:why(?: not)?|when|where|who|how(?: so| many| much| long| often)?)\s*\?*$"
    r"|^(?:那么?|还有|以及|另外|然后)|呢[？?]?$|^(?:为什么|为何|怎么样?|何时|哪里|谁|多少|什么时候)[？?]*$",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:there|then|former|latter|above|same|(?:second|first|other) one)\b"
    r"|那里|这里|那儿|这儿|当时|那时|前者|后者|上面|上述|刚才|第[一二三两]个",
    re.IGNORECASE,
)
# before a pronoun of Chinese text: what it may stand for
_INSIDE_ZH = re.compile(r"[\u3400-\u9fff]{2,}[和与及跟同、]$|[\u3400-\u9fff]{3,}[^\u3400-\u9fff]*[，,]")
_QUOTED_ZH = re.compile(r"[《「『“][^》」』”]{1,40}[》」』”]")
_BETWEEN_ZH = re.compile(
    r"的|是|有|在|叫|位于|什么|哪|谁|多少|几|如何|怎么|怎样|为何|为什么|何时|请问|吗|呢|了|由|被|能|可以|会|属于|于|[，。？！、,?!；：\s]"
)
_MAX_FACTS, _MAX_FACT_CHARS, _MAX_TRIED = 8, 200, 12
_CLAUSE = re.compile(r"[^.!?;,\n。！？；，]+[?？]?")
_FACT = re.compile(
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
_WHAT_IS = {"en": "What is {}?", "zh": "{}是什么？"}


def condense(prompt: Prompt) -> dict[str, str]:
    """Rewrite the question of the prompt so that it can be understood without the history.

    A question that stands alone passes unchanged. A pronoun takes the last topic; a fragment ("And in 2020?") takes
    over the question before it, with its year replaced.

    Example:
        >>> turns = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen wrote it.[1]"))
        >>> condense(Prompt("condense", question="When did she die?", turns=turns))
        {'query': 'When did Jane Austen die?'}
        >>> turns = (("user", "《家》是谁写的？"), ("assistant", "巴金。[1]"))
        >>> condense(Prompt("condense", question="他哪年去世的？", turns=turns))
        {'query': '巴金哪年去世的？'}
    """
    previous = reply = ""
    for role, text in prompt.turns[-_MAX_TURNS:]:
        if role == "user":
            # earlier questions are completed in turn, so that a chain of follow-ups keeps its topic
            previous, reply = _complete(text.strip()[:_MAX_QUERY], previous, reply), ""
        else:
            reply = "" if is_declined(text) else MARKS.sub("", text)[:_MAX_QUERY]
    question = prompt.request
    query = question if len(question) > _MAX_QUERY else _complete(question, previous, reply)[:_MAX_QUERY]
    return {"query": query}


def summarise_history(prompt: Prompt) -> str:
    """Each question with the first sentence of its answer, the newest that fit into the block ``max_chars``.

    Example:
        >>> turns = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen.[1] She wrote six novels.[1]"))
        >>> summarise_history(Prompt("summarise_history", turns=turns))
        'Who wrote Emma? Jane Austen.'
    """
    lines: list[str] = []
    for role, text in prompt.turns:
        if role == "summary":
            lines += [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        elif role == "user":
            lines.append(" ".join(text.split()))
        elif lines and not is_declined(text):
            lines[-1] = f"{lines[-1]} {_first_sentence(text)}".strip()
    room = prompt.number("max_chars", 2_000)
    while len(lines) > 1 and sum(len(line) + 1 for line in lines) > room:
        del lines[0]
    return "\n".join(lines)[:room]


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
        fact_match = _FACT.search(clause)
        if fact_match and not _ASKS.search(clause) and not _SECRET.search(clause):
            fact = clause[fact_match.start() :][:_MAX_FACT_CHARS]
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
        question = _WHAT_IS[prompt.language].format(name)
        if keys - covered and extract_answer(question, prompt.passages):
            covered |= keys
            questions.append(question)
    return {"queries": questions}


def topic_of(previous: str, reply: str, *, person: bool) -> str:
    """What a pronoun stands for: a person named in the reply to a question for one, or what the question is about."""
    first = _first_sentence(reply)
    if person and _WHO.search(previous):
        new = [name for name in _names(first) if name.casefold() not in previous.casefold()]
        if new:
            return new[0][:_MAX_TOPIC]
    names = _names(previous)
    # a Chinese question begins with what it is about
    best = names[0] if names and detect_language(previous) == "zh" else max(names, key=len, default="")
    return best[:_MAX_TOPIC]


def _first_sentence(reply: str) -> str:
    """The first sentence of a reply that is no heading, on one line and without marks of citations."""
    texts = (sentence.text for sentence in sentences(MARKS.sub("", reply)))
    return next((" ".join(text.split()) for text in texts if not text.startswith("#")), "")


def _complete(question: str, previous: str, reply: str) -> str:
    """A question that needs no earlier one: with the previous one, or its topic, where it points back to that."""
    if not question or not previous:
        return question
    pronoun = None if EMPTY_IT.search(question) else _PRONOUN.search(question)
    fragment = _FRAGMENT.search(question)
    if fragment and not (pronoun and len(question_terms(question)) > 1):
        return _carry_over(question, previous)
    if pronoun:
        if _has_referent(question[: pronoun.start()]):
            return question
        topic = topic_of(previous, reply, person=_PERSON.search(question) is not None)
        if not topic or topic in question:
            return question
        replacement = f"{topic}'s" if pronoun["own"] else f"{topic}的" if pronoun["own_zh"] else topic
        return question[: pronoun.start()] + replacement + question[pronoun.end() :]
    if _POINTS_BACK.search(question):
        topic = topic_of(previous, reply, person=False)
        return f"{topic}: {question}" if topic and topic.casefold() not in question.casefold() else question
    return question if question_terms(question) else _carry_over(question, previous)


def _carry_over(question: str, previous: str) -> str:
    """The question before, with the year of the fragment in place of its own; else both, one after the other."""
    new, old = _YEAR.findall(question), _YEAR.findall(previous)
    if len(new) == 1 and len(old) == 1 and len(question_terms(question)) <= 2:
        return previous.replace(old[0], new[0])
    return f"{previous}{'' if detect_language(question) == 'zh' else ' '}{question}"


def _has_referent(text: str) -> bool:
    """Whether the words before a pronoun name what it stands for: "Where did Ada live when she died?"."""
    is_name = any(phrase.named for phrase in phrases(text) if phrase.text[:1].isupper())
    return is_name or _INSIDE_ZH.search(text) is not None


def _names(text: str) -> list[str]:
    """Names, or else other words that carry the topic, in order."""
    if detect_language(text) == "zh":
        parts = _BETWEEN_ZH.split(text.strip('。！？!?.“”"'))
        return _QUOTED_ZH.findall(text) or [part for part in parts if len(part) > 1]
    # the first word of a text counts as a name, too, if it has a capital and is not a word of a question
    words = phrases(f" {text}")
    names = [phrase.text for phrase in words if phrase.named and not phrase.text[0].isdigit()]
    return names or [phrase.text for phrase in words]


def _subjects(prompt: Prompt) -> Iterator[str]:
    """Things that the passages speak of, in the language of the question."""
    for passage in prompt.passages:
        for sentence in sentences(passage.text)[:20]:
            text = sentence.text.strip()
            match = _SUBJECT[prompt.language].search(text)
            if match and detect_language(text) == prompt.language:
                yield match["name"]
