"""Context entity recall: which things that the reference names do the passages name?"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.scorers.ragas_judged.base import contexts_of
from rag_kit.evaluation.scorers.ragas_more.judged import JudgedMetric
from rag_kit.text import fold

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Call, Calls
    from rag_kit.evaluation.outputs import Output


class ContextEntityRecall(JudgedMetric):
    """Ragas's ``ContextEntityRecall``: things that reference and passages both name, over those of the reference.

    Ragas compares the names letter by letter; here names that differ in case, width or traditional characters alone
    are handed to it as one. A reference that names nothing, which Ragas scores 0, has no value. Ragas adds 1e-8 to the
    divisor, so that the best value is 0.99999999.
    """

    name = "context_entity_recall"
    stage = "retrieval"
    example_needs = frozenset({"reference"})
    output_needs = frozenset({"passages"})
    prompts = ("judge_entities",)

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """Both lists at once; nothing to compute if the reference names nothing."""
        texts = (example.reference or "", "\n".join(contexts_of(output)))
        wanted, _ = await calls.all_ahead([_call(text) for text in texts])
        return None if wanted["entities"] else Cell.undefined("the reference names no thing")

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        metric = ragas.ContextEntityRecall(llm=ragas_llm(calls))
        metric.prompt = FilePrompt(lambda data: _call(data.text))
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Reference and passages."""
        return {"reference": example.reference, "retrieved_contexts": contexts_of(output)}

    def details(self, calls: Calls) -> dict[str, Any]:
        """Both lists."""
        lists = [reply["entities"] for reply in calls.seen("judge_entities")]
        return dict(zip(("reference", "passages"), lists, strict=False))

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """What is missing."""
        found = self.details(calls)
        missing = [name for name in found.get("reference", ()) if name not in found.get("passages", ())]
        return f"not in the passages: {', '.join(missing[:5])}" if missing else ""


def _call(text: str) -> Call:
    from rag_kit.evaluation.judge.calls import Call

    async def finish(calls: Calls, reply: Any) -> dict[str, Any]:
        names = [fold(name).strip() for name in reply["entities"]]
        return {"entities": list(dict.fromkeys(filter(None, names)))}

    known: Any = None if text.strip() else {"entities": []}
    return Call("judge_entities", {"text": text}, finish=finish, known=known)
