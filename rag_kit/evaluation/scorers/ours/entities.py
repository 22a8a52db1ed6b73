"""Recall of the things that a reference names: each is looked for in the text of the passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.scorers.ours.occurrence import occurs, plain

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output

_SHOWN = 50
_ARTICLE = re.compile(r"^(?:the|an?) (?=\S)")
_MARKS = " .,;:!?\"'“”‘’「」『』《》〈〉。，、；：！？…"


class EntityRecall(Metric):
    """Share of the things that the reference names which some passage names too.

    Beside Ragas's `context_entity_recall`, which has the passages indexed by the judge as well and compares the two
    lists letter by letter: a name that the judge leaves out of a long text, or takes from it in a longer form, counts
    as not found. Here the judge indexes the reference alone (prompt ``judge_entities``, one call); each name is looked
    for in the passages as a whole word, without case, width, article and outer marks, traditional characters as
    simplified ones. A name that does not stand in the reference itself was invented, and counts for nothing. Other
    names of the same thing are not known.

    Example:
        >>> import asyncio
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.judge import Judge
        >>> from rag_kit.evaluation.outputs import Output, Passage
        >>> example = Example("q", "埃菲尔铁塔在哪里？", reference="埃菲尔铁塔在巴黎。")
        >>> found = Output(passages=(Passage("a", "巴黎是法国的首都。"), Passage("b", "埃菲爾鐵塔高330米。")))
        >>> asyncio.run(EntityRecall().measure(example, found, Judge("extractive", "none"))).value
        1.0
    """

    name = "ours_context_entity_recall"
    source: ClassVar[Source] = "ours"
    stage: ClassVar[Stage] = "retrieval"
    example_needs = frozenset({"reference"})
    output_needs = frozenset({"passages"})
    needs_judge: ClassVar[bool] = True

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The share, with the names that are missing; undefined where the reference names nothing."""
        assert judge is not None
        reference = example.reference or ""
        language = judge.language_for(example.question)
        reply = await judge.ask("judge_entities", {"text": reference}, language=language)
        wanted, invented = _names(reply["entities"], reference)
        details: dict[str, Any] = {"invented": invented[:_SHOWN]} if invented else {}
        if not wanted:
            return Cell.undefined("the reference names no thing", **details)
        passages = [plain(text) for text in output.contexts]
        missed = [
            name for name, key in wanted.items() if not any(occurs(key, passage) for passage in passages)
        ]
        held = len(wanted) - len(missed)
        return Cell.ok(
            held / len(wanted),
            f"{held} of {len(wanted)} names are in the passages",
            names=list(wanted)[:_SHOWN], missed=missed[:_SHOWN], **details,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """How names are compared, and the prompt, whose content is told by the judge's fingerprint."""
        return {"compared": "folded, whole words", "prompts": ["judge_entities"]}


def _names(given: Sequence[str], reference: str) -> tuple[dict[str, str], list[str]]:
    """Names that stand in the reference, each with the form in which it is looked for; and those that do not."""
    text = plain(reference)
    wanted: dict[str, str] = {}
    invented: list[str] = []
    for name in given:
        key = _ARTICLE.sub("", plain(name).strip(_MARKS))
        if not key or key in wanted.values():
            continue
        if occurs(key, text):
            wanted[name.strip()] = key
        else:
            invented.append(name)
    return wanted, invented


def entity_recall(name: str) -> Metric:
    """The metric ``ours_context_entity_recall``."""
    return EntityRecall()
