"""Questions of RGB, from its files or made of an evaluation set, each with the passages it is asked with."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from math import ceil
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path, find_file, read_jsonl
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.text import detect_language, fold

#: Ability -> the kind of question that it is measured with, its noise rates where they are fixed, its figures.
ABILITIES: dict[str, tuple[str, Sequence[float] | None, Sequence[str]]] = {
    "noise_robustness": ("plain", None, ["accuracy"]),
    "negative_rejection": ("plain", [1.0], ["rejection"]),
    "information_integration": ("integration", None, ["accuracy"]),
    "counterfactual_robustness": ("wrong", [0.0], ["accuracy", "error_detection", "error_correction"]),
}
_LONG = 1500
_VERDICTS = frozenset({"yes", "no", "maybe", "true", "false", "是", "否", "对", "错", "不是", "没有", ""})

#: Kind, language and record in the form of RGB's files.
Question = tuple[str, str, Mapping[str, Any]]


def examples_of(
    source: EvaluationSet | Path | str, abilities: Any, rates: Any, count: int, limit: int | None
) -> EvaluationSet:
    """One example for each question, ability and noise rate: tags name them, metadata hold passages and parts."""
    if not abilities or isinstance(abilities, str) or set(abilities) - set(ABILITIES):
        raise InvalidInputError(f"abilities is {abilities!r:.120}; give a list of {', '.join(ABILITIES)}")
    if not isinstance(rates, Sequence) or not all(isinstance(r, (int, float)) and 0 <= r < 1 for r in rates):
        raise InvalidInputError(f"noise_rates is {rates!r:.80}; give a list of numbers from 0 to below 1")
    if isinstance(source, EvaluationSet):
        name, questions = source.name, list(_of_set(source, count))
    else:
        name, questions = "rgb", list(_of_files(as_path(source, "source")))
    found = [
        _example(ability, language, record, rate, count)
        for ability, (kind, fixed, _) in ABILITIES.items()
        for language in ("en", "zh")
        for record in [record for *key, record in questions if key == [kind, language]][:limit]
        for rate in fixed or rates
        if ability in abilities
    ]
    if not found:
        raise InvalidInputError(
            f"{str(source)!r:.200} holds no question for {', '.join(abilities)}; a folder of RGB has en.json or "
            "zh_int.json, an EvaluationSet short answers that stand in its relevant passages"
        )
    return EvaluationSet(name, found)


def _example(ability: str, language: str, record: Mapping[str, Any], rate: float, count: int) -> Example:
    answer = record["answer"] if isinstance(record["answer"], list) else [record["answer"]]
    return Example(
        f"{ability}:{language}:{rate:g}:{record['id']}",
        record["query"],
        tags={"ability": ability, "language": language, "noise": f"{rate:g}"},
        metadata={
            "parts": [part if isinstance(part, list) else [part] for part in answer],
            "passages": passages_of(ABILITIES[ability][0], record, rate, count),
        },
    )


def passages_of(kind: str, record: Mapping[str, Any], rate: float, count: int) -> list[str]:
    """The passages that a question is asked with, drawn as RGB's own script draws them.

    ``ceil(count * rate)`` of them are noise. Where there are too few of one kind, those of the other fill up; with
    several parts each part's passages come first, and noise takes what room they leave; a counterfactual question has
    the passages with the wrong answer. The order is drawn anew for each question.
    """
    draw = random.Random(2333)  # RGB's
    positive, negative, good = record["positive"], record["negative"], count - ceil(count * rate)
    if kind == "wrong":
        wrong = record["positive_wrong"]
        found = draw.sample(wrong, min(len(wrong), count))
    elif kind == "integration":
        groups = [list(group) for group in positive if group]
        for group in groups:
            draw.shuffle(group)
        turns = [text for turn in zip_longest(*groups) for text in turn if text is not None]
        found = turns[: max(good, len(groups))]
        found += negative[: max(0, count - len(found))]
    else:
        found = positive[: 0 if rate == 1 else max(good, count - len(negative))]
        found = found + negative[: count - len(found)]
    draw.shuffle(found)
    return found


def _of_files(folder: Path) -> Iterator[Question]:
    """The questions about noise are those of ``en_refine`` or ``en``, else of ``en_fact``, which has the same ones."""
    for language in ("en", "zh"):
        for kind, names in (
            ("plain", (f"{language}_refine", language, f"{language}_fact")),
            ("integration", (f"{language}_int",)),
            ("wrong", (f"{language}_fact",)),
        ):
            endings = ("json", "jsonl", "json.gz", "jsonl.gz")
            path = find_file(folder, *(f"{name}.{ending}" for name in names for ending in endings))
            for where, record in read_jsonl(path) if path else ():
                missing = {"id", "query", "answer", "positive", "negative"} - set(record)
                if missing or (kind == "wrong" and "positive_wrong" not in record):
                    raise InvalidInputError(
                        f"{where}: no question of RGB, which has id, query, answer, and passages"
                    )
                yield kind, language, record


def _of_set(examples: EvaluationSet, count: int) -> Iterator[Question]:
    """Questions in RGB's form made of an evaluation set and its corpus, without any model.

    True passages are those that an example names as relevant, long ones cut to the part around the answer. Noise are
    the passages that keyword search finds best for the question and that are neither relevant nor hold an answer.
    Questions whose parts (``answer_parts`` of the metadata) stand in several documents ask for integration. For
    counterfactual passages the answer is replaced, wherever it stands, by another one of the same form.
    """
    from rag_kit.indexing import BM25Index

    if not examples.corpus:
        raise InvalidInputError(f"the set {examples.name!r} has no corpus to draw noise from; give corpus=")
    texts = {passage.id: passage.text for passage in examples.corpus}
    index = BM25Index.from_documents(examples.documents())
    pool = sorted({answer for example in examples for answer in example.answers})
    for example in examples:
        parts = example.metadata.get("answer_parts") or [list(example.answers)]
        answers = [text for part in parts for text in (part if isinstance(part, list) else [part])]
        gold = [texts[key] for key, grade in example.relevant.items() if grade > 0 and key in texts]
        gold += () if gold else example.reference_contexts
        true = [_around(text, answers) for text in gold if _contains_answer(text, answers)]
        if not true or any(fold(answer).strip() in _VERDICTS for answer in answers):
            continue  # nothing that a reply could be compared with
        near = [document.page_content for document, _ in index.search(example.question, k=4 * count)]
        noise = [text[:_LONG] for text in near if text not in gold and not _contains_answer(text, answers)][
            :count
        ]
        language = (
            "zh" if example.tags.get("language", detect_language(example.question))[:2] == "zh" else "en"
        )
        record = {"id": example.id, "query": example.question, "answer": parts, "negative": noise}
        yield "plain", language, {**record, "positive": true}
        if len(parts) > 1 and len(true) > 1:
            yield "integration", language, {**record, "positive": [[text] for text in true]}
        if wrong := _wrong_answer(answers, pool, true, example.id):
            longest = sorted(answers, key=len, reverse=True)
            right = re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)
            fakes = [right.sub(lambda _, wrong=wrong: wrong, text) for text in true]  # type: ignore[misc]
            yield "wrong", language, {**record, "positive": true, "positive_wrong": fakes}


def _contains_answer(text: str, answers: Sequence[str]) -> bool:
    folded = fold(text)
    return any(fold(each) in folded for each in answers)


def _around(text: str, answers: Sequence[str]) -> str:
    """The part of a long passage in whose middle the first answer stands."""
    at = min((place for each in answers if (place := text.find(each)) >= 0), default=0)
    start = max(0, min(at - _LONG // 2, len(text) - _LONG))
    return text[start : start + _LONG]


def _wrong_answer(right: list[str], pool: list[str], passages: list[str], draw: str) -> str | None:
    """Another answer of the set in the form of the right one; else the right one with other numbers; else ``None``."""
    known, rights = fold("\n".join(passages)), [fold(each) for each in right]
    other = [
        each
        for each in pool
        if _form(each) == _form(right[0])
        and not any(fold(each) in text or text in fold(each) for text in (known, *rights))
    ]
    if other:
        return random.Random(draw).choice(other)
    changed = re.sub(r"\d(?!\d)", lambda match: str((int(match[0]) + 1) % 10), right[0])
    return changed if changed != right[0] and fold(changed) not in known else None


def _form(text: str) -> list[str]:
    """The kind of each word's first character; numbers, and every two Chinese characters, count as words."""
    words = re.findall(r"\d+|[\u3400-\u9fff]{1,2}|[^\W\d\u3400-\u9fff]+", text)
    return [unicodedata.category(word[0]) for word in words]
