"""DecompositionRetriever: a question split into parts, side by side or one after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.rewriters import Scripted, Words, both, corpus, ids, notes, sent

from rag_kit.documents import get_provenance
from rag_kit.retrieval import DecompositionRetriever

QUESTION = "Was the author of Emma younger than the author of Ulysses?"
PARTS = ["Who wrote Emma?", "Who wrote Ulysses?"]
DOCS = corpus(
    emma="Jane Austen wrote Emma.",
    ulysses="James Joyce wrote Ulysses.",
    austen="Austen was born in 1775.",
    joyce="Joyce was born in 1882.",
    author="Was the author younger than the author?",
    author2="younger author of than the",
)


def reply(*queries: str) -> str:
    return json.dumps({"queries": list(queries)}, ensure_ascii=False)


def made(script: Any, docs: Any = DOCS, **options: Any) -> DecompositionRetriever:
    return DecompositionRetriever.from_llm(Scripted(script=script), Words(docs=docs), **options)


def two_hops(prompt: str) -> str:
    """A model that needs the answer to the first sub-question to ask the second."""
    if "<task>answer</task>" in prompt:
        return "Jane Austen wrote Emma. [1]" if "Who wrote" in prompt else "In 1775 [1]."
    if "In 1775" in prompt:
        return reply()
    if "Jane Austen" in prompt.split("<history>")[-1]:
        return reply("When was Jane Austen born?")
    return reply("Who wrote Emma?", "When was she born?")


async def test_every_part_is_represented() -> None:
    """The best document of each sub-question comes first, though the question itself ranks others before them."""
    retriever = made(reply(*PARTS), k=2, weights=[9, 1])
    assert not {"emma", "ulysses"} & set(ids(retriever.retriever.invoke(QUESTION, None, k=2)))
    found = await both(retriever, QUESTION)
    assert ids(found) == ["emma", "ulysses"] and sent(found) == [QUESTION, *PARTS]
    stage = next(s for s in get_provenance(found[0])["stages"] if s.get("role") == "sub_question")
    assert (stage["query"], stage["rank"]) == (PARTS[0], 1)
    assert "author" in ids(await both(made(reply(*PARTS), k=4, weights=[9, 1]), QUESTION))
    json.dumps([get_provenance(doc) for doc in found], allow_nan=False)


async def test_too_small_a_k_is_told() -> None:
    """If k is smaller than the number of parts, the notes say that not all are represented."""
    found = await both(made(reply(*PARTS)), QUESTION, k=1)
    assert len(found) == 1 and any("not all are represented" in note for note in notes(found))


async def test_parts_that_find_nothing_are_told() -> None:
    """A sub-question without a result is named in the notes of the others."""
    found = await both(made(reply("Who wrote Emma?", "zzz")), QUESTION)
    assert "emma" in ids(found) and "nothing found for 'zzz'" in notes(found)


async def test_a_question_without_parts() -> None:
    """An empty list means that the question is searched for as it is; that is no failure."""
    for mode in ("parallel", "serial"):
        retriever = made(reply(), mode=mode)
        found = await both(retriever, QUESTION)
        assert sent(found) == [QUESTION] and ids(found) == ids(retriever.retriever.invoke(QUESTION))[:4]
        assert not any("degraded" in note for note in notes(found))
        assert any("no parts" in note for note in notes(found))


@pytest.mark.parametrize("written", [reply(QUESTION), reply("谁写了爱玛？"), "I'm sorry, I can't.", ""])
async def test_useless_parts(written: str) -> None:
    """The question repeated, another language, a refusal, nothing: the plain search, and a note."""
    for mode in ("parallel", "serial"):
        found = await both(made(written, mode=mode), QUESTION)
        assert sent(found) == [QUESTION]
        assert "degraded: decompose: searched with the question alone" in notes(found)


async def test_serial_sees_the_answers() -> None:
    """The second sub-question holds the first one's answer; it stops when nothing more is asked."""
    retriever = made(two_hops, mode="serial", n=4)
    question = "When was the author of Emma born?"
    assert ids(retriever.retriever.invoke(question, None, k=2)) != ["emma", "austen"]
    found = await both(retriever, question, k=2)
    assert ids(found) == ["emma", "austen"]
    assert sent(found) == [question, "Who wrote Emma?", "When was Jane Austen born?"]
    assert get_provenance(found[0])["stages"][-1]["steps"] == [
        {"query": "Who wrote Emma?", "answer": "Jane Austen wrote Emma."},
        {"query": "When was Jane Austen born?", "answer": "In 1775."},
    ]
    branches = [stage.get("branch") for stage in get_provenance(found[1])["stages"]]
    assert branches[:-1] == sorted(branches[:-1])
    prompts = retriever.llm.prompts[:5]  # type: ignore[attr-defined]
    assert '<turn role="assistant">Jane Austen wrote Emma.</turn>' in prompts[2]
    assert '<passage id="1">Jane Austen wrote Emma.</passage>' in prompts[1]
    assert [f"<count>{n}</count>" in prompts[i] for n, i in ((4, 0), (3, 2), (2, 4))] == [True] * 3


async def test_serial_is_bounded() -> None:
    """n sub-questions at most, the last one without an answer; a model that repeats itself ends it too."""
    count = iter(range(1000))

    def endless(prompt: str) -> str:
        return "yes" if "<task>answer</task>" in prompt else reply(f"Who wrote {next(count)}?")

    retriever = made(endless, mode="serial", n=3)
    found = retriever.invoke(QUESTION)
    assert len(sent(found)) == 4 and len(retriever.llm.prompts) == 5  # type: ignore[attr-defined]
    stuck = made(lambda p: "yes" if "<task>answer" in p else reply(*PARTS), mode="serial", n=9)
    assert sent(await both(stuck, QUESTION)) == [QUESTION, *PARTS]
    steps = get_provenance(found[0])["stages"][-1]["steps"]
    assert [step["answer"] for step in steps] == ["yes", "yes", None]


async def test_serial_without_an_answer() -> None:
    """The model reads that a part is not in the documents, or was not found at all."""
    declined = made(
        lambda p: "The answer is not in the documents." if "<task>answer" in p else reply(*PARTS),
        mode="serial",
    )
    await both(declined, QUESTION)
    assert "not in the documents" in declined.llm.prompts[2]  # type: ignore[attr-defined]
    nothing = made(lambda p: reply("zzz"), mode="serial")
    await nothing.ainvoke(QUESTION)
    assert not any("<task>answer" in prompt for prompt in nothing.llm.prompts)  # type: ignore[attr-defined]
    assert "<turn" in nothing.llm.prompts[1]  # type: ignore[attr-defined]


async def test_serial_degrades() -> None:
    """An answer, a later plan or a later search that fails is noted; what was found before is returned."""

    def script(failing: str) -> Callable[[str], Any]:
        def answer(prompt: str) -> Any:
            later = "<turn" in prompt
            if failing == ("answer" if "<task>answer" in prompt else "plan" if later else ""):
                return ConnectionError("down")
            return "Jane" if "<task>answer" in prompt else reply("Who is Jane?" if later else PARTS[0])

        return answer

    found = await both(made(script("answer"), mode="serial", n=2), QUESTION)
    assert sent(found) == [QUESTION, PARTS[0], "Who is Jane?"]
    assert any("answer 1 failed" in note for note in notes(found))
    found = await both(made(script("plan"), mode="serial"), QUESTION)
    assert sent(found) == [QUESTION, PARTS[0]] and any("sub-question 2 failed" in n for n in notes(found))
    broken = DecompositionRetriever.from_llm(
        Scripted(script=script("none")), Words(docs=DOCS, fail_on="Jane"), mode="serial", n=2
    )
    found = await both(broken, QUESTION)
    assert "emma" in ids(found) and any("query 3 failed" in note for note in notes(found))


async def test_serial_keeps_to_caps() -> None:
    """max_calls ends the chain; a deadline holds over all steps."""
    found = await both(made(two_hops, mode="serial", max_calls=2), QUESTION)
    assert sent(found) == [QUESTION, "Who wrote Emma?"] and any("budget" in note for note in notes(found))
    endless = Scripted(script=lambda p: reply(f"Who wrote {len(p)} {time.monotonic_ns()}?"), delay=0.1)
    slow = DecompositionRetriever.from_llm(endless, Words(docs=DOCS), mode="serial", n=32, deadline=0.6)
    for call in (slow.invoke, None):
        begun = time.monotonic()
        found = call(QUESTION) if call else await slow.ainvoke(QUESTION)
        assert time.monotonic() - begun < 1.6 and 1 < len(sent(found)) < 12


async def test_filters_hold_at_every_step() -> None:
    """The model reads the caller's own documents alone between the steps."""
    docs = [doc.model_copy(update={"metadata": {**doc.metadata, "tenant": "a"}}) for doc in DOCS]
    docs += corpus(spy="Who wrote Emma? The other tenant.")
    docs[-1].metadata["tenant"] = "b"
    retriever = made(two_hops, docs, mode="serial", filter={"tenant": "a"})
    found = await both(retriever, QUESTION)
    assert {doc.metadata["tenant"] for doc in found} == {"a"}
    assert not any("other tenant" in prompt for prompt in retriever.llm.prompts)  # type: ignore[attr-defined]


async def test_chinese() -> None:
    """Chinese questions take the Chinese prompts in both modes."""
    docs = corpus(a="长江有六千公里长", b="黄河有五千公里长", c="下雨")
    question = "两条大河哪条更长？"
    retriever = made(reply("长江有多长？", "黄河有多长？"), docs, k=2)
    assert set(ids(await both(retriever, question))) == {"a", "b"}
    assert "各自检索" in retriever.llm.prompts[0] or "单独检索" in retriever.llm.prompts[0]  # type: ignore[attr-defined]
    serial = made(
        lambda p: "六千公里[1]。" if "<task>answer" in p else reply("长江有多长？", "黄河有多长？"),
        docs,
        mode="serial",
    )
    await both(serial, question)
    assert "分步求解" in serial.llm.prompts[0] and "编号段落" not in serial.llm.prompts[0]  # type: ignore[attr-defined]
    assert "带编号的段落" in serial.llm.prompts[1]  # type: ignore[attr-defined]
