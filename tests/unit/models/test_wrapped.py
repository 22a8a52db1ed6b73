"""Models inside LangChain's wrappers: their methods of structured output, the bound on a reply, their context."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from openai import RateLimitError
from support.openai_server import OpenAIServer, Recorded, error, text, truncated

from rag_kit.concurrency import Budget, fan_out, use_budget
from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import (
    BudgetExceededError,
    ConfigurationError,
    ContextLengthError,
    ModelOutputError,
    ModelUnreachableError,
)
from rag_kit.graphs import build_plain_rag
from rag_kit.models import astructured_call, atext_call, chat_model, runnables, structured_call, text_call
from rag_kit.models.model_call import with_bound
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.format import DEFAULT_MAX_TOKENS
from rag_kit.prompts.library import prompt_from_text
from rag_kit.prompts.schemas import Queries
from rag_kit.retrieval import BM25Retriever

PROMPT = load_prompt("multi_query")
VALUES = {"question": "What is BM25?", "count": 3}
GOOD = {"queries": ["a", "b"]}
METHODS = {"json_schema": set(), "tools": {"json_schema"}, "json_object": {"json_schema", "tools"}}
Wrap = Callable[[ChatOpenAI], Any]
WRAPPERS: dict[str, Wrap] = {
    "bare": lambda model: model,
    "bind": lambda model: model.bind(logprobs=True, top_logprobs=2),
    "tools bound": lambda model: model.bind_tools(
        [{"name": "look", "description": "Look.", "parameters": {}}]
    ),
    "with_config": lambda model: model.with_config(tags=["mine"]),
    "with_retry": lambda model: model.with_retry(stop_after_attempt=2),
    "with_fallbacks": lambda model: model.with_fallbacks([FakeListChatModel(responses=["no"])]),
    "configurable_fields": lambda model: model.configurable_fields(temperature=ConfigurableField(id="heat")),
    "configurable_alternatives": lambda model: model.configurable_alternatives(
        ConfigurableField(id="which"), default_key="one", other=FakeListChatModel(responses=["no"])
    ),
    "several": lambda model: (
        model.bind(logprobs=True)
        .with_config(tags=["mine"])
        .with_retry(stop_after_attempt=2)
        .with_fallbacks([FakeListChatModel(responses=["no"])])
    ),
}


def openai(server: OpenAIServer, **settings: Any) -> ChatOpenAI:
    """A model of the server."""
    return ChatOpenAI(model="test", base_url=server.url, api_key="sk-x", **settings)


def structured(asynchronous: bool, model: Any, **limits: Any) -> Any:
    """The structured call, in one form or the other."""
    if asynchronous:
        return asyncio.run(astructured_call(model, PROMPT, VALUES, **limits))
    return structured_call(model, PROMPT, VALUES, **limits)


def bound_of(request: Recorded) -> Any:
    """The bound that a request sent."""
    return request.body.get("max_tokens")


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("method", "refused"), METHODS.items())
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_model_keeps_its_methods(
    wrapper: str, method: str, refused: set[str], asynchronous: bool
) -> None:
    """Whatever is around a model, it is asked by the first method that its endpoint serves, within the bound."""
    with OpenAIServer([GOOD], refuse=refused) as server:
        model = WRAPPERS[wrapper](openai(server, max_retries=0))
        found = structured(asynchronous, model)
        last = server.chats[-1]
        assert found == Queries(queries=["a", "b"])
        assert last.asks == method
        assert bound_of(last) == PROMPT.max_tokens
        assert ("logprobs" in last.body) == (wrapper in ("bind", "several"))
        assert "look" not in str(last.body.get("tools", "")) or method != "tools"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_fallback_without_methods_gets_the_form_in_words(asynchronous: bool) -> None:
    """The model that stands by is asked in plain text, with the schema, when the first one fails."""
    asked: list[str] = []

    class Plain(FakeListChatModel):
        def _call(self, messages: Any, *arguments: Any, **more: Any) -> str:
            asked.append(str(messages[-1].content))
            return super()._call(messages, *arguments, **more)

    with OpenAIServer([error(500)]) as server:
        model = openai(server).with_fallbacks([Plain(responses=['{"queries": ["c"]}'])])
        found = structured(asynchronous, model)
    assert found.queries == ["c"]
    assert "Queries" in asked[0] and "JSON" in asked[0]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_refused_form_is_no_reason_for_a_fallback(asynchronous: bool) -> None:
    """A first model that refuses a method, or the bound, is asked in another form, and so from then on."""
    calls: Any = (astructured_call, atext_call) if asynchronous else (structured_call, text_call)

    def run(index: int, model: Any, *given: Any) -> Any:
        found = calls[index](model, *given, max_retries=0)
        return asyncio.run(found) if asynchronous else found

    with OpenAIServer([GOOD], refuse={"json_schema"}) as server, OpenAIServer([GOOD]) as other:
        model = openai(server).with_fallbacks([openai(other)])
        for _ in range(2):
            assert run(0, model, PROMPT, VALUES).queries == ["a", "b"]
        assert server.asked == ["json_schema", "tools", "tools"] and not other.chats
    refused = error(400, "Unsupported parameter: 'max_tokens' is not supported with this model")
    with OpenAIServer([refused, text("yes")]) as server, OpenAIServer([text("no")]) as other:
        model = openai(server, max_retries=0).with_retry(stop_after_attempt=2).with_fallbacks([openai(other)])
        for _ in range(2):
            assert run(1, model, ChatPromptTemplate([("user", "Hi")]), {}) == "yes"
        assert [bound_of(chat) for chat in server.chats] == [DEFAULT_MAX_TOKENS, None, None]
    with OpenAIServer([error(500)]) as server, OpenAIServer([GOOD]) as other:
        assert run(0, openai(server).with_fallbacks([openai(other)]), PROMPT, VALUES).queries == ["a", "b"]
        assert other.asked == ["json_schema"]
    runnables._endpoints.clear()
    with OpenAIServer([error(422)]) as server, OpenAIServer(['{"queries": ["c"]}']) as other:
        model = openai(server).with_fallbacks([openai(other)])
        assert run(0, model, PROMPT, VALUES).queries == ["c"]
        assert runnables.endpoint_of(runnables.bare_model(model)).first_method == 0


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_model_that_stands_by_may_refuse_a_form_too(asynchronous: bool) -> None:
    """It is asked without the bound, and by the next method, which is remembered: it has a ladder of its own."""

    def answer(request: Recorded) -> Any:
        if bound_of(request):
            return error(400, "Unsupported parameter: 'max_tokens' is not supported with this model")
        return GOOD

    with OpenAIServer([error(500)]) as server, OpenAIServer([answer], refuse={"json_schema"}) as other:
        model = openai(server).with_fallbacks([openai(other)])
        for _ in range(2):
            assert structured(asynchronous, model, max_retries=0) == Queries(queries=["a", "b"])
        assert [(chat.asks, bound_of(chat) is None) for chat in other.chats] == [
            ("json_schema", False),
            ("tools", False),
            ("tools", True),
            ("tools", True),
        ]


def test_only_the_errors_of_its_own_bring_a_model_that_stands_by() -> None:
    """``exceptions_to_handle`` holds, also in fallbacks of fallbacks; an unreadable reply is none."""
    with (
        OpenAIServer([error(500)]) as server,
        OpenAIServer([error(429)]) as busy,
        OpenAIServer([GOOD]) as other,
    ):
        spare = openai(busy).with_fallbacks([openai(other)], exceptions_to_handle=(RateLimitError,))
        found = structured_call(openai(server).with_fallbacks([spare]), PROMPT, VALUES, max_retries=0)
        assert found.queries == ["a", "b"]
        picky = openai(server).with_fallbacks([openai(other)], exceptions_to_handle=(RateLimitError,))
        with pytest.raises(ModelUnreachableError, match="HTTP 500"):
            structured_call(picky, PROMPT, VALUES, max_retries=0)
    with OpenAIServer([text("no")]) as server, OpenAIServer([GOOD]) as other:
        with pytest.raises(ModelOutputError):
            structured_call(openai(server).with_fallbacks([openai(other)]), PROMPT, VALUES)
        assert not other.chats


def test_the_config_chooses_the_model() -> None:
    """A field or an alternative that the config names is the one that is asked."""
    with OpenAIServer([GOOD]) as server:
        model = WRAPPERS["configurable_fields"](openai(server))
        structured_call(model, PROMPT, VALUES, config={"configurable": {"heat": 0.25}})
        other = WRAPPERS["configurable_alternatives"](openai(server))
        with pytest.raises(ModelOutputError):
            structured_call(other, PROMPT, VALUES, config={"configurable": {"which": "other"}})
        assert [chat.body.get("temperature") for chat in server.chats] == [0.25]


# --- the bound on a reply ------------------------------------------------------------------------------------------


def test_a_reply_that_is_cut_off_is_asked_for_again_in_the_same_method() -> None:
    """Twice the bound, once; nothing goes to plain text."""
    with OpenAIServer([truncated('{"queries": ["a'), GOOD]) as server:
        assert structured_call(openai(server), PROMPT, VALUES).queries == ["a", "b"]
        assert server.asked == ["json_schema", "json_schema"]
        assert [bound_of(chat) for chat in server.chats] == [PROMPT.max_tokens, 2 * PROMPT.max_tokens]


def test_a_reply_that_never_ends_is_an_error_after_a_repair_in_the_same_method() -> None:
    """Three requests, each with a bound and a schema."""
    with OpenAIServer([truncated('{"queries": ["a')]) as server:
        with pytest.raises(ModelOutputError, match="breaks off"):
            structured_call(openai(server), PROMPT, VALUES)
        assert set(server.asked) == {"json_schema"} and len(server.asked) <= 4
        assert all(bound_of(chat) <= 2 * PROMPT.max_tokens for chat in server.chats)


@pytest.mark.parametrize("bound_by", ["constructor", "bind"])
def test_a_lower_bound_of_ones_own_wins(bound_by: str) -> None:
    """It is not doubled either; in place of a higher one the prompt's is sent."""
    with OpenAIServer([GOOD]) as server:
        structured_call(openai(server).bind(max_tokens=99_999), PROMPT, VALUES)
        assert bound_of(server.chats[0]) == PROMPT.max_tokens
    with OpenAIServer([truncated("A long answ")]) as server:
        model = (
            openai(server, max_tokens=7) if bound_by == "constructor" else openai(server).bind(max_tokens=7)
        )
        with use_notes() as notes:
            assert text_call(model, PROMPT, VALUES) == "A long answ"
        assert [bound_of(chat) for chat in server.chats] == [7]
    assert "token limit" in notes.texts[0]


def test_a_text_that_is_cut_off_twice_says_so() -> None:
    """``text_call`` has no other way to say that its text is not whole."""
    with OpenAIServer([truncated("One and")]) as server, use_notes() as notes:
        assert text_call(openai(server), PROMPT, VALUES) == "One and"
    assert "is not whole: the model reached its token limit" in notes.texts[0]


def test_a_model_that_thinks_gets_room_for_it() -> None:
    """Thoughts count as part of the reply; the next call begins with more room."""
    thinking = text("", finish="length", body={
        "id": "x", "object": "chat.completion", "created": 1, "model": "test",
        "choices": [{"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": ""}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1024, "total_tokens": 1033,
                  "completion_tokens_details": {"reasoning_tokens": 1024}},
    })  # fmt: skip
    with OpenAIServer([thinking, GOOD]) as server:
        model = openai(server)
        assert structured_call(model, PROMPT, VALUES).queries == ["a", "b"]
        structured_call(model, PROMPT, VALUES)
        bounds = [bound_of(chat) for chat in server.chats]
    assert bounds[0] == PROMPT.max_tokens and bounds[1] == bounds[2] > 16_000


def test_an_endpoint_that_refuses_the_bound_is_asked_without() -> None:
    """The endpoint's refusal is remembered, and is no refusal of the method."""
    refusal = error(400, "Unsupported parameter: 'max_tokens' is not supported with this model.")
    with OpenAIServer([refusal, GOOD]) as server:
        model = openai(server)
        structured_call(model, PROMPT, VALUES)
        structured_call(model, PROMPT, VALUES)
        assert server.asked == ["json_schema"] * 3
        assert [bound_of(chat) for chat in server.chats] == [PROMPT.max_tokens, None, None]


def test_the_bound_goes_into_the_field_of_the_class() -> None:
    """OpenAI's own classes, and classes that have other names for it; a class without one is left alone."""

    class Google(FakeListChatModel):
        max_output_tokens: int | None = None

    class Ollama(FakeListChatModel):
        num_predict: int | None = -1

    own = ChatOpenAI(model="gpt-5.5", api_key="sk-x")
    azure = AzureChatOpenAI(
        model="m", azure_endpoint="https://x.openai.azure.com", api_key="sk-x", api_version="2024-10-21"
    )
    for model in (own, azure):
        changed, _, sent = with_bound(model, {}, 50)
        payload = changed._get_request_payload("hello")
        assert (sent, payload.get("max_completion_tokens"), payload.get("max_tokens")) == (50, 50, None)
    google, _, _ = with_bound(Google(responses=["x"]), {}, 50)
    ollama, _, _ = with_bound(Ollama(responses=["x"]), {}, 50)
    assert (google.max_output_tokens, ollama.num_predict) == (50, 50)
    plain = FakeListChatModel(responses=["x"])
    assert with_bound(plain, {"stop": ["."]}, 50) == (plain, {"stop": ["."]}, None)


@pytest.mark.parametrize("prompt", [
    ChatPromptTemplate([("user", "{question} {count}")]),
    prompt_from_text(
        '---\nname: mine\ndescription: d\nversion: 1\ninput:\n  question: q\n  count: c\n---\n{{role "user"}}\n'
        "{{question}} {{count}}\n",
        name="mine",
    ),
])  # fmt: skip
def test_a_prompt_of_ones_own_has_the_default_bound(prompt: Any) -> None:
    """A reply never runs on for ever."""
    with OpenAIServer([GOOD]) as server:
        structured_call(openai(server), prompt, VALUES, Queries)
        assert bound_of(server.chats[0]) == DEFAULT_MAX_TOKENS


# --- the context of a model ----------------------------------------------------------------------------------------

TOO_LONG = [
    ("request (6031 tokens) exceeds the available context size (4096 tokens), try increasing it", 6031, 4096),
    (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the "
        "messages, 500 in the completion). Please reduce the length of the messages.", 4500, 4096,
    ),
    ("This model's maximum context length is 8,192 tokens. Your messages resulted in 10,240 tokens.", 10240, 8192),
    ("prompt is too long: 210000 tokens > 200000 maximum", 210000, 200000),
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease", 190000, 200000),
    ("the input token count is 1200000 but model only supports up to 1048576.", 1200000, 1048576),
    ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 140000, 131072),
    ("max_tokens must be at least 1, got -904.", None, None),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1200000, 1048576),
    ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 40000, 32768),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", 5000, 4081),
    ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 5000, 4096),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 6000]", None, 6000),
    ("Input is too long for requested model.", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("words", "given", "limit"), TOO_LONG)
def test_a_prompt_that_is_too_long_is_told_with_the_numbers(
    words: str, given: int | None, limit: int | None
) -> None:
    """As servers and providers say it; one request, no method is blamed."""
    with OpenAIServer([error(400, words)]) as server:
        with pytest.raises(ContextLengthError, match="prompt is too long for the model at http") as caught:
            structured_call(openai(server), load_prompt("condense"), {"history": "", "question": "Q"})
        assert len(server.chats) <= 2 and set(server.asked) == {"json_schema"}
    assert (caught.value.given, caught.value.limit) == (given, limit)
    if given and limit and given > limit:
        assert f"{limit:,} tokens, {given:,} were sent" in str(caught.value)
    assert "RAG_KIT_CONTEXT_TOKENS" in str(caught.value)


def small_context(request: Recorded) -> Any:
    """A server with a context of 1,000 tokens, of four characters each."""
    tokens = len(request.prompt) // 4
    if tokens > 1_000:
        return error(400, f"request ({tokens} tokens) exceeds the available context size (1000 tokens)")
    return text("The pump starts at 40 degrees [1].")


def test_a_graph_leaves_passages_out_where_the_context_is_too_small() -> None:
    """By the endpoint's words at first, before any request after that; a note says so."""
    texts = [f"The pump number {n} starts at 40 degrees. " + "It is blue. " * 60 for n in range(6)]
    with OpenAIServer([small_context]) as server:
        graph = build_plain_rag(BM25Retriever.from_texts(texts, k=6), openai(server))
        for requests in (2, 3):
            result = graph.invoke({"question": "When does the pump start?"})
            assert "40 degrees" in result["answer"]
            assert any("passages were left out of the prompt" in note for note in result["notes"])
            assert len(server.chats) == requests


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_a_model_without_a_name_says_of_its_context_holds_for_the_call(asynchronous: bool) -> None:
    """Nothing is kept of it for the next call, but this one is made again with fewer passages."""
    sizes: list[int] = []

    class TooLongError(Exception):
        status_code = 400

    class Small(FakeListChatModel):
        def _call(self, messages: Any, *arguments: Any, **more: Any) -> str:
            sizes.append(sum(len(str(message.content)) for message in messages) // 4)
            if sizes[-1] > 1_000:
                raise TooLongError(
                    f"request ({sizes[-1]} tokens) exceeds the available context size (1000 tokens)"
                )
            return "The pump starts at 40 degrees [1]."

    values = {"question": "Q", "passages": render_passages(["word " * 700, "other " * 700])}
    asked = Small(responses=[""]), load_prompt("answer"), values
    answer = asyncio.run(atext_call(*asked)) if asynchronous else text_call(*asked)
    assert answer.startswith("The pump") and len(sizes) == 2


def test_calls_side_by_side_learn_a_small_context_each() -> None:
    """One that is refused after another one has learned the context is made again, too."""

    class TooLongError(Exception):
        status_code = 400

    class Small(FakeListChatModel):
        model_name: str = "side by side"
        max_tokens: int | None = None

        def _call(self, *arguments: Any, **more: Any) -> str:
            time.sleep(0.2)
            if (self.max_tokens or 9999) > 500:
                raise TooLongError(
                    "This model's maximum context length is 1000 tokens. However, you requested 1500 tokens."
                )
            return "At 40 degrees."

    model, prompt = Small(responses=[""]), ChatPromptTemplate([("user", "{question}")])
    calls = [lambda: text_call(model, prompt, {"question": "When?"})] * 3
    assert fan_out(calls).values == ["At 40 degrees."] * 3


def test_a_known_context_is_kept_without_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """``context_tokens`` and its variable; the reply has a quarter of it."""
    passages = render_passages(["word " * 700, "other " * 700])
    values = {"question": "Q", "passages": passages}
    with OpenAIServer([small_context]) as server:
        model = chat_model("openai:test", base_url=server.url, api_key="sk-x", context_tokens=1_000)
        assert text_call(model, load_prompt("answer"), values).startswith("The pump")
        monkeypatch.setenv("RAG_KIT_CONTEXT_TOKENS", "1000")
        model = chat_model("openai:test", base_url=server.url, api_key="sk-x")
        assert text_call(model, load_prompt("answer"), values).startswith("The pump")
        assert [bound_of(chat) for chat in server.chats] == [250, 250]
        assert "other other" not in server.chats[0].prompt and "word word" in server.chats[0].prompt


@pytest.mark.parametrize("value", ["many", "0", "-5", 1.5, True])
def test_a_context_that_is_no_number_is_refused(value: Any) -> None:
    """The message says what is allowed."""
    with pytest.raises(ConfigurationError, match=r"context_tokens=.* is no number of tokens"):
        chat_model("openai:test", api_key="sk-x", context_tokens=value)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_requests_that_wrappers_add_are_charged(asynchronous: bool) -> None:
    """Each of ``with_retry`` and of a model that stands by, noted once, counts; a used-up cap is the error."""

    def run(**caps: int) -> Any:
        model = openai(server, max_retries=0).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        return structured(asynchronous, model.with_fallbacks([openai(other)]), max_retries=0, **caps)

    with OpenAIServer([error(500)]) as server, OpenAIServer([GOOD]) as other:
        with use_budget(Budget()) as budget, use_notes() as notes:
            assert run().queries == ["a", "b"]
        (note,) = notes.texts
        assert "test failed: ModelUnreachableError" in note and note.endswith("test was asked")
        assert other.asked == ["json_schema"]
        assert budget.calls == len(server.chats) + len(other.chats) == 3
        with pytest.raises(BudgetExceededError, match="max_calls=2"):
            run(max_calls=2)
        assert (len(server.chats), len(other.chats)) == (4, 1)
