"""Self-RAG with log-probabilities, over real HTTP through langchain-openai, and the tokens that hold labels."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from support.graphs import fixed
from support.openai_server import OpenAIServer, Recorded, Reply, text, tokens

from rag_kit.errors import ModelUnauthorizedError
from rag_kit.graphs import build_self_rag
from rag_kit.graphs.self_rag.logprobs import AnswerToken, label_probabilities, read_tokens
from rag_kit.graphs.self_rag.ranking import WORTH

RIGHT = "The fan starts at 60 degrees."
WRONG = "The fan was painted in 1990."
QUESTION = "At how many degrees does the fan start?"


def task_of(request: Recorded) -> str:
    found = re.search(r"<task>(\w+)</task>", request.prompt)
    assert found is not None
    return found[1]


def decision(yes: float) -> Reply:
    """The token that is written is always no: the probability decides, not the label."""
    return tokens('{"', "retrieve", '":"', ("no", {"no": 1 - yes, "yes": yes}), '"}')


def critique(texts: list[str]) -> Reply:
    """Labels of statements whose tokens have these probabilities; what is left goes to the other labels."""
    parts: list[Any] = ['{"labels": [']
    for number, said in enumerate(texts, start=1):
        relevance, full, partial, five = (0.9, 0.8, 0.1, 0.5) if said == RIGHT else (0.6, 0.5, 0.25, 0.25)
        parts += [
            ", " if number > 1 else "",
            f'{{"id": {number}, "relevance": "',
            ("relevant", {"relevant": relevance, "irr": 1 - relevance}),
            '", "support": "',
            ("full", {"full": full, "part": partial, "none": max(1e-9, 1 - full - partial)}),
            '", "usefulness": ',
            ("5", {"5": five, "3": 1 - five}),
            "}",
        ]
    return tokens(*filter(None, parts), "]}")


def serve(yes: float = 0.3) -> Callable[[Recorded], Reply]:
    """The wrong passage is continued with more certainty, but its critique is worse."""

    def answer(request: Recorded) -> Reply:
        task = task_of(request)
        right = RIGHT in request.prompt
        if task == "retrieve_needed":
            return decision(yes)
        if task == "continue_answer":
            if right:
                return tokens(
                    ("The fan starts ", {"The fan starts ": 0.5}), ("at 60 degrees.", {"at 60 degrees.": 0.5})
                )
            return tokens((WRONG, {WRONG: 0.9}))
        if task == "critique":
            statements = request.prompt.partition("<statements>")[2]
            return critique(re.findall(r'<passage id="\d+">(.*?)</passage>', statements))
        if task == "continue_unaided":
            return tokens(("It starts.", {"It starts.": 0.25}))
        return tokens('{"usefulness": ', ("4", {"4": 0.5, "5": 0.5}), "}")

    return answer


def model(server: OpenAIServer, **settings: Any) -> ChatOpenAI:
    return ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", **settings)  # type: ignore[arg-type]


def by_passage(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["text"]: one for one in result["trace"] if one["segment"] == 1}


def check(result: dict[str, Any]) -> None:
    """Against f by hand."""
    assert result["scoring"] == "logprobs"
    assert result["answer"] == f"{RIGHT}[1]"
    right, wrong = by_passage(result)[RIGHT], by_passage(result)[WRONG]
    # p(y) = (0.5 x 0.5)^(1/2); 0.9; 0.8 + 0.05; 0.5 x 1 + 0.5 x 0
    assert right["parts"] == pytest.approx({"p": 0.5, "relevance": 0.9, "support": 0.85, "usefulness": 0.5})
    assert right["f"] == pytest.approx(0.5 + 0.9 + 0.85 + 0.25)
    # 0.9; 0.6; 0.5 + 0.125; 0.25
    assert wrong["parts"] == pytest.approx({"p": 0.9, "relevance": 0.6, "support": 0.625, "usefulness": 0.25})
    assert wrong["f"] == pytest.approx(0.9 + 0.6 + 0.625 + 0.125)
    assert right["probabilities"]["support"] == pytest.approx({"full": 0.8, "partial": 0.1, "none": 0.1})
    assert (right["won"], wrong["won"]) == (True, False)


async def test_f_by_hand_over_http() -> None:
    """Label probabilities and p(y) come from the server's log-probabilities, in both forms."""
    with OpenAIServer([serve()]) as server:
        graph = build_self_rag(fixed(WRONG, RIGHT), model(server), output="full")
        check(graph.invoke({"question": QUESTION}, context={"max_segments": 1}))
        check(await graph.ainvoke({"question": QUESTION}, context={"max_segments": 1}))
        assert all(request.body["logprobs"] is True for request in server.chats)
        assert all(request.body["top_logprobs"] == 10 for request in server.chats)
        assert len(server.chats) == 2 * (1 + 2 + 1)  # both continuations are judged in one call


def test_log_probabilities_of_a_stream() -> None:
    """Someone who listens makes the client stream; the scores are the same."""
    with OpenAIServer([serve()]) as server:
        graph = build_self_rag(fixed(WRONG, RIGHT), model(server), output="full")
        question, context = {"question": QUESTION}, {"max_segments": 1}
        state: dict[str, Any] = {}
        for kind, part in graph.stream(question, context=context, stream_mode=["messages", "values"]):  # type: ignore[arg-type]
            assert kind == "values"
            state = part
        check(state)
        streaming = build_self_rag(fixed(WRONG, RIGHT), model(server, streaming=True), output="full")
        check(streaming.invoke(question, context=context))  # type: ignore[arg-type]
        assert any(request.body.get("stream") for request in server.chats)


@pytest.mark.parametrize(("yes", "searches"), [(0.3, True), (0.21, True), (0.19, False)])
def test_delta_is_held_against_the_probability_and_not_the_label(yes: float, searches: bool) -> None:
    """The model writes "no" each time; above 0.2 documents are looked up all the same."""
    with OpenAIServer([serve(yes)]) as server:
        graph = build_self_rag(fixed(RIGHT), model(server), output="full")
        result = graph.invoke({"question": QUESTION}, context={"max_segments": 1})
    assert result["beams"][0]["segments"][0]["passage"] == (0 if searches else None)
    if not searches:
        assert result["status"] == "unsourced"
        assert result["trace"][0]["f"] == pytest.approx(0.25 + 0.5 * 0.75)


def labelled(request: Recorded) -> Any:
    """The same answers without log-probabilities."""
    answer = serve()(request)
    if task_of(request) == "retrieve_needed":
        return {"retrieve": "yes"}
    return (
        text(answer.content or "")
        if task_of(request).startswith("continue")
        else json.loads(answer.content or "")
    )


@pytest.mark.parametrize(
    ("refuse", "scoring", "asked_for"),
    [([], "auto", [True, False, False, False]), (["logprobs"], "auto", None), ([], "labels", [False] * 4)],
    ids=["ignores them", "refuses them", "is not asked for them"],
)
def test_a_server_without_log_probabilities_falls_back_to_labels(
    refuse: list[str], scoring: Any, asked_for: list[bool] | None
) -> None:
    """One note, labels count as certain, p(y) is 1; 400 for the unknown setting is no end."""
    with OpenAIServer([labelled], refuse=refuse) as server:
        graph = build_self_rag(fixed(WRONG, RIGHT), model(server), scoring=scoring, output="full")
        result = graph.invoke({"question": QUESTION}, context={"max_segments": 1})
        assert asked_for is None or [bool(r.body.get("logprobs")) for r in server.chats] == asked_for
    assert (result["scoring"], result["status"]) == ("labels", "grounded")
    noted = any(note.startswith("scoring: the model gave no log-probabilities") for note in result["notes"])
    assert noted == (scoring == "auto")
    assert set(by_passage(result)[RIGHT]["parts"].values()) == {1.0}


def test_a_refused_key_is_an_error_and_no_fallback() -> None:
    """401 comes through by name."""
    with OpenAIServer([serve()], key="sk-other") as server:
        graph = build_self_rag(fixed(RIGHT), model(server), output="full")
        with pytest.raises(ModelUnauthorizedError):
            graph.invoke({"question": QUESTION})


def answer_tokens(*parts: tuple[str, dict[str, float]] | str) -> list[AnswerToken]:
    """Tokens with the probabilities of their alternatives."""
    made = []
    for part in parts:
        text, known = (part, {part: 1.0}) if isinstance(part, str) else part
        top = tuple((each, math.log(p)) for each, p in known.items())
        made.append(AnswerToken(text, math.log(known.get(text, 1.0)), top))
    return made


def test_label_probabilities_are_read_at_the_label() -> None:
    """Alternatives in other spellings of one label add up; what begins no label counts for none."""
    answer = answer_tokens(
        '{"',
        "relevance",
        '":"',
        ("relevant", {"relevant": 0.5, "Relevant": 0.1, "irre": 0.2, " irrelevant": 0.1, "the": 0.1}),
        '","',
        "support",
        '": "',
        ("par", {"par": 0.6, "full": 0.3, "no": 0.05, "none": 0.01}),
        "tial",
        '", "usefulness": ',
        ("4", {"4": 0.7, "5": 0.2, "10": 0.1}),
        "}",
    )
    relevance = label_probabilities(answer, "relevance", "relevant", WORTH["relevance"])
    support = label_probabilities(answer, "support", "partial", WORTH["support"])
    usefulness = label_probabilities(answer, "usefulness", "4", WORTH["usefulness"])
    assert relevance == pytest.approx({"relevant": 0.6, "irrelevant": 0.3})
    assert support == pytest.approx({"full": 0.3, "partial": 0.6, "none": 0.06})
    assert usefulness == pytest.approx({"1": 0, "2": 0, "3": 0, "4": 0.7, "5": 0.2})


@pytest.mark.parametrize("label", ["full", "none"])
def test_tokens_that_show_another_label_say_nothing(label: str) -> None:
    """An answer that was mended afterwards is not scored by the tokens of what stood there before."""
    answer = answer_tokens('{"support": "', ("partial", {"partial": 0.9, "full": 0.1}), '"}')
    assert label_probabilities(answer, "support", label, WORTH["support"]) is None
    assert label_probabilities([], "support", label, WORTH["support"]) is None


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"logprobs": None},
        {"logprobs": []},
        {"logprobs": {"content": None}},
        {"logprobs": {"content": [{"token": "a"}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": 0.7}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": float("nan")}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": True}]}},
        {"logprobs": {"content": ["a"]}},
    ],
)
def test_malformed_log_probabilities_are_none(metadata: Any) -> None:
    """A server that says nonsense is one without log-probabilities."""
    assert read_tokens(AIMessage("", response_metadata=metadata or {})) == [] == read_tokens(None)
