"""route_prompt and PromptRouter: the template that suits a question."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from support.blocking import blockbuster_ctx
from support.embedding import WordEmbeddings
from support.rewriters import Scripted, both_raise

from rag_kit.errors import BudgetExceededError, InvalidInputError, ModelError, ModelOutputError, RagKitError
from rag_kit.models import chat_model
from rag_kit.retrieval.routing.prompts import PromptRouter, aroute_prompt, route_prompt

TUTORS = ["tutor_physics", "tutor_maths"]
QUESTIONS = {
    "Why does a magnet attract iron?": "tutor_physics",
    "How much energy does a falling stone have?": "tutor_physics",
    "What is the derivative of x squared?": "tutor_maths",
    "Prove that there are infinitely many prime numbers.": "tutor_maths",
    "为什么匀速圆周运动的物体有加速度？": "tutor_physics",
    "光为什么会折射？": "tutor_physics",
    "怎样解一元二次方程？": "tutor_maths",
    "这个函数的导数是什么？": "tutor_maths",
}


def reply(name: str) -> str:
    return json.dumps({"choices": [{"name": name, "reason": "it suits"}]})


WAYS: dict[str, Any] = {
    "keywords": lambda wanted: {},
    "extractive": lambda wanted: {"how": "model", "llm": chat_model("extractive")},
    "model": lambda wanted: {"how": "model", "llm": Scripted(script=reply(wanted))},
    "function": lambda wanted: {"how": lambda question: wanted},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("question", QUESTIONS)
async def test_the_tutor_that_suits(way: str, question: str) -> None:
    """The shipped tutors are told apart, in the language of the question, sync and async alike."""
    wanted = QUESTIONS[question]
    options = WAYS[way](wanted)
    prompt = route_prompt(question, TUTORS, **options)
    assert prompt.metadata["name"] == wanted
    assert prompt.metadata["language"] == ("en" if question.isascii() else "zh")
    assert await aroute_prompt(question, TUTORS, **options) == prompt


async def test_none_suits() -> None:
    """Without a prompt that suits there is None, the fallback, or an exception; a chain always needs one."""
    question = "Who wrote Emma?"
    assert route_prompt(question, TUTORS) is None and await aroute_prompt(question, TUTORS) is None
    with pytest.raises(RagKitError):
        route_prompt(question, TUTORS, on_none="raise")
    prompts = {
        "physics": "tutor_physics",
        "maths": "tutor_maths",
        "any": PromptTemplate.from_template("{question}"),
    }
    assert route_prompt(question, prompts, fallback="any") == prompts["any"]
    router = PromptRouter(TUTORS)
    assert not router.route(question)
    await both_raise(RagKitError, "fallback", router, {"question": question})


async def test_in_a_chain() -> None:
    """`{"question": ...} | router | model` fills in the prompt that suits."""
    model = Scripted(script="An answer.")
    chain = {"question": lambda text: text} | PromptRouter(TUTORS) | model
    assert chain.invoke("Why does a magnet attract iron?").content == "An answer."
    assert (await chain.ainvoke("怎样解一元二次方程？")).content == "An answer."
    assert chain.batch(["What is a prime number?"])[0].content == "An answer."
    first, second, third = model.prompts
    assert (
        "<task>tutor_physics</task>" in first
        and "<question>Why does a magnet attract iron?</question>" in first
    )
    assert "<task>tutor_maths</task>" in second and "你教数学" in second
    assert "<task>tutor_maths</task>" in third
    router = PromptRouter(TUTORS)
    assert router.invoke("What is a prime number?") == router.invoke({"question": "What is a prime number?"})
    other = PromptRouter({"a": ChatPromptTemplate([("user", "number {question} {more}")])})
    assert other.invoke({"question": "number", "more": "x"}).to_string() == "Human: number number x"
    for wrong in ({"query": "x"}, 3, {"question": 3}):
        with pytest.raises(InvalidInputError, match="'question'"):
            router.invoke(wrong)


def test_a_trace_says_which_prompt_was_picked() -> None:
    """The run of the template is a child of the router's, and its metadata names the choice."""
    seen: list[Any] = []

    class Watch(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            seen.append((kwargs["parent_run_id"], kwargs["metadata"]))

    config: Any = {"callbacks": [Watch()], "metadata": {"who": "me"}}
    PromptRouter(TUTORS).invoke({"question": "What is a prime number?"}, config)
    (outer, inner) = seen
    assert outer[0] is None and inner[0] is not None and inner[1]["who"] == "me"
    assert (inner[1]["routed_to"], inner[1]["routed_by"]) == ("tutor_maths", "keywords")


async def test_similarity_embeds_descriptions_once() -> None:
    """One router embeds its descriptions once for all questions; descriptions given by hand take part."""
    embeddings = WordEmbeddings(512)
    prompts = {
        "physics": (
            PromptTemplate.from_template("P {question}"),
            "Magnets, light, motion",
            ["Why does it fall?"],
        ),
        "maths": (PromptTemplate.from_template("M {question}"), "Numbers, equations"),
    }
    router = PromptRouter(prompts, embeddings=embeddings)
    assert router.invoke({"question": "Why does it fall?"}).to_string().startswith("P ")
    assert (await router.ainvoke({"question": "equations with numbers"})).to_string().startswith("M ")
    assert embeddings.batches == 1
    assert router.route("Why does it fall?").how == "similarity"


async def test_a_failing_router() -> None:
    """The fallback is used if there is one, and said so; else, or with on_error="raise", there is an exception."""
    broken = {"how": "model", "llm": Scripted(script=ConnectionError("no route, api_key=sk-canary12345"))}
    router = PromptRouter(TUTORS, fallback="tutor_maths", **broken)
    route = router.route("Why?")
    assert route.names == ("tutor_maths",) and route.notes[0].startswith("degraded: route failed")
    assert "canary" not in str(route) and (await router.aroute("Why?")).names == ("tutor_maths",)
    with pytest.raises(ModelOutputError, match="no route"):
        route_prompt("Why?", TUTORS, **broken)

    def unknown(question: str) -> list[str]:
        raise ValueError("bad subject; allowed: physics, maths")

    note = PromptRouter(TUTORS, fallback="tutor_maths", how=unknown).route("Why?").notes[0]
    assert note.endswith("bad subject; allowed: physics, maths; the fallback is used")
    with pytest.raises(ModelOutputError, match=r"allowed: physics, maths\. Give a fallback="):
        await aroute_prompt("Why?", TUTORS, how=unknown)
    with pytest.raises(ModelError, match="no route"):
        route_prompt("Why?", TUTORS, on_error="raise", **broken)
    with pytest.raises(ModelOutputError, match="max_calls"):
        await aroute_prompt("Why?", TUTORS, llm=Scripted(script=reply("tutor_maths")), max_calls=0)
    with pytest.raises(BudgetExceededError):
        route_prompt("Why?", TUTORS, llm=Scripted(script=""), max_calls=0, on_error="raise")


async def test_nothing_blocks_the_event_loop() -> None:
    """Prompt files are read on a thread."""
    with blockbuster_ctx():
        assert await aroute_prompt("What is a prime number?", TUTORS)
    router = PromptRouter(TUTORS)
    with blockbuster_ctx():
        assert await router.ainvoke({"question": "What is a prime number?"})


def test_descriptions() -> None:
    """A prompt's description comes from the caller, its file, its metadata, or its own text."""
    plain = ChatPromptTemplate([("system", "You teach optics."), ("user", "{question}")])
    about = PromptTemplate(
        template="{question}", input_variables=["question"], metadata={"description": "iron"}
    )
    prompts = {"own": ("tutor_physics", "magnets"), "file": "tutor_maths", "metadata": about, "text": plain}
    router = PromptRouter(prompts)
    for question, name in (
        ("magnets?", "own"),
        ("equations?", "file"),
        ("iron?", "metadata"),
        ("optics?", "text"),
    ):
        assert router.route(question).names == (name,)


def test_wrong_arguments() -> None:
    """Wrong prompts, names and values are refused, by name."""
    template = PromptTemplate.from_template("{question}")
    for prompts, options, says in (
        ("tutor_maths", {}, "prompts is str"),
        (template, {}, "prompts is PromptTemplate"),
        ([template], {}, "mapping of name to prompt"),
        ([], {}, "sources"),
        ({"a": 3}, {}, "'a' is int"),
        ({"a": {"en": template}}, {}, "'a' is dict"),
        ({"a": template}, {"most": 2}, "most is 1"),
        ({"a": template}, {"mode": 2}, "'mode' is no argument"),
        ({"a": template}, {"on_none": "all"}, "only one prompt"),
        ({"a": template}, {"fallback": "b"}, "fallback names"),
        ({"a": template}, {"language": "fr"}, "language"),
        ({"a": template}, {"how": "guess"}, "how='guess'"),
        ({"a": template}, {"max_calls": -1}, "max_calls"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            PromptRouter(prompts, **options)
    with pytest.raises(InvalidInputError, match="tutor_phisics"):
        PromptRouter(["tutor_phisics"])
    with pytest.raises(InvalidInputError, match="must be a string"):
        route_prompt(3, TUTORS)  # type: ignore[arg-type]
