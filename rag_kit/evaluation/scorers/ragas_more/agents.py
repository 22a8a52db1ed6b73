"""Did an agent reach the goal, and did it keep to its topics?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.scorers.ragas_judged.base import check_choice
from rag_kit.evaluation.scorers.ragas_more.judged import JudgedMetric, tagged
from rag_kit.evaluation.scorers.ragas_more.messages import ragas_messages
from rag_kit.evaluation.scorers.tool_messages import read_messages
from rag_kit.prompts.tags import Markup
from rag_kit.text import fold

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Call, Calls
    from rag_kit.evaluation.outputs import Output

_MOST_TOPICS = 20
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}
_NOT_WORD = re.compile(r"[\W_]+")


def conversation(output: Output) -> Markup:
    """The messages as turns; nothing that is said in one can begin another, as it could in Ragas's own form."""
    turns = []
    for turn in read_messages(output.messages):
        if turn.speaker == "system":
            continue
        calls = [f"[{call.name} {json.dumps(dict(call.args), ensure_ascii=False)}]" for call in turn.calls]
        turns.append(({"role": _ROLES[turn.speaker]}, "\n".join([turn.text, *calls])))
    return tagged("turn", turns)


class AgentGoalAccuracy(JudgedMetric):
    """Ragas's ``AgentGoalAccuracy``: 1 where the end of the conversation is what was wanted, else 0.

    What was wanted is ``metadata["reference_goal"]`` or the reference; without reference, what the judge takes from
    the conversation for the user's goal.

    Args:
        with_reference: Whether the goal is given.
    """

    name = "agent_goal_accuracy"
    stage = "agent"
    output_needs = frozenset({"messages"})
    prompts = ("judge_goal", "judge_outcome")

    def __init__(self, name: str | None = None, *, with_reference: bool = True) -> None:
        super().__init__(name)
        self.with_reference = bool(with_reference)
        self.example_any = (
            frozenset({"reference", "metadata.reference_goal"}) if with_reference else frozenset()
        )

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """See that the messages can be read and a goal is given."""
        read_messages(output.messages)
        if self.with_reference and not _goal(example).strip():
            return Cell.not_applicable("the example's goal is blank")
        return None

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm
        from rag_kit.evaluation.judge.calls import Call

        kind = (
            "AgentGoalAccuracyWithReference" if self.with_reference else "AgentGoalAccuracyWithoutReference"
        )
        metric = getattr(ragas, kind)(llm=ragas_llm(calls))
        metric.workflow_prompt = FilePrompt(
            lambda data: Call("judge_goal", {"conversation": conversation(output)})
        )
        metric.compare_outcome_prompt = FilePrompt(
            lambda data: Call(
                "judge_outcome",
                {"desired": data.desired_outcome, "arrived": data.arrived_outcome},
                finish=_as_text,
            )
        )
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """The messages, and the goal where it is given."""
        found: dict[str, Any] = {"user_input": ragas_messages(output.messages)}
        return {**found, "reference": _goal(example)} if self.with_reference else found

    def details(self, calls: Calls) -> dict[str, Any]:
        """Goal and end as the judge sees them."""
        replies = calls.seen("judge_goal")
        return dict(replies[0]) if replies else {}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """Why, as the judge says."""
        replies = calls.seen("judge_outcome")
        return str(replies[0]["reason"]) if replies else ""

    def settings(self) -> dict[str, Any]:
        """Whether the goal is given, too."""
        return {**super().settings(), "with_reference": self.with_reference}


class TopicAdherence(JudgedMetric):
    """Ragas's ``TopicAdherence``: does the assistant answer what is on ``metadata["reference_topics"]``, and only that?

    Precision is the share of allowed topics among those answered, recall the share of answered topics among those
    allowed. Where no topic comes up, or none that is allowed and none that was answered (Ragas gives 0 for the
    assistant that rightly declined everything), there is no value. At most twenty topics of a conversation are judged.

    Args:
        mode: ``"f1"``, ``"precision"`` or ``"recall"``.
    """

    name = "topic_adherence"
    stage = "agent"
    metadata_needs = frozenset({"reference_topics"})
    output_needs = frozenset({"messages"})
    prompts = ("judge_topics", "judge_refusal", "judge_topic_match")

    def __init__(self, name: str | None = None, *, mode: Literal["f1", "precision", "recall"] = "f1") -> None:
        check_choice("mode", mode, ("f1", "precision", "recall"))
        super().__init__(name)
        self.mode = mode

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """The topics, then all questions on them at once; nothing to compute where 0 would be divided by 0."""
        said, allowed = conversation(output), _topics(example)
        topics = (await calls.ahead(_topics_call(said)))["topics"]
        if not topics:
            return Cell.undefined("the user brings up no topic")
        *refused, sorted_out = await calls.all_ahead(
            [*(_refusal_call(said, topic) for topic in topics), _match_call(allowed, topics)]
        )
        answered = [not reply["refused_to_answer"] for reply in refused]
        fits = sorted_out["classifications"]
        rows = [
            {"topic": topic, "answered": done, "allowed": fit}
            for topic, done, fit in zip(topics, answered, fits, strict=True)
        ]
        if not (any(answered) or any(fits)):
            return Cell.undefined("no topic that came up is allowed, and none was answered", topics=rows)
        return None

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        said = conversation(output)
        metric = ragas.TopicAdherence(llm=ragas_llm(calls), mode=self.mode)
        metric.topic_extraction_prompt = FilePrompt(lambda data: _topics_call(said))
        metric.topic_refused_prompt = FilePrompt(lambda data: _refusal_call(said, data.topic))
        metric.topic_classification_prompt = FilePrompt(
            lambda data: _match_call(data.reference_topics, data.topics)
        )
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Messages and allowed topics."""
        return {"user_input": ragas_messages(output.messages), "reference_topics": _topics(example)}

    def details(self, calls: Calls) -> dict[str, Any]:
        """Each topic with whether it was answered and whether it is allowed."""
        topics = [topic for reply in calls.seen("judge_topics") for topic in reply["topics"]]
        answered = [not reply["refused_to_answer"] for reply in calls.seen("judge_refusal")]
        fits = [fit for reply in calls.seen("judge_topic_match") for fit in reply["classifications"]]
        return {
            "topics": [
                {"topic": topic, "answered": done, "allowed": fit}
                for topic, done, fit in zip(topics, answered, fits, strict=False)
            ]
        }

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """The first topic that went wrong."""
        wrong = [row for row in self.details(calls)["topics"] if row["answered"] != row["allowed"]]
        if not wrong:
            return ""
        return (
            f"{'answered, not allowed' if wrong[0]['answered'] else 'allowed, declined'}: {wrong[0]['topic']}"
        )

    def settings(self) -> dict[str, Any]:
        """The mode too."""
        return {**super().settings(), "mode": self.mode}


def agent_goal_accuracy(name: str) -> AgentGoalAccuracy:
    """With reference, unless the name says without."""
    return AgentGoalAccuracy(name, with_reference=not name.endswith("_without_reference"))


def _goal(example: Example) -> str:
    goal = example.metadata.get("reference_goal", example.reference)
    if goal is not None and not isinstance(goal, str):
        raise InvalidInputError(f"metadata['reference_goal'] is {goal!r:.80}; give a text")
    return goal or ""


def _topics(example: Example) -> list[str]:
    topics = example.metadata["reference_topics"]
    right = not isinstance(topics, (str, bytes)) and isinstance(topics, Sequence) and 1 <= len(topics) <= 1000
    if not right or not all(isinstance(topic, str) and topic.strip() for topic in topics):
        raise InvalidInputError(
            f"metadata['reference_topics'] is {topics!r:.80}; give a list of 1 to 1000 texts"
        )
    return list(topics)


def _topics_call(said: Markup) -> Call:
    from rag_kit.evaluation.judge.calls import Call

    async def finish(calls: Calls, reply: Any) -> dict[str, Any]:
        names = (name.strip() for name in reply["topics"])
        return {"topics": list(dict.fromkeys(filter(None, names)))[:_MOST_TOPICS]}

    return Call("judge_topics", {"conversation": said}, finish=finish)


def _refusal_call(said: Markup, topic: str) -> Call:
    from rag_kit.evaluation.judge.calls import Call

    return Call("judge_refusal", {"conversation": said, "topic": topic})


def _match_call(allowed: Sequence[str], topics: Sequence[str]) -> Call:
    """Sort the topics; a judge that leaves one out gives no value, where Ragas would take it for not allowed."""
    from rag_kit.evaluation.judge.calls import Call

    async def finish(calls: Calls, reply: Any) -> dict[str, Any]:
        given = reply["classifications"]
        if len(given) == len(topics):
            return {"classifications": [bool(each["allowed"]) for each in given]}
        by_name = {_plain(each["topic"]): bool(each["allowed"]) for each in given}
        missing = [topic for topic in topics if _plain(topic) not in by_name]
        if missing:
            raise ModelOutputError(
                f"the judge sorted {len(given)} of {len(topics)} topics, and not {missing[0]!r:.80}"
            )
        return {"classifications": [by_name[_plain(topic)] for topic in topics]}

    values = {
        "reference_topics": tagged("topic", [({}, topic) for topic in allowed]),
        "topics": tagged("topic", [({"id": n}, topic) for n, topic in enumerate(topics, start=1)]),
    }
    return Call("judge_topic_match", values, finish=finish)


async def _as_text(calls: Calls, reply: Any) -> dict[str, Any]:
    """Ragas wants the verdict as text."""
    return {**reply, "verdict": str(reply["verdict"])}


def _plain(text: str) -> str:
    return _NOT_WORD.sub("", fold(text)) or text
