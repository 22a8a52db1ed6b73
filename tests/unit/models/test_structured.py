"""The structured call against an OpenAI-compatible server, through the real client; sync and async."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from support.blocking import blockbuster_ctx
from support.openai_server import OpenAIServer, cut, error, hang, refusal, reset, text, tool, truncated

from rag_kit.concurrency import Budget, use_budget
from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import (
    BudgetExceededError,
    InvalidInputError,
    ModelError,
    ModelOutputError,
    ModelUnreachableError,
)
from rag_kit.models import astructured_call, atext_call, runnables, structured_call, text_call
from rag_kit.models.schema import ending_schema, strict_schema, target_of
from rag_kit.prompts import load_prompt
from rag_kit.prompts.grading import Grade
from rag_kit.prompts.schemas import Queries, Query

PROMPT = ChatPromptTemplate([("system", "You rewrite questions."), ("user", "{q}")])
VALUES = {"q": "What is BM25?"}
GOOD = {"queries": ["a", "b"]}


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The call in both faces, and what the server saw; one event loop a test: clients share connections."""
    runner = asyncio.Runner()

    def run(server: OpenAIServer, schema: Any = Queries, **options: Any) -> Any:
        model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-canary-0123456789abcdef")
        before = len(server.chats)
        with use_budget(Budget()) as budget:
            if request.param == "sync":
                value = structured_call(model, PROMPT, VALUES, schema, **options)
            else:
                calling = astructured_call(model, PROMPT, VALUES, schema, **options)
                value = runner.run(calling, context=contextvars.copy_context())
        repaired = "<task>repair_json</task>" in server.chats[-1].prompt
        calls = len(server.chats) - before
        return SimpleNamespace(
            value=value, calls=calls, method=server.asked[-1], repaired=repaired, tokens=budget.tokens
        )

    with runner:
        yield run


def test_json_schema_is_used_where_the_endpoint_has_it(call: Any) -> None:
    """One request with a strict schema, and its usage is counted."""
    with OpenAIServer([GOOD]) as server:
        result = call(server)
        sent = server.chats[0].body["response_format"]["json_schema"]
    assert result.value == Queries(queries=["a", "b"])
    assert (result.method, result.calls, result.repaired) == ("json_schema", 1, False)
    assert result.tokens > 0
    assert sent["strict"] is True and sent["schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("refuse", "method", "calls"),
    [
        ({"json_schema"}, "tools", 2),
        ({"json_schema", "tools"}, "json_object", 3),
        ({"json_schema", "tools", "json_object"}, "text", 4),
    ],
)
def test_a_refused_method_leads_down_the_ladder_and_is_remembered(
    call: Any, refuse: set[str], method: str, calls: int
) -> None:
    """400 goes to the next method; the second call begins where the first one ended."""
    with OpenAIServer([GOOD], refuse=refuse) as server:
        first, second = call(server), call(server)
    assert (first.method, first.calls) == (method, calls)
    assert (second.method, second.calls) == (method, 1)


@pytest.mark.parametrize("status", [404, 415, 422])
def test_other_refusals_lead_down_too(call: Any, status: int) -> None:
    """404, 415 and 422 count as refusals of the method."""
    with OpenAIServer([error(status), GOOD]) as server:
        assert call(server).method == "tools"


def test_a_request_refused_in_every_form_is_not_remembered(call: Any) -> None:
    """When plain text is refused as well, the request is at fault, not the methods."""
    with OpenAIServer([error(400, "bad request")]) as server:
        with pytest.raises(ModelError, match=r"400.*bad request"):
            call(server)
        assert server.asked == ["json_schema", "tools", "json_object", "text"]
        model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-x")
        assert runnables.endpoint_of(model).first_method == 0


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (error(404, "no such model", code="model_not_found"), "model name"),
        (error(400, "too long", code="context_length_exceeded"), "prompt is too long for the model"),
        (error(429, "no credit", code="insufficient_quota"), "no credit"),
        (error(401, "no"), "refused the key"),
    ],
)
def test_what_no_other_form_mends_ends_at_once(call: Any, entry: Any, says: str) -> None:
    """A missing model, a prompt too long, an empty account, a wrong key: one request, no method is blamed."""
    with OpenAIServer([entry]) as server:
        with pytest.raises(ModelError, match=says):
            call(server)
        assert len(server.chats) == 1


@pytest.mark.parametrize(("reply", "refuse"), [(text, set()), (tool, {"json_schema"})])
def test_truncated_json_gets_one_repair(call: Any, reply: Any, refuse: set[str]) -> None:
    """Broken-off JSON, in text or in the arguments of a tool, is not guessed: the model mends what it wrote."""
    with OpenAIServer([reply('{"queries": ["a", "b'), GOOD], refuse=refuse) as server:
        result = call(server)
        assert result.repaired and result.calls == 2 + len(refuse) and result.value.queries == ["a", "b"]
        assert '{"queries": ["a", "b' in server.chats[-1].prompt


@pytest.mark.parametrize(("reply", "method"), [(text, "json_schema"), (tool, "tools")])
def test_an_object_that_does_not_fit_is_repaired_by_the_same_method(
    call: Any, reply: Any, method: str
) -> None:
    """A schema of strict mode has no bounds; the model reads what is wrong, and answers by the schema again."""
    refuse = {"json_schema"} if method == "tools" else set()
    too_sure = '{"relevant": true, "score": 7, "reason": "It says so."}'
    good = {"relevant": True, "score": 0.7, "reason": "It says so."}
    with OpenAIServer([reply(too_sure), good], refuse=refuse) as server:
        result = call(server, Grade)
        assert "less than or equal to 1" in server.chats[-1].prompt
    assert (result.value.score, result.method, result.repaired) == (0.7, method, True)
    assert result.calls == 2 + len(refuse)


def _sent_fields(chat: Any) -> Any:
    """Return the fields of the JSON schema that a request has."""
    return chat.body["response_format"]["json_schema"]["schema"]["properties"]


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_repair_is_asked_for_in_a_form_that_ends(call: Any, is_refused: bool) -> None:
    """The first request has a form that all providers take; the repair bounds it, unless the endpoint refuses that."""
    refused = [error(400, "maxLength is not supported")] if is_refused else []
    with OpenAIServer([text('{"queries": ["a", "b'), *refused, GOOD]) as server:
        result = call(server)
    assert (result.value, result.method, result.repaired) == (Queries(**GOOD), "json_schema", True)
    first, bounded = _sent_fields(server.chats[0])["queries"], _sent_fields(server.chats[1])["queries"]
    assert first["items"] == {"type": "string"} and not {"minItems", "maxItems"} & first.keys()
    assert bounded["minItems"] == 1 and bounded["maxItems"] * bounded["items"]["maxLength"] <= 4_096 // 2
    if is_refused:
        assert _sent_fields(server.chats[2])["queries"] == first


def test_a_score_of_the_repair_is_one_of_the_tenths(call: Any) -> None:
    """A grammar made of a schema knows no largest number, but it knows the words of a list."""
    good = {"relevant": True, "score": 0.7, "reason": "It says so."}
    with OpenAIServer([text('{"relevant": true, "score": 7, "reason": ""}'), good]) as server:
        assert call(server, Grade).value.score == 0.7
    scores = [_sent_fields(chat)["score"].get("enum") for chat in server.chats]
    assert scores == [None, [number / 10 for number in range(11)]]


def test_prose_sends_only_this_call_to_text(call: Any) -> None:
    """A bad answer is asked for again in text; the next call begins at the top."""
    with OpenAIServer(["I like cats.", GOOD, GOOD]) as server:
        result = call(server)
        assert (result.method, result.calls) == ("text", 2)
        assert call(server).method == "json_schema"
        assert server.asked == ["json_schema", "text", "json_schema"]


def test_the_arguments_of_an_unknown_tool_are_no_answer(call: Any) -> None:
    """A call of a tool that was not offered is no value, whatever its arguments are; the model is asked again."""
    unknown = tool({"queries": ["rm -rf"]}, tool_name="run_command")
    with OpenAIServer([unknown, GOOD], refuse={"json_schema"}) as server:
        assert call(server).value.queries == ["a", "b"]
    with OpenAIServer([unknown], refuse={"json_schema"}) as server:
        assert call(server, fallback="instead").value == "instead"
        with pytest.raises(ModelOutputError):
            call(server)


@pytest.mark.parametrize(
    ("content", "more", "expected"),
    [
        ("", [], "instead"),
        ("", [{"name": "Query", "args": {"query": "fans"}, "id": "2"}], Query(query="fans")),
        ('{"query": "fans"}', [], Query(query="fans")),
    ],
)
def test_unknown_tools_where_none_was_offered(content: str, more: list[Any], expected: Any) -> None:
    """A model without the client's own way to structured output may call tools as well; only ours counts."""
    calls = [{"name": "run_command", "args": {"query": "rm -rf"}, "id": "1"}, *more]
    model = GenericFakeChatModel(messages=itertools.repeat(AIMessage(content, tool_calls=calls)))
    assert structured_call(model, PROMPT, VALUES, Query, fallback="instead") == expected


def test_only_one_repair(call: Any) -> None:
    """A reply that does not fit after the repair is an error; requests are bounded."""
    with OpenAIServer(["I like cats."]) as server:
        with pytest.raises(ModelOutputError, match="also after one repair"):
            call(server)
        assert len(server.chats) == 3


def test_empty_answers(call: Any) -> None:
    """An empty answer is asked for once more, and is then an error."""
    with OpenAIServer(["", GOOD]) as server:
        assert call(server).calls == 2
    with OpenAIServer([""]) as server:
        with pytest.raises(ModelOutputError, match="empty"):
            call(server)
        assert len(server.chats) == 2


def test_a_refusal_ends_the_call_or_takes_the_fallback(call: Any) -> None:
    """A refusal is not argued with."""
    with OpenAIServer([refusal("I will not")]) as server:
        with pytest.raises(ModelOutputError, match="I will not"):
            call(server)
        result = call(server, fallback=lambda failure: Queries(queries=[type(failure).__name__]))
        assert len(server.chats) == 2
    assert result.value.queries == ["ModelOutputError"]


def test_rate_limit_waits_as_long_as_the_server_asks(call: Any) -> None:
    """429 with Retry-After: the next request comes after that time, and not much later."""
    with OpenAIServer([error(429, retry_after="1"), GOOD]) as server:
        result = call(server)
        gap = server.chats[1].at - server.chats[0].at
    assert result.calls == 2 and 1.0 <= gap < 5.0


def test_rate_limit_is_bounded(call: Any) -> None:
    """Retries, the longest wait and the deadline bound what a 429 can cost."""
    with OpenAIServer([error(429, retry_after="0")]) as server:
        with pytest.raises(ModelUnreachableError):
            call(server)
        assert len(server.chats) == 3
    for options, header in (({}, "3600"), ({"deadline": 5.0}, "20")):
        with OpenAIServer([error(429, retry_after=header)]) as server:
            start = time.monotonic()
            with pytest.raises(ModelUnreachableError, match="asks to wait"):
                call(server, **options)
            assert time.monotonic() - start < 4 and len(server.chats) == 1


@pytest.mark.parametrize("first", [error(500), error(503), reset(), cut('{"queries": ["a"]}')])
def test_passing_failures_are_retried(call: Any, first: Any) -> None:
    """5xx, a reset connection and a body cut half-way are tried again."""
    with OpenAIServer([first, GOOD]) as server:
        assert call(server).calls == 2


@pytest.mark.parametrize("entry", [error(500), reset()])
def test_lasting_failures_are_bounded_and_named(call: Any, entry: Any) -> None:
    """After two retries the endpoint counts as unreachable; the client's own retries don't multiply."""
    with OpenAIServer([entry]) as server:
        with pytest.raises(ModelUnreachableError):
            call(server)
        assert len(server.chats) == 3


def test_time_out_of_one_request(call: Any) -> None:
    """A request that hangs ends after `timeout` seconds and is tried again."""
    with OpenAIServer([hang(30), GOOD]) as server:
        start = time.monotonic()
        assert call(server, timeout=0.6).calls == 2
        assert time.monotonic() - start < 10
    with OpenAIServer([hang(30)]) as server, pytest.raises(ModelUnreachableError, match="in time"):
        call(server, timeout=0.3, max_retries=0)


def test_deadline_of_the_whole_call(call: Any) -> None:
    """A hanging endpoint cannot hold the call beyond its deadline."""
    with OpenAIServer([hang(30)]) as server:
        start = time.monotonic()
        with pytest.raises(BudgetExceededError, match="deadline"):
            call(server, deadline=1.0)
        assert time.monotonic() - start < 6


def test_caps_on_calls_and_tokens(call: Any) -> None:
    """max_calls refuses the request that would go over; max_tokens the one after the one that went over."""
    with OpenAIServer(["prose", GOOD]) as server:
        with pytest.raises(BudgetExceededError, match="max_calls=1"):
            call(server, max_calls=1)
        assert len(server.chats) == 1
        with pytest.raises(BudgetExceededError, match="max_calls=0"):
            call(server, max_calls=0)
        assert len(server.chats) == 1
    with OpenAIServer(["prose", GOOD]) as server:
        with pytest.raises(BudgetExceededError, match="max_tokens=3"):
            call(server, max_tokens=3)
        assert len(server.chats) == 1
    with OpenAIServer(["prose", GOOD]) as server:
        assert call(server, max_calls=1, fallback="instead").value == "instead"


def test_answers_of_langchains_cache_cost_nothing(call: Any) -> None:
    """No request is sent, so neither calls nor tokens are counted, whatever the kept answer once cost."""
    set_llm_cache(InMemoryCache())
    try:
        with OpenAIServer([GOOD]) as server:
            first = call(server)
            with use_budget(Budget()) as budget:
                second = call(server)
    finally:
        set_llm_cache(None)
    assert (first.calls, second.calls) == (1, 0) and second.value == first.value
    assert first.tokens > 0 and (budget.calls, budget.tokens) == (0, 0)


async def test_cancelling_stops_at_once() -> None:
    """A cancelled task is neither retried nor turned into a fallback."""
    with OpenAIServer([hang(30)]) as server:
        model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-x")
        task = asyncio.create_task(
            astructured_call(model, PROMPT, VALUES, Queries, fallback="no", timeout=20)
        )
        while not server.chats:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.2)
        assert len(server.chats) == 1


async def test_nothing_blocks_the_event_loop() -> None:
    """No file is read and nothing sleeps on the loop: down the ladder, text, repair, retry, unknown failure."""
    script = [error(500), "prose", "more prose", GOOD]
    with OpenAIServer(script, refuse={"json_schema", "tools", "json_object"}) as server:
        model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-x")
        # The client's own first request loads certificates and modules; that is not ours.
        await model.ainvoke("warm up", timeout=5)
        with blockbuster_ctx("rag_kit"):
            assert await astructured_call(model, PROMPT, VALUES, Queries) == Queries(**GOOD)
            assert "<task>repair_json</task>" in server.chats[-1].prompt
            broken = Native(responses=["x"], given=RuntimeError("broken"))
            with pytest.raises(ModelError):
                await astructured_call(broken, PROMPT, VALUES, Queries)


def test_any_runnable_can_answer() -> None:
    """Also a plain runnable over messages, which gets the schema and the question in one user message."""
    seen: list[Any] = []

    def answer(messages: Any) -> str:
        seen.append(messages)
        return "<query>cats</query>"

    assert structured_call(RunnableLambda(answer), PROMPT, VALUES, Query).query == "cats"
    assert [message.type for message in seen[0]] == ["system", "human"]
    assert "What is BM25?" in seen[0][-1].content and '"query"' in seen[0][-1].content


class Native(FakeListChatModel):
    """A model whose structured output gives what `given` says."""

    given: Any = None

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        def answer(messages: Any) -> Any:
            if isinstance(self.given, Exception):
                raise self.given
            return self.given

        return RunnableLambda(answer)


@pytest.mark.parametrize(
    "given", [None, {"raw": None, "parsed": None, "parsing_error": None}, {}, NotImplementedError()]
)
def test_nothing_from_structured_output_is_a_failure(given: Any) -> None:
    """``with_structured_output`` may give None: then the text path answers."""
    model = Native(responses=["1. a\n2. b"], given=given)
    assert structured_call(model, PROMPT, VALUES, Queries).queries == ["a", "b"]


@pytest.mark.parametrize(
    "given", [Queries(queries=["a"]), {"queries": ["a"]}, {"raw": None, "parsed": {"queries": ["a"]}}]
)
def test_objects_from_structured_output_are_validated(given: Any) -> None:
    """Instances and dicts are taken, after validation."""
    assert structured_call(Native(responses=["x"], given=given), PROMPT, VALUES, Queries).queries == ["a"]


def test_unknown_failures_of_a_model_are_model_errors() -> None:
    """An exception that is not known is mapped, says where it came from, and takes the fallback."""
    model = Native(responses=["x"], given=RuntimeError("broken"))
    with pytest.raises(ModelError, match="RuntimeError: broken"):
        structured_call(model, PROMPT, VALUES, Queries)
    assert structured_call(model, PROMPT, VALUES, Queries, fallback=None) is None


def test_prompt_files_bring_schema_language_and_identity() -> None:
    """A prompt file's own schema is the default; a Chinese prompt gets Chinese instructions."""
    seen: list[Any] = []

    def answer(messages: Any, config: Any) -> str:
        seen.append((messages, config))
        return '{"query": "什么是 BM25？"}'

    values = {"history": "", "question": "它是什么？"}
    assert structured_call(RunnableLambda(answer), load_prompt("condense", language="zh"), values).query
    messages, config = seen[0]
    assert "JSON 模式" in messages[-1].content
    assert config["metadata"]["prompt_name"] == "condense" and config["metadata"]["prompt_hash"]


def test_a_json_schema_gives_a_dict(call: Any) -> None:
    """An inline JSON schema needs no class."""
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
    with OpenAIServer([{"year": 1999}]) as server:
        assert call(server, schema).value == {"year": 1999}


@pytest.mark.parametrize(
    "options",
    [{"schema": None}, {"schema": "Queries"}, {"schema": Queries, "timeout": 0}, {"schema": Queries, "max_retries": -1},
     {"schema": {"type": "array"}}, {"schema": Queries, "max_calls": -1},
     {"schema": {"type": "object", "properties": {"x": {"type": "integerr"}}}}],
)  # fmt: skip
def test_wrong_arguments_are_refused_before_any_request(options: dict[str, Any]) -> None:
    """No schema, a wrong schema, wrong limits: refused with what is allowed."""
    model = FakeListChatModel(responses=["x"])
    with pytest.raises(InvalidInputError):
        structured_call(model, PROMPT, VALUES, **options)
    assert model.i == 0


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((None, "prompt", {"q": 1}), "model is a NoneType"),
        (("model", None, {"q": 1}), "prompt is a NoneType"),
        (("model", "prompt", None), "values is a NoneType"),
        (("model", "prompt", {"Q": 1}), "values lack 'q'; the prompt needs: q"),
    ],
)
async def test_wrong_parts_of_a_call_are_named(parts: tuple[Any, Any, Any], says: str) -> None:
    """Each of the calls says which part is missing or of another kind."""
    ready = {"model": FakeListChatModel(responses=["x"]), "prompt": ChatPromptTemplate([("user", "{q}")])}
    model, prompt, values = (ready.get(part) if isinstance(part, str) else part for part in parts)
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    for call in (
        lambda: structured_call(model, prompt, values, schema),
        lambda: text_call(model, prompt, values),
        lambda: asyncio.run(atext_call(model, prompt, values)),
        lambda: asyncio.run(astructured_call(model, prompt, values, schema)),
    ):
        with pytest.raises(InvalidInputError, match=says):
            await asyncio.to_thread(call)


def test_the_target_of_a_json_schema_belongs_to_nobody() -> None:
    """Changing the schema, or what a client was given, changes no other call."""
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
    first = target_of(schema)
    first.native["properties"].clear()
    schema["required"] = []
    assert first.accept({"year": 1999}) == {"year": 1999} and first.required == ["year"]
    assert target_of(schema).required == []


async def test_a_warm_asynchronous_call_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit's own prompts are read once: a thread for each call would take longer than filling them in."""
    model = FakeListChatModel(responses=['{"queries": ["a"]}'])
    await astructured_call(model, PROMPT, VALUES, Queries)

    def refuse(*args: Any) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr("rag_kit.concurrency.bridge.PooledCall", refuse)
    assert (await astructured_call(model, PROMPT, VALUES, Queries)).queries == ["a"]


LOOP = '{"queries": ["a", "b", ' + '"b", ' * 60


def test_a_reply_that_repeats_itself_is_asked_for_again_with_a_penalty(call: Any) -> None:
    """The same method and bound, in a form that ends, which is noted: it may have no room for all."""
    with OpenAIServer([truncated(LOOP), GOOD]) as server, use_notes() as notes:
        result = call(server)
    assert (result.value, result.method, result.calls) == (Queries(**GOOD), "json_schema", 2)
    assert [chat.body.get("frequency_penalty") for chat in server.chats] == [None, 1.0]
    assert server.chats[0].body["max_tokens"] == server.chats[1].body["max_tokens"]
    assert "maxItems" in _sent_fields(server.chats[1])["queries"]
    assert notes.texts == ["Queries: the model repeated itself; it was asked again for a shorter reply"]


@pytest.mark.parametrize("refuse", [set(), {"json_schema"}, {"json_schema", "tools", "json_object"}])
@pytest.mark.parametrize("takes_penalty", [True, False])
def test_a_reply_that_goes_on_repeating_itself_is_read_up_to_its_loop(
    call: Any, refuse: set[str], takes_penalty: bool
) -> None:
    """No repair ends a loop; the notes name the prompt or its form."""
    looping = tool(LOOP, finish="length") if refuse == {"json_schema"} else truncated(LOOP)
    replies = [looping, looping if takes_penalty else error(400, "frequency_penalty is not supported")]
    with OpenAIServer(replies, refuse=refuse) as server, use_notes() as notes:
        result = call(server)
    assert result.value == Queries(queries=["a", "b"])
    assert result.calls == len(refuse) + 2 and not result.repaired
    assert notes.texts == ["Queries: the model repeated itself; what it wrote before is used"]


def test_schemas_are_made_strict_and_bounded() -> None:
    """Every field is required in strict mode; texts and lists have bounds in a schema that ends."""
    a_text = {"type": "string", "default": ""}
    strict = strict_schema({"type": "object", "properties": {"a": a_text}})
    assert strict is not None and strict["required"] == ["a"]
    queries = {"type": "array", "items": {"type": "string"}}
    bounded = ending_schema({"type": "object", "properties": {"queries": queries}}, 512)
    wanted = {"type": "array", "items": {"type": "string", "maxLength": 170}, "maxItems": 3}
    assert bounded["properties"]["queries"] == wanted
