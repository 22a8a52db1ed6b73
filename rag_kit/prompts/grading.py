"""Answer schemas for grading, ranking and representing passages, and for reflecting on statements as in Self-RAG."""

import re
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema

from rag_kit.prompts.fields import Form, Line, ask_for, list_validator, rows_type

MAX_NUMBERS = 1_000
MAX_LABELS = 100
_SUPPORT = "'full' if the passages say all of {}, 'partial' for a part of it, else 'none'."
_SUPPORT_ZH = "段落说出了整条论断为 'full'，只说出一部分为 'partial'，否则为 'none'。"
# The wordings of Self-RAG's paper, and of models, for what no passage supports.
_NO_SUPPORT = ("no", "no support", "none", "unsupported", "contradictory", "no support / contradictory")
_Grades: Any = rows_type(MAX_NUMBERS, id="integer", relevant="boolean", score="number", reason="string")
_Passages: Any = rows_type(MAX_NUMBERS, id="integer", texts={"type": "array", "items": {"type": "string"}})


def _read_label(value: Any) -> Any:
    """Read a label: case, brackets and a full stop do not matter, and true and false are yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.strip().strip("[]\"'.。").strip().lower() if isinstance(value, str) else value


def _read_support(value: Any) -> Any:
    """Read a label of support, also in the wordings of the paper ("fully supported")."""
    written = _read_label(value)
    if written in _NO_SUPPORT:
        return "none"
    return next((label for label in ("full", "partial") if str(written).startswith(label)), written)


# The labels of one field begin with different letters, so that the first token of the one that a model wrote, and of
# those that it might have written, tells them apart (log-probabilities).
YesNo = Annotated[Literal["yes", "no"], BeforeValidator(_read_label)]
Relevance = Annotated[Literal["relevant", "irrelevant"], BeforeValidator(_read_label)]
Support = Annotated[Literal["full", "partial", "none"], BeforeValidator(_read_support)]
_RATING_SCHEMA = WithJsonSchema({"type": "integer", "enum": [1, 2, 3, 4, 5]})
Rating = Annotated[int, BeforeValidator(_read_label), Field(ge=1, le=5), _RATING_SCHEMA]
_USEFULNESS_FIELD: Any = ask_for(
    "How useful the statement is for the question: from 1 (not at all) to 5 (fully).",
    "这句话对回答问题有多大用处：从 1（毫无用处）到 5（完全有用）。",
)


class Grade(Form):
    """The verdict of a grader."""

    relevant: bool = ask_for("True if it passes, false if not.", "通过为 true，不通过为 false。")
    score: Annotated[float, Field(ge=0, le=1), WithJsonSchema({"type": "number"})] = ask_for(
        "How sure that it passes: from 0 (surely not) to 1 (surely).",
        "有多大把握认为通过：从 0（肯定不通过）到 1（肯定通过）。",
    )
    reason: Line = ask_for("Why, in one short sentence.", "理由，用一个短句说明。")


class PassageGrades(Form):
    """Verdicts on several passages; one bad entry does not lose the others."""

    grades: _Grades = ask_for(
        "One entry a passage: its id, whether it is relevant, a score from 0 to 1, and why.",
        "每个段落一项：段落编号、是否相关、0 到 1 的分数和理由。",
    )


class PassageTexts(Form):
    """Texts that stand for passages in an index; one bad entry does not lose the others."""

    passages: _Passages = ask_for(
        "One entry a passage: its id, and the texts written for it.",
        "每个段落一项：它的编号，以及为它写的文字。",
    )


def _read_numbers(value: Any) -> Any:
    """Accept a list, or a text such as ``[2] > [1]``, as numbers; the caller checks the entries."""
    if isinstance(value, str):
        value = re.findall(r"[+-]?\d+", value)
    return list_validator(MAX_NUMBERS)(value)


# Models number badly: repeats, gaps, "[3]" for 3. Refusing the whole list for one entry would lose the rest.
_NUMBERS_SCHEMA = WithJsonSchema({"type": "array", "items": {"type": "integer"}})
_Numbers = Annotated[list[Any], BeforeValidator(_read_numbers), _NUMBERS_SCHEMA]


class RankedPassages(Form):
    """Numbers of passages, the most relevant first."""

    ranking: _Numbers = ask_for(
        "The numbers of all passages, the most relevant first.", "全部段落的编号，最相关的排在最前。"
    )


class ChosenSentences(Form):
    """Numbers of the sentences that matter; none if none does."""

    sentences: _Numbers = ask_for(
        "The numbers of the sentences that matter; empty if none does.",
        "有用的句子的编号；一句都没有时为空列表。",
    )


class CitedSupport(Form):
    """Whether the passages that a statement cites support it."""

    reason: Line = ask_for("Why, in one short sentence.", "理由，用一个短句说明。")
    support: Support = ask_for(_SUPPORT.format("the statement"), _SUPPORT_ZH)


class SupportLabel(Form):
    """How far one of several statements is supported."""

    id: int = ask_for("The number of the statement.", "这条论断的编号。")
    support: Support = ask_for(_SUPPORT.format("it"), _SUPPORT_ZH)


class SupportLabels(Form):
    """A label for each statement."""

    labels: Annotated[list[SupportLabel], BeforeValidator(list_validator(MAX_LABELS))] = ask_for(
        "One entry a statement: its number, and how far it is supported.",
        "每条论断一项：它的编号，以及它得到多少支持。",
    )


class RetrieveNeeded(Form):
    """Whether the next part of an answer needs something to be looked up (Self-RAG's *Retrieve*)."""

    retrieve: YesNo = ask_for(
        "yes if the next sentence needs a look into the documents, else no.",
        "写下一句话需要查阅文档为 yes，否则为 no。",
    )


class Critique(Form):
    """The three labels of one of several statements (Self-RAG's *IsRel*, *IsSup*, *IsUse*)."""

    id: int = ask_for("The number of the statement.", "这句陈述的编号。")
    relevance: Relevance = ask_for(
        "Whether the passage helps to answer the question.", "段落是否有助于回答问题。"
    )
    support: Support = ask_for(
        "How much of the statement the passage supports: full, partial or none.",
        "段落在多大程度上支持这句话：full 为完全，partial 为部分，none 为不支持。",
    )
    usefulness: Rating = _USEFULNESS_FIELD


def _usable_critiques(value: Any) -> Any:
    """Return the usable entries; if none is, all of them: they are refused, so that the model is asked again."""
    entries = list_validator(MAX_LABELS)(value)
    usable = []
    for entry in entries:
        with suppress(ValidationError):
            usable.append(Critique.model_validate(entry))
    return usable or entries


class Critiques(Form):
    """The labels of each statement."""

    labels: Annotated[list[Critique], BeforeValidator(_usable_critiques)] = ask_for(
        "One entry a statement: its number and its three labels.", "每句陈述一项：它的编号和三个标签。"
    )


class Usefulness(Form):
    """The one label of a part of an answer that rests on no passage (Self-RAG's *IsUse*)."""

    usefulness: Rating = _USEFULNESS_FIELD
