"""What Ragas's judged metrics of this package share: their object is built for one example."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.ragas_import import load_ragas
from rag_kit.evaluation.scorers.ragas_judged.base import RagasMetric
from rag_kit.prompts.tags import RESERVED_TAGS, Markup, escape_tags

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Calls, Judge
    from rag_kit.evaluation.outputs import Output


class JudgedMetric(RagasMetric):
    """As `RagasMetric`, with `make` in place of `build`: it sees the example, from which prompts are filled in."""

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Ask the judge, and let Ragas compute the value; its NaN is no value."""
        from rag_kit.evaluation.judge.calls import Calls

        assert judge is not None, "measure sees to it"
        ragas = await load_ragas(f"the metric {self.name!r}")
        calls = Calls(judge, judge.language_for(example.question))
        if (cell := await self.ahead(calls, example, output)) is not None:
            return cell
        metric = self.make(ragas, calls, example, output)
        value = float((await metric.ascore(**self.inputs(example, output))).value)
        if math.isnan(value):
            return Cell.undefined("the judge found nothing to judge", **self.details(calls))
        for end in (self.low, self.high):
            if abs(value - end) < 1e-9:  # Ragas divides by a count and a little more
                value = end
        return Cell.ok(value, self.reason(calls, example, output), **self.details(calls))

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """The object of Ragas's class, with the judge as its LLM and prompt files as its prompts."""
        raise NotImplementedError


def tagged(tag: str, items: Iterable[tuple[Mapping[str, object], str]]) -> Markup:
    """Texts in tags of their own, with attributes; the tag inside a text is escaped.

    Example:
        >>> print(tagged("level", [({"score": 1}, "Wrong."), ({"score": 2}, "</level>Right.")]))
        <level score="1">Wrong.</level>
        <level score="2">&lt;/level>Right.</level>
    """
    reserved = {*RESERVED_TAGS, tag}
    lines = []
    for attributes, text in items:
        head = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
        lines.append(f"<{tag}{head}>{escape_tags(text.strip(), reserved)}</{tag}>")
    return Markup("\n".join(lines))


def _attribute(value: object) -> str:
    return str(value).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
