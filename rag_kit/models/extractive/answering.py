"""Answers of sentences of the passages, each with its citation, or the decline sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.text.citations.decline import DECLINED
from rag_kit.text.evidence.named import attribute_asked, select_passages
from rag_kit.text.evidence.questions import Question, analyse, terms
from rag_kit.text.evidence.sentences import (
    PassageText,
    SentenceCandidate,
    choose,
    collect,
    drop_distraction,
    is_question,
    weight_of,
)
from rag_kit.text.sentences import append_part, end_sentence
from rag_kit.text.versions import settle_versions

_MAX_SENTENCES = 3
_JUDGED = 2  # sentences by which it is decided whether there is an answer
_MAX_HOPS = 10
# marks of footnotes behind the end of a sentence, and perhaps a quote: 'hot.[3][4, 5]', '”[2]'
_FOOTNOTES = re.compile(
    r"(?<=[.!?。！？…])([\"”’」』)）]?)(?:\s?[\[［【]\s*\d{1,4}(?:\s*[,，、–-]\s*\d{1,4})*\s*[\]］】])+"
)
MARKS = re.compile(r"\s?[\[［【]\d[^\]］】]{0,20}[\]］】]")
_LIST_MARK = re.compile(r"^(?:[-*•·‣]|#{1,6})\s+")
_DOUBT = {
    "en": "I cannot answer the question because of insufficient information in the documents.",
    "zh": "文档信息不足，无法回答该问题。",
}
# fitted by logistic regression on public question sets with and without the passages that answer (docs/decisions/0039)
_WEIGHTS = {
    "passage": 5.7, "passage squared": -7.4, "near": 6.1, "time": 1.1, "score": 5.0, "open": 0.8
}  # fmt: skip
_BIAS = {"en": -8.1, "zh": -6.5}
_USUAL_TIME = 1.5


def answer(prompt: Prompt) -> str:
    """Answer by up to three cited sentences of the passages, under their headings, or by the decline sentence."""
    return extract_answer(prompt.request, prompt.passages, headings=True) or DECLINED[prompt.language]


def answer_or_doubt(prompt: Prompt) -> str:
    """Answer by cited sentences of the passages, or decline in the words that this task's prompt asks for."""
    return extract_answer(prompt.request, prompt.passages, headings=True) or _DOUBT[prompt.language]


def direct_answer(prompt: Prompt) -> str:
    """Decline: this model knows nothing without passages."""
    return DECLINED[prompt.language]


def answer_from_hops(prompt: Prompt) -> str:
    """Answer each sub-question by the sentence that fits it best; without sub-questions, the question."""
    questions = [text for role, text in prompt.turns if role == "user"][:_MAX_HOPS]
    answers = [extract_answer(question, prompt.passages, 1) for question in questions]
    gap = "" if prompt.language == "zh" else " "
    return gap.join(dict.fromkeys(filter(None, answers))) or answer(prompt)


def continue_answer(prompt: Prompt) -> str:
    """Return further sentences that answer, each with a term of the question that the answer lacks; or END."""
    written = prompt.block("answer")
    lacking = analyse(prompt.question).keys - set(terms(written))
    picked = _pick_sentences(prompt.question, prompt.passages, _MAX_SENTENCES)
    new = [sentence for sentence in picked if not written or sentence.matched & lacking]
    texts = [_whole_sentence(sentence.text) for sentence in new[: prompt.number("count", 1)]]
    return " ".join(texts) or "END"


def continue_unaided(prompt: Prompt) -> str:
    """Return END: this model has nothing to say without passages."""
    return "END"


def extract_answer(
    question: str, passages: Sequence[PassageText], count: int = _MAX_SENTENCES, headings: bool = False
) -> str:
    """Answer a question by cited sentences; "" if the passages do not support an answer.

    Sentences of one passage are together, in its order. With ``headings``, if one of the passages has a heading, the
    sentences of each are under its heading, else its title or file name. Those without any come first, because under
    the heading of another passage they would seem to belong to it.
    """
    by_passage: dict[int, list[SentenceCandidate]] = {}
    for sentence in _pick_sentences(question, passages, count):
        by_passage.setdefault(sentence.number, []).append(sentence)
    cited = [passage for passage in passages if passage.number in by_passage]
    heading_of: dict[int, str] = {}
    if headings and any(passage.heading for passage in cited):
        heading_of = {passage.number: passage.heading or passage.name for passage in cited}
    text = ""
    for number in sorted(by_passage, key=lambda number: bool(heading_of.get(number))):
        extract = _extract(sorted(by_passage[number], key=lambda sentence: sentence.order))
        if heading := heading_of.get(number):
            extract = f"### {MARKS.sub('', heading)}\n{extract}"
        text = append_part(text, extract, on_new_line="\n" in text or "\n" in extract)
    return text


def _extract(chosen: Sequence[SentenceCandidate]) -> str:
    """Join the chosen sentences of one passage, each cited; a row of a table gets the table's header before it."""
    text = header = ""
    for sentence in chosen:
        mark = f"[{sentence.number}]"
        if sentence.header.strip("| ") and sentence.header != header:  # headers without words say nothing
            header = sentence.header
            cited_header = "\n".join(line + mark for line in header.splitlines())
            text = append_part(text, cited_header, on_new_line=True)
        text = append_part(text, _whole_sentence(sentence.text) + mark)
    return text


def _pick_sentences(question: str, passages: Sequence[PassageText], count: int) -> list[SentenceCandidate]:
    """Choose the sentences that answer, best first; none if the passages do not support an answer."""
    analysed = analyse(question)
    passages = select_passages(analysed, passages)
    candidates = collect(analysed, passages)
    if asked := attribute_asked(analysed):
        # prose may name the attribute in other words, if what it says is of the kind asked for; a table's row may not
        candidates = [one for one in candidates if one.near & asked or _is_prose_of_kind(one, analysed)]
    # a question in the text, as in a FAQ, answers nothing
    picked = choose(analysed, [sentence for sentence in candidates if not is_question(sentence.text)], count)
    if strength(analysed, passages, candidates, picked[:_JUDGED]) < 0.5:
        return []
    if not analysed.clauses:  # all sentences of a clause belong to it
        picked = drop_distraction(picked)
    return settle_versions(analysed, picked, candidates, passages)


def _is_prose_of_kind(sentence: SentenceCandidate, question: Question) -> bool:
    """Tell whether a sentence, not a row of a table, offers what is asked for: a person, a time, an amount ..."""
    is_row = bool(sentence.header.strip("| "))
    return not is_row and (question.kind == "other" or bool(sentence.features.kind))


def _whole_sentence(text: str) -> str:
    """Write a sentence on one line with a stop at its end, without marks of footnotes, which read as citations."""
    text = _LIST_MARK.sub("", " ".join(_FOOTNOTES.sub(r"\1", text).split()))
    if text.count("**") % 2:  # its other half is in another sentence
        text = text.replace("**", "")
    return end_sentence(text)


def strength_of(question: Question, passages: Sequence[PassageText]) -> float:
    """Return how well passages support an answer of two sentences."""
    candidates = collect(question, passages)
    return strength(question, passages, candidates, choose(question, candidates))


def strength(
    question: Question,
    passages: Sequence[PassageText],
    candidates: Sequence[SentenceCandidate],
    picked: Sequence[SentenceCandidate],
) -> float:
    """Return how well the passages support an answer, from 0 (nothing matches) to 1; below 0.5 the model declines."""
    if not picked or not any(sentence.near for sentence in picked):
        return 0.0
    shared_terms = [question.keys & set(terms(f"{passage.title}\n{passage.text}")) for passage in passages]
    if question.clauses:  # of a contract: there also a clause's number counts as a term
        for sentence in candidates:
            shared_terms[sentence.passage_index] |= sentence.near
    best = max((weight_of(question, keys) for keys in shared_terms), default=0.0)
    times = [sentence.features.overlap + sentence.features.recent for sentence in picked]
    measures = {
        "passage": best,  # the largest share of the question's terms in one passage
        "passage squared": best**2,
        # and in a sentence with its neighbours and title
        "near": max((weight_of(question, sentence.near) for sentence in candidates), default=0.0),
        # a question without a time counts as if its time fitted well
        "time": max(times, default=0.0) if question.spans else _USUAL_TIME,
        "score": max((sentence.score for sentence in picked), default=0.0) / 10,
        "open": float(question.kind == "other"),
    }
    total = _BIAS[question.language] + sum(_WEIGHTS[name] * value for name, value in measures.items())
    return 1.0 / (1.0 + math.exp(-total))
