"""What Ragas's judged metrics share: the judge handed to Ragas's class, and its result as a cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.ragas_import import load_ragas, ragas_version, require_ragas
from rag_kit.evaluation.metric import Metric

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Calls, Judge
    from rag_kit.evaluation.outputs import Output

NO_PASSAGES = "no passage was retrieved"


class RagasMetric(Metric):
    """Base of metrics whose value is computed by a class of ``ragas.metrics.collections``.

    Subclasses write `ahead` (questions that can be asked before Ragas asks them one after another; it may end with a
    cell), `build` (the object of Ragas's class) and `inputs` (the arguments of its ``ascore``).
    """

    source = "ragas"
    needs_judge = True
    prompts: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name
        require_ragas(f"the metric {self.name!r}")

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Ask the judge, and let Ragas compute the value."""
        from rag_kit.evaluation.judge.calls import Calls

        assert judge is not None, "measure sees to it"
        if self.embeds and judge.embeddings is None:
            return Cell.not_applicable(
                "the judge has no embedding model; give it one, or: rag-kit models install minilm"
            )
        ragas = await load_ragas(f"the metric {self.name!r}")
        calls = Calls(judge, judge.language_for(example.question))
        if (cell := await self.ahead(calls, example, output)) is not None:
            return cell
        result = await self.build(ragas, calls).ascore(**self.inputs(example, output))
        value = float(result.value)
        details = self.details(calls)
        if math.isnan(value):
            return Cell.undefined("Ragas has no value for this: the judge found nothing to judge", **details)
        if not math.isfinite(value):
            return Cell.error(f"Ragas gave the value {value!r}", **details)
        return Cell.ok(value, self.reason(calls, example, output), **details)

    @property
    def embeds(self) -> bool:
        """Whether vectors are needed with these settings."""
        return self.needs_embeddings

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """Ask what can be asked side by side; a cell where there is nothing to compute."""
        return None

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """The object of Ragas's class, with the judge as its LLM and prompt files as its prompts."""
        raise NotImplementedError

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """The arguments of ``ascore``."""
        raise NotImplementedError

    def details(self, calls: Calls) -> dict[str, Any]:
        """Plain JSON behind the value."""
        return {}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """What people should know of the value."""
        return ""

    def settings(self) -> dict[str, Any]:
        """Version of Ragas and names of the prompts, whose content is told by the judge's fingerprint."""
        return {"ragas": ragas_version(), "prompts": list(self.prompts)}


def contexts_of(output: Output) -> list[str]:
    """The passages' texts; one empty text where there are none, since Ragas raises on an empty list."""
    return output.contexts or [""]


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """See that a setting is one of a few.

    Raises:
        InvalidInputError: If it is not.
    """
    if value not in allowed:
        raise InvalidInputError(f"{name} is {value!r}; allowed are {', '.join(map(repr, allowed))}")
