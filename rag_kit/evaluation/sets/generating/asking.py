"""One attempt: a model writes questions from pieces, code looks at them, the model checks those that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit._redact import redact
from rag_kit.errors import ModelOutputError
from rag_kit.evaluation.sets.generating.filters import looked_at
from rag_kit.evaluation.sets.generating.sources import Piece
from rag_kit.text import detect_language

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

KINDS = ("single_hop", "multi_hop")


class Writer:
    """Asks a model for questions, and for checks of them.

    Args:
        model: The model.
        prompts: Folder with prompts that replace the packaged ones.
        per_attempt: Questions asked for at once.
        timeout: Seconds for one request.
        max_retries: Retries of one request.
    """

    def __init__(
        self,
        model: BaseChatModel,
        prompts: Path | None,
        per_attempt: int,
        timeout: float | None,
        max_retries: int,
    ) -> None:
        from rag_kit.prompts import load_prompt

        self.model = model
        self.per_attempt = per_attempt
        self.timeout = timeout
        self.max_retries = max_retries
        names = [f"generate_{kind}" for kind in (*KINDS, "check")]
        self.prompts = {
            (name, language): load_prompt(name, language=language, folder=prompts)
            for name in names
            for language in ("en", "zh")
        }

    def hashes(self) -> dict[str, str]:
        """Which prompts are used."""
        return {
            f"{name}.{language}": str((prompt.metadata or {}).get("hash"))
            for (name, language), prompt in self.prompts.items()
        }

    async def attempt(self, kind: str, pieces: Sequence[Piece]) -> dict[str, Any]:
        """What the model wrote, as plain JSON: ``items`` with a ``check`` each, or an ``error``."""
        from rag_kit.prompts import render_passages

        shown = render_passages([piece.shown() for piece in pieces])
        language = pieces[0].language
        try:
            written = await self._call(
                f"generate_{kind}", language, {"passages": shown, "count": str(self.per_attempt)}
            )
        except ModelOutputError as error:
            return {"error": redact(str(error))[:500]}
        items: list[dict[str, Any]] = []
        for question in written.questions[: self.per_attempt]:
            item = question.model_dump()
            items.append({"item": item, "check": None})
            if isinstance(looked_at(item, None, kind, pieces), str):
                continue  # dropped whatever the model would say of it
            try:
                spoken = detect_language(
                    str(item["question"])
                )  # of the sentence asked about, not of the page
                check = await self._call(
                    "generate_check", spoken, {"question": item["question"], "passages": shown}
                )
            except ModelOutputError:
                items[-1]["check"] = {"failed": True}
            else:
                items[-1]["check"] = check.model_dump()
        return {"items": items}

    async def _call(self, name: str, language: str, values: Mapping[str, Any]) -> Any:
        from rag_kit.models import astructured_call

        return await astructured_call(
            self.model,
            self.prompts[name, language],
            values,
            timeout=self.timeout,
            max_retries=self.max_retries,
        )
