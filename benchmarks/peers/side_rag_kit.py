"""The kit itself, measured as its peers are."""

from __future__ import annotations

import asyncio
import json
import time
from importlib.metadata import version
from typing import Any

import common
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from rag_kit.concurrency.steps import Step
from rag_kit.documents import document_keys
from rag_kit.retrieval import MultiQueryRetriever, RagKitRetriever, reciprocal_rank_fusion


class Model(BaseChatModel):
    """Answers after 200 ms."""

    reply: str

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _result(self) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=self.reply))])

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        time.sleep(common.MODEL)
        return self._result()

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(common.MODEL)
        return self._result()


class Leaf(RagKitRetriever):
    """Answers after 50 ms."""

    async def _search(self, query: str, call: Any) -> list[Document]:
        await Step("wait", lambda _: time.sleep(common.SEARCH), lambda _: asyncio.sleep(common.SEARCH))
        return [Document(f"text {n} {query}", id=f"{n}{query}") for n in range(4)]


def main() -> None:
    """Measure, and print."""
    rounds = common.rounds()
    lists = [[Document(text, id=text) for text in ranking] for ranking in common.rankings()]
    figures = {
        "fusion 8 x 1000": common.fusion(lambda: reciprocal_rank_fusion(document_keys(lists)), rounds),
    }
    for width in common.WIDTHS:
        model = Model(reply=json.dumps({"queries": common.queries(width)}))
        mine = MultiQueryRetriever.from_llm(model, Leaf(), n=width - 1)
        figures[f"multi-query {width}, sync"] = common.blocking(
            lambda mine=mine: mine.invoke("question"), rounds
        )
        figures[f"multi-query {width}, async"] = common.native(
            lambda mine=mine: mine.ainvoke("question"), rounds
        )
    common.report("rag_kit", version("rag-kit"), figures)


if __name__ == "__main__":
    main()
