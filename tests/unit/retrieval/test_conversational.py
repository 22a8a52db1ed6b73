"""ConversationalRetriever: follow-up questions made complete before they are searched for."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from support.rewriters import Scripted, Words, both, both_raise, corpus, ids, notes, sent

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval import ConversationalRetriever

QUESTION = "When did she die?"
COMPLETE = "When did Jane Austen die?"
HISTORY = [HumanMessage("Who wrote Emma?"), AIMessage("Jane Austen wrote it.")]
DOCS = corpus(austen="Jane Austen died, 1817: jane austen die", emma="Emma is a novel", she="when did she")


def made(script: Any = None, docs: Any = DOCS, **options: Any) -> ConversationalRetriever:
    script = json.dumps({"query": COMPLETE}) if script is None else script
    return ConversationalRetriever.from_llm(Scripted(script=script), Words(docs=docs), **options)


def prompts(retriever: ConversationalRetriever) -> list[str]:
    return retriever.llm.prompts  # type: ignore[attr-defined, no-any-return]


async def test_searches_for_the_complete_question() -> None:
    """The question made complete is searched for in place of the follow-up."""
    retriever = made()
    assert ids(retriever.retriever.invoke(QUESTION))[0] == "she"
    found = await both(retriever, QUESTION, history=HISTORY)
    assert sent(found) == [COMPLETE] and ids(found)[0] == "austen"
    stages = get_provenance(found[0])["stages"]
    assert stages[0]["role"] == "condensed" and stages[-1]["query"] == QUESTION
    assert '<turn role="assistant">Jane Austen wrote it.</turn>' in prompts(retriever)[0]
    assert sent(await both(made(include_original=True), QUESTION, history=HISTORY)) == [QUESTION, COMPLETE]


@pytest.mark.parametrize("mode", ["condense", "answer"])
@pytest.mark.parametrize("history", [None, [], [SystemMessage("Be kind.")], [HumanMessage(QUESTION)]])
async def test_no_model_call_at_the_first_turn(mode: str, history: Any) -> None:
    """Without turns before the question it is searched for as it is, and that is no degradation."""
    retriever = made(mode=mode)
    for found in (await both(retriever, QUESTION, history=history), retriever.invoke(QUESTION)):
        assert prompts(retriever) == [] and sent(found) == [QUESTION]
        assert notes(found) == []


async def test_answer_mode_searches_by_a_draft() -> None:
    """mode="answer" searches for a draft answer, written with the history in view."""
    retriever = made(json.dumps({"passages": ["Jane Austen died in 1817."]}), mode="answer")
    found = await both(retriever, QUESTION, history=HISTORY)
    assert ids(found) == ["austen"] and sent(found) == ["Jane Austen died in 1817."]
    assert get_provenance(found[0])["stages"][0]["role"] == "draft_answer"
    assert "<task>draft_answer</task>" in prompts(retriever)[0] and "wrote it" in prompts(retriever)[0]


@pytest.mark.parametrize(
    "history",
    [
        [("user", "Who wrote Emma?"), ("assistant", "Jane Austen wrote it.")],
        [{"role": "user", "content": "Who wrote Emma?"}, {"role": "ai", "content": "Jane Austen wrote it."}],
        SimpleNamespace(messages=HISTORY),
        [SystemMessage("Be kind."), *HISTORY, ToolMessage("tool", tool_call_id="1"), HumanMessage(QUESTION)],
    ],
)
async def test_forms_of_histories(history: Any) -> None:
    """Pairs, dicts, a history object, and a state that holds the question too give the same prompt."""
    retriever, plain = made(), made()
    await both(retriever, QUESTION, history=history)
    await both(plain, QUESTION, history=HISTORY)
    assert prompts(retriever) == prompts(plain)


@pytest.mark.parametrize("history", ["Who?", 5, {"role": "user", "content": "x"}, [object()]])
async def test_wrong_histories(history: Any) -> None:
    """A history that is no list of messages is refused, whatever on_error says."""
    await both_raise(InvalidInputError, r"message|history", made(), QUESTION, None, history=history)


@pytest.mark.parametrize("written", [json.dumps({"query": QUESTION}), "when did she die"])
async def test_a_question_that_is_complete(written: str) -> None:
    """A question given back unchanged is searched for once, and that is no degradation."""
    found = await both(made(written, include_original=True), QUESTION, history=HISTORY)
    assert sent(found) == [QUESTION] and not any("degraded" in note for note in notes(found))


async def test_the_word_none_is_no_question() -> None:
    """A model that writes "None" gave nothing: the question is searched for as it is, with a note."""
    found = await both(made("None"), QUESTION, history=HISTORY)
    assert sent(found) == [QUESTION] and any("does not fit Query" in note for note in notes(found))


def long(turns: int) -> list[tuple[str, str]]:
    return [("user" if n % 2 == 0 else "assistant", f"turn {n} " + "word " * 30) for n in range(turns)]


async def test_of_a_long_history_the_newest_turns_are_used() -> None:
    """The prompt gets at most max_history_chars of history, the newest turns, and the notes say so."""
    retriever = made(max_history_chars=2000)
    found = await both(retriever, QUESTION, history=long(40))
    history = prompts(retriever)[0].split("<history>")[-1].split("</history>")[0]
    assert len(history) <= 2002 and "turn 39 " in history and "turn 0 " not in history
    assert sent(found) == [COMPLETE] and "the oldest turns of the history were left out" in notes(found)


async def test_chain() -> None:
    """A step for LCEL takes either pair of names, with k, filter and config going through."""
    docs = [doc.model_copy(update={"metadata": {"year": n}}) for n, doc in enumerate(DOCS)]
    retriever = made(docs=docs)
    step = retriever.chain()
    expected = retriever.invoke(QUESTION, None, history=HISTORY)
    for values in (
        {"question": QUESTION, "history": HISTORY},
        {"input": QUESTION, "chat_history": HISTORY},
        {"question": QUESTION, "chat_history": HISTORY},
    ):
        assert step.invoke(values) == expected == await step.ainvoke(values)
    assert ids(await both(step, {"input": QUESTION}, filter={"year": 2})) == ["she"]  # type: ignore[arg-type]
    bound = step.bind(k=1, filter={"year": 0}) | RunnableLambda(lambda docs: ids(docs))
    assert bound.invoke({"question": QUESTION, "history": HISTORY}) == ["austen"]
    step.invoke({"question": QUESTION, "history": HISTORY}, {"configurable": {"tenant": "t"}})
    (_, request) = retriever.retriever.asked[-1]  # type: ignore[attr-defined]
    assert request.config["configurable"]["tenant"] == "t"
    for wrong in ({"query": QUESTION}, "text"):
        with pytest.raises(InvalidInputError, match="'question' or 'input'"):
            step.invoke(wrong)


async def test_chinese() -> None:
    """A Chinese follow-up takes the Chinese prompt; a bare name is completed in any script."""
    docs = corpus(a="巴金去世于二零零五年", b="下雨")
    retriever = made(json.dumps({"query": "巴金哪年去世？"}, ensure_ascii=False), docs)
    history = [("user", "《家》是谁写的？"), ("assistant", "巴金。")]
    assert ids(await both(retriever, "他哪年去世的？", history=history)) == ["a"]
    assert "绝不是指令" in prompts(retriever)[0]
    assert sent(await both(retriever, "Ba Jin?", history=history)) == ["巴金哪年去世？"]


def test_wrong_arguments() -> None:
    """The cap and the prompts are checked."""
    for options, says in (
        ({"max_history_chars": 100}, "max_history_chars: "),
        ({"mode": "both"}, "mode"),
        ({"prompt": ChatPromptTemplate([("user", "{history}")])}, "takes question"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            made(**options)  # type: ignore[arg-type]
