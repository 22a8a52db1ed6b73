"""Nothing that reaches a model is in the other language, on any way to structured output.

A real OpenAI client talks to a transport that keeps what it is sent: system and user messages, schemas, descriptions
of tools and fields. It refuses each method in turn, answers the last one badly, and so sees all of them and the
request to mend the answer.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

from rag_kit.errors import ModelOutputError
from rag_kit.models import structured_call
from rag_kit.models.schema import target_of
from rag_kit.models.structured import _describe_in_chinese
from rag_kit.prompts import load_prompt
from rag_kit.prompts.fields import for_model
from rag_kit.prompts.grading import Grade
from rag_kit.prompts.library import PromptLibrary, prompt_from_text, without_wording
from rag_kit.prompts.schemas import SCHEMAS, Query
from rag_kit.query_construction.fields import Schema, describe_fields

HAN = re.compile("[\u4e00-\u9fff\uff0c\u3002]")
# Three words in a row, with a comma between them or not: short labels, names of fields and of labels are no sentence.
SENTENCE = re.compile(r"[A-Za-z'’]+(?:[,;:]? [A-Za-z'’]+){2,}")
# A doctest, a section of a docstring, the first line of a class's docstring.
DOCSTRINGS = {str(inspect.getdoc(kind)).splitlines()[0] for kind in SCHEMAS.values()}
PROGRAMMERS = "|".join([">>>", "Examples?:", "Args:", *map(re.escape, sorted(DOCSTRINGS))])
BAD = '{"wrong": 1, "other": 2}'
CUT_OFF = '{"query": "42", "filter": {"field":'


class Recorder:
    """An endpoint that refuses every method of structured output, answers text badly, and keeps each request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        client = httpx.Client(transport=httpx.MockTransport(self._answer))
        self._client = ChatOpenAI(base_url="http://recorder.test/v1", api_key="none", http_client=client)

    def model(self, name: str) -> ChatOpenAI:
        """A client of that endpoint; what an endpoint refuses is remembered by its model's name."""
        self.requests.clear()
        return self._client.model_copy(update={"model_name": name})

    def _answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.requests.append(body)
        if "response_format" in body or "tools" in body:
            return httpx.Response(400, json={"error": {"message": "not supported here"}})
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": CUT_OFF if "self_query" in body["model"] else BAD},
        }
        return httpx.Response(200, json={"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                                         "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1,
                                                                        "total_tokens": 2}})  # fmt: skip


def texts(node: Any) -> Iterator[str]:
    """Every text in a request, a schema that stands in a message included."""
    if isinstance(node, dict):
        for value in node.values():
            yield from texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)
    elif isinstance(node, str):
        yield node


def foreign(body: dict[str, Any], language: str) -> list[str]:
    """Find text of the other language: Han characters in English, sentences in Chinese."""
    rule = HAN if language == "en" else SENTENCE
    found = []
    for text in texts(body):
        plain = re.sub(
            r"<[^<>]*>", "|", text.replace("TP, FP, FN", "")
        )  # the names of fields, one after another
        found += [plain[max(0, m.start() - 30) : m.end() + 30] for m in rule.finditer(plain)]
    return found


def way(body: dict[str, Any]) -> str:
    """Which of the ways a request took."""
    if "tools" in body:
        return "tool"
    kind = body.get("response_format", {}).get("type")
    told = "\n".join(texts(body["messages"]))
    return kind or ("repair" if "<task>repair_json</task>" in told else "text")


@pytest.mark.parametrize("language", ["zh", pytest.param("en", marks=pytest.mark.slow)])
def test_a_model_is_sent_one_language_on_every_way(language: str) -> None:
    """System, user, schema, tool, instructions, repair: no English sentence in zh, no Han character in en."""
    recorder = Recorder()  # one endpoint for all; a client takes long to make
    for name in PromptLibrary().names():
        check_language(recorder, name, language)


def check_language(recorder: Recorder, name: str, language: str) -> None:
    prompt = load_prompt(name, language=language)
    values = dict.fromkeys(prompt.input_variables, "42")
    if prompt.output_schema is None:
        recorder.model(f"{name}-{language}").invoke(prompt.invoke(values))
        expected = {"repair"} if name == "repair_json" else {"text"}
    else:
        with pytest.raises(ModelOutputError):
            structured_call(recorder.model(f"{name}-{language}"), prompt, values)
        expected = {"json_schema", "tool", "json_object", "text", "repair"}
    assert {way(body) for body in recorder.requests} == expected
    assert [part for body in recorder.requests for part in foreign(body, language)] == []
    sent = [text for body in recorder.requests for text in texts(body)]
    assert [text for text in sent if re.search(PROGRAMMERS, text)] == []
    if prompt.output_schema is not None:  # what the form is for, in the words of the prompt file
        described = prompt.output_schema["description"] if inline(prompt) else prompt.description
        tools = [body["tools"][0]["function"] for body in recorder.requests if way(body) == "tool"]
        assert [tool["description"] for tool in tools] == [described]


def inline(prompt: Any) -> bool:
    """Whether the form of the answer stands in the prompt file."""
    return isinstance(prompt.output_schema, dict)


def test_every_field_has_chinese_words_and_keeps_its_form() -> None:
    """No class and no field is left out; what may be filled in is the same in both languages."""
    for kind in SCHEMAS.values():
        chinese = for_model(kind, "zh", "说明。").model_json_schema()
        assert without_wording(kind.model_json_schema()) == without_wording(chinese)
        for node in (chinese, *chinese.get("$defs", {}).values()):
            assert all(HAN.search(each["description"]) for each in node.get("properties", {}).values())
        assert chinese["description"] == "说明。"


def test_what_comes_back_is_of_the_class_that_was_named() -> None:
    """Whether a client parses by itself or not, callers get no class that they do not know."""
    target = target_of(Query, "zh")
    assert type(target.accept({"query": "x"})) is Query
    assert type(target.accept(target.native(query="x"))) is Query
    assert target.accept(Query(query="x")) == Query(query="x")


def test_a_users_own_class_says_what_its_author_wrote() -> None:
    """A class that only bears a name of ours is left alone, and one made from ours keeps what it adds."""
    own = type("Query", (BaseModel,), {"__annotations__": {"query": str}, "__doc__": "Mine."})
    assert target_of(own, "zh").json_schema["description"] == "Mine."

    class Wider(Query):
        """Mine too."""

        more: str = Field(description="My own.")

    Wider.__doc__ += "\n\n    Args:\n        more: More.\n\n    Example:\n        >>> 1\n        1\n"
    said = target_of(Wider, "zh").json_schema
    assert (said["description"], said["properties"]["more"]["description"]) == ("Mine too.", "My own.")


def test_a_schema_in_a_file_is_described_in_its_language() -> None:
    """Parts that a user's Chinese file leaves out of its schema are filled in in Chinese."""
    file = (
        '---\nname: mine\ndescription: 我的。\nversion: "1"\ninput:\n  question: 问题。\noutput:\n  schema:\n'
        "    type: object\n    properties:\n      n: {type: integer}\n---\n"
        '{{role "system"}}\n<task>mine</task>\n数数。\n{{role "user"}}\n<question>{{question}}</question>\n'
    )
    schema = prompt_from_text(file, name="mine", language="zh").output_schema
    assert isinstance(schema, dict) and schema["description"] == "提示词 mine 的结果。"
    assert (
        target_of({"type": "object", "properties": {"n": {"type": "integer"}}}, "zh").json_schema[
            "description"
        ]
        == "答案。"
    )


def test_why_an_answer_does_not_fit_is_said_in_chinese() -> None:
    """Each wrong field is named, and no English sentence is sent."""
    with pytest.raises(ValueError) as raised:
        target_of(Grade).accept({"relevant": "perhaps", "score": 2})
    said = _describe_in_chinese(str(raised.value))
    assert said == "relevant：不符合模式的要求；score：不符合模式的要求；reason：不符合模式的要求"
    assert _describe_in_chinese("the answer is empty") == "不符合模式的要求"


def test_the_fields_of_a_filter_are_described_in_the_language_of_the_prompt() -> None:
    """Text that the code writes into a prompt is of its language too."""
    fields = [
        {"name": "年份", "type": "int", "minimum": 1990, "maximum": 2020, "description": "发表的年份"},
        {"name": "主题", "type": "str", "many": True, "allowed": [f"第{n}类" for n in range(60)]},
    ]
    told = describe_fields(Schema.of(fields), {}, "zh")
    assert told.startswith('年份（int）：发表的年份；从 1990 到 2020\n主题（str 列表）；取值："第0类"、')
    assert told.endswith("，另有 20 个") and not SENTENCE.search(told)
