"""Answer schemas: the Pydantic classes that prompt files name under ``output.schema``."""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, WithJsonSchema, create_model

from rag_kit.prompts import grading
from rag_kit.prompts.fields import (
    NOTHING,
    Form,
    Line,
    ask_for,
    list_validator,
    one_line,
    split_lines,
    text_type,
    texts_type,
)
from rag_kit.prompts.filter_schema import SelfQuery

MAX_QUERY = 2_000
MAX_ITEMS = 32
MAX_KEYWORD = 120

# "None" is no query; empty, it is refused.
_Query: Any = Annotated[
    text_type(MAX_QUERY), BeforeValidator(lambda text: "" if NOTHING.fullmatch(str(text)) else text)
]
_SomeTexts: Any = texts_type(MAX_ITEMS, 1)
# An empty list is allowed; models write it as ["None"], too.
_Texts: Any = Annotated[
    texts_type(64), AfterValidator(lambda texts: [text for text in texts if not NOTHING.fullmatch(text)])
]
# Inside a list of objects, where no call splits a text into its lines.
_Lines: Any = Annotated[texts_type(64), BeforeValidator(split_lines)]
_Statement: Any = text_type(20_000, empty=True)
_Short: Any = text_type(4_000, empty=True)


class Query(Form):
    """One search query or question."""

    query: _Query = ask_for(
        "One question or search query, complete in itself.", "一个问题或检索词，脱离上下文也能看懂。"
    )


class Queries(Form):
    """Several search queries, the most useful first."""

    queries: _SomeTexts = ask_for(
        "Questions or search queries, each complete in itself, the most useful first.",
        "若干问题或检索词，每个都能独立看懂，最有用的排在最前。",
    )


class SubQuestions(Form):
    """The parts of a question that are to be answered first; empty if there is nothing to ask."""

    queries: _Texts = ask_for(
        "Questions, each about one thing and complete in itself, in the order in which they are "
        "to be answered; an empty list if no question is needed.",
        "若干子问题，每个只问一件事、能独立看懂，按应当回答的顺序排列；不需要子问题时为空列表。",
    )


class Passages(Form):
    """Hypothetical passages: text as a document that answers the question might hold it."""

    passages: _SomeTexts = ask_for(
        "Short passages, each written as a document that answers the question might put it.",
        "若干短段落，写法如同能够回答这个问题的文档。",
    )


class Keywords(Form):
    """Keywords for a search engine, at most three; more are cut."""

    keywords: Annotated[
        _SomeTexts, AfterValidator(lambda words: [word[:MAX_KEYWORD] for word in words[:3]])
    ] = ask_for(
        "One to three keywords or names, the most important first.",
        "一到三个关键词或名称，最重要的排在最前。",
    )


class UserFacts(Form):
    """Facts that a user said about themselves; empty if none."""

    facts: _Texts = ask_for(
        "Short sentences, each one lasting fact that the user stated; an empty list if there is none.",
        "若干短句，每句一个用户说过、长期有效的事实；没有时为空列表。",
    )


class RelatedQuestions(Form):
    """Questions that the user might ask next; empty if the passages answer no other."""

    queries: _Texts = ask_for(
        "Questions that the passages answer, each complete in itself; an empty list if there is none.",
        "这些段落能够回答的问题，每个都能独立看懂；没有时为空列表。",
    )


def _without_fence(value: str) -> str:
    """Remove a Markdown code fence around a statement."""
    # the first line is the opening fence, such as "```sql"
    return value.strip("`").partition("\n")[2] if value.startswith("```") else value


class DatabaseStatement(Form):
    """One statement that reads, or none where the database cannot answer."""

    reason: Line = ask_for(
        "Which tables or labels answer the question and how, or why none can; one short sentence.",
        "用哪些表或标签、怎样回答问题，或者为什么无法回答；用一个短句说明。",
    )
    statement: Annotated[_Statement, AfterValidator(_without_fence), AfterValidator(str.strip)] = ask_for(
        "One statement that reads; empty if the database cannot answer the question.",
        "一条只读取数据的语句；数据库无法回答问题时为空。",
    )


class GeneratedQuestion(Form):
    """A question with its answer, and the words of the passages that it rests on."""

    question: _Short = ask_for("The question, complete in itself.", "问题，能独立看懂。")
    answers: _Lines = ask_for(
        "The short answer, copied from the passage; one entry a part of the answer.",
        "简短的答案，照抄段落中的原文；答案有几部分就写几项。",
    )
    reference: _Short = ask_for("The full answer in one or two sentences.", "完整的答案，用一两句话写成。")
    quotes: _Lines = ask_for(
        "The sentence that holds the answer, word for word; one for each passage used.",
        "包含答案的句子，一字不改地照抄；用到的每个段落一句。",
    )


class GeneratedQuestions(Form):
    """Questions that passages answer; empty if they answer none."""

    questions: Annotated[list[GeneratedQuestion], BeforeValidator(list_validator(MAX_ITEMS))] = ask_for(
        "Questions with their answers; an empty list if the passages are good for none.",
        "各个问题及其答案；这些段落不适合出题时为空列表。",
    )


class QuestionCheck(Form):
    """Verdict on a question by somebody who sees it for the first time."""

    answerable: bool = ask_for(
        "True if the passages answer the question completely.", "段落完整地回答了问题时为 true。"
    )
    answer: _Short = ask_for(
        "The answer that the passages give; empty if there is none.", "段落给出的答案；没有则为空。"
    )
    stands_alone: bool = ask_for(
        "True if the question is understood without seeing the passages.", "不看段落也能看懂问题时为 true。"
    )
    needs_all: bool = ask_for(
        "True if every passage is needed for the answer.", "回答问题需要用到每一个段落时为 true。"
    )
    reason: Line = ask_for("Why, in one short sentence.", "理由，用一个短句说明。")


_NAME: Any = ask_for("The name of the source, exactly as it is listed.", "来源的名称，与列出的完全一致。")
_CHOICES: Any = ask_for(
    "The sources that fit the question, the best first; an empty list if none fits.",
    "适合这个问题的来源，最合适的排在最前；都不合适时为空列表。",
)


def _choice(*names: str) -> Any:
    """Make a text type whose JSON schema allows ``names`` alone; other texts pass, for the caller to judge."""
    return Annotated[
        str,
        BeforeValidator(lambda value: one_line(value).lower()),
        WithJsonSchema({"type": "string", "enum": list(names)}),
    ]


_Intent: Any = _choice("question", "chat", "unclear")
_Complexity: Any = _choice("none", "single", "multi")


class Classification(Form):
    """Class of a question by what it needs."""

    intent: _Intent = ask_for(
        "'question', 'chat' for talk, or 'unclear' if the meaning is unclear.",
        "'question' 为提问，'chat' 为闲聊，看不出想问什么则为 'unclear'。",
    )
    complexity: _Complexity = ask_for(
        "'none' if nothing has to be looked up, 'single' for one search, 'multi' for several steps.",
        "什么都不用查为 'none'，查一次就够为 'single'，需要分几步查为 'multi'。",
    )
    reason: Line = ask_for("Why, in one short sentence.", "理由，用一个短句说明。")


class NextHop(Form):
    """The next sub-question, or that there is none."""

    done: bool = ask_for(
        "True if what was found is enough, or nothing more can be found.",
        "已找到的内容足够，或者再也找不到更多时为 true。",
    )
    query: Line = ask_for(
        "The next question, complete in itself; empty if done.", "下一个问题，能独立看懂；已经完成时为空。"
    )


class RouteChoice(Form):
    """One source that fits, and why."""

    name: str = _NAME
    reason: Line = ask_for("Why it fits, in one short sentence.", "为什么合适，用一个短句说明。")


def _read_choices(value: Any) -> Any:
    """Return a list of dicts with name and reason; a model may give names alone, one name, or name -> reason."""
    if isinstance(value, dict):
        value = [value] if "name" in value else [{"name": name, "reason": why} for name, why in value.items()]
    choices = []
    for choice in list_validator(100)(split_lines(value)):
        if isinstance(choice, str):
            choice = {"name": choice, "reason": None}
        elif isinstance(choice, dict):
            choice = {"name": choice.get("name"), "reason": choice.get("reason")}
        choices.append(choice)
    return choices


class Routes(Form):
    """The sources that fit a question, the best first; none if none fits."""

    choices: Annotated[list[RouteChoice], BeforeValidator(_read_choices)] = _CHOICES


@lru_cache(maxsize=128)
def routes_among(names: tuple[str, ...]) -> type[Routes]:
    """Make ``Routes`` whose JSON schema lists the allowed names, for strict mode; other names are dropped later."""
    listed = WithJsonSchema({"type": "string", "enum": list(names), "description": _NAME.description})
    choice: Any = create_model("RouteChoice", __base__=RouteChoice, name=(Annotated[str, listed], ...))
    choices: Any = Annotated[list[choice], BeforeValidator(_read_choices)]
    return create_model("Routes", __base__=Routes, choices=(choices, _CHOICES))


_ALL_FORMS: tuple[type[BaseModel], ...] = (
    Query, Queries, SubQuestions, Passages, grading.Grade, grading.PassageGrades, grading.PassageTexts,
    grading.RankedPassages, grading.ChosenSentences, SelfQuery, Routes, Classification, NextHop, UserFacts,
    RelatedQuestions, grading.RetrieveNeeded, grading.Critiques, grading.Usefulness, Keywords, grading.CitedSupport,
    grading.SupportLabels, GeneratedQuestions, QuestionCheck, DatabaseStatement,
)  # fmt: skip

SCHEMAS: dict[str, type[BaseModel]] = {form.__name__: form for form in _ALL_FORMS}
"""Every class that a prompt file may name under ``output.schema``."""
