"""Context recall: the share of the reference answer that the retrieved passages hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import ModelOutputError
from rag_kit.evaluation.judge.calls import Call, Calls
from rag_kit.evaluation.scorers.ragas_judged.base import NO_PASSAGES, RagasMetric, contexts_of
from rag_kit.text import content_words, sentences

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.outputs import Output

_COVERED = 0.5
"""Share of a sentence's words that the statements must hold for it to count as judged."""


def recall_call(question: str, context: str, answer: str) -> Call:
    """Which statements of the reference answer does the text hold?

    A judge that leaves a sentence of the answer out is asked for what is missing; if it still does, there is no value.
    An empty text holds nothing, and nobody is asked.
    """
    known = None
    if not context.strip():
        known = {"classifications": [{"statement": answer, "reason": "", "attributed": 0}]}

    async def finish(calls: Calls, reply: Any) -> dict[str, Any]:
        found = [_entry(each) for each in reply["classifications"]]
        if known is None and found and (missing := left_out(answer, found)):
            values = {"question": question, "context": context, "answer": " ".join(missing)}
            again = await calls.judge.ask(
                "judge_recall", values, language=calls.language, keep=_keeps(missing)
            )
            more = [_entry(each) for each in again["classifications"]]
            if left := left_out(" ".join(missing), more, strict=True):
                raise ModelOutputError(
                    f"the judge left {len(missing)} sentences of the reference out, and {len(left)} when it was asked "
                    f"for them, such as {left[0]!r:.120}"
                )
            found += more
        return {"classifications": found}

    return Call(
        "judge_recall", {"question": question, "context": context, "answer": answer},
        finish=finish, keep=_keeps([answer]), known=known,
    )  # fmt: skip


def left_out(answer: str, found: Sequence[Mapping[str, Any]], *, strict: bool = False) -> list[str]:
    """Sentences of an answer that no statement covers.

    A judge may use other words; so where there are as many statements as sentences, all count as covered, unless it is
    strict.

    Example:
        >>> left_out("Emma is a novel. Bath is a town.", [{"statement": "Emma is a novel."}])
        ['Bath is a town.']
    """
    parts = [one.text.strip() for one in sentences(answer)]
    if len(found) >= len(parts) and not strict:
        return []
    said = {word for each in found for word in content_words(str(each["statement"]))}
    missing = []
    for part in parts:
        words = content_words(part)
        if words and sum(word in said for word in words) < _COVERED * len(words):
            missing.append(part)
    return missing


class ContextRecall(RagasMetric):
    """Ragas's ``ContextRecall``: statements of the reference answer that stand in the passages, over all of them.

    Where nothing was retrieved it is 0.
    """

    name = "context_recall"
    stage = "retrieval"
    example_needs = frozenset({"reference"})
    output_needs = frozenset({"passages"})
    prompts = ("judge_recall",)

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        metric = ragas.ContextRecall(llm=ragas_llm(calls))
        metric.prompt = FilePrompt(lambda data: recall_call(data.question, data.context, data.answer))
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question, passages, reference."""
        return {
            "user_input": example.question,
            "retrieved_contexts": contexts_of(output),
            "reference": example.reference,
        }

    def details(self, calls: Calls) -> dict[str, Any]:
        """The statements with their verdicts."""
        return {
            "statements": [each for reply in calls.seen("judge_recall") for each in reply["classifications"]]
        }

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """The first statement that is missing."""
        if not output.contexts:
            return NO_PASSAGES
        missing = [each for each in self.details(calls)["statements"] if not each["attributed"]]
        return f"not in the passages: {missing[0]['statement']}" if missing else ""


def _keeps(answers: Sequence[str]) -> Any:
    return lambda reply: not left_out(" ".join(answers), reply["classifications"])


def _entry(each: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "statement": each["statement"],
        "reason": str(each.get("reason") or ""),
        "attributed": each["attributed"],
    }
