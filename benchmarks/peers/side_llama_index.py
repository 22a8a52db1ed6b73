"""LlamaIndex: QueryFusionRetriever. Run by the interpreter of its own environment."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import common
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


class Model(CustomLLM):
    """Answers after 200 ms."""

    reply: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        time.sleep(common.MODEL)
        return CompletionResponse(text=self.reply)

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(common.MODEL)
        return CompletionResponse(text=self.reply)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class Leaf(BaseRetriever):
    """Answers after 50 ms."""

    def _found(self, query: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(text=f"text {n} {query.query_str}"), score=1 - n / 10)
            for n in range(4)
        ]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        time.sleep(common.SEARCH)
        return self._found(query_bundle)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(common.SEARCH)
        return self._found(query_bundle)


def retriever(width: int) -> QueryFusionRetriever:
    """With its defaults: asynchronous inside, also when called synchronously."""
    model = Model(reply="\n".join(common.queries(width)))
    return QueryFusionRetriever([Leaf()], llm=model, mode="reciprocal_rerank", num_queries=width)


def search(width: int) -> tuple[Any, Any]:
    """A retriever's blocking and native search."""
    made = retriever(width)
    return lambda: made.retrieve("question"), lambda: made.aretrieve("question")


if __name__ == "__main__":
    lists = [[TextNode(text=text) for text in ranking] for ranking in common.rankings()]
    given: dict[Any, list[NodeWithScore]] = {}

    def prepare() -> None:  # the fusion writes its scores into what it is given
        for number, nodes in enumerate(lists):
            given[(str(number), 0)] = [
                NodeWithScore(node=node, score=1.0 - place / common.LENGTH)
                for place, node in enumerate(nodes)
            ]

    fuse = retriever(2)._reciprocal_rerank_fusion
    common.measure("LlamaIndex", "llama-index-core", lambda: fuse(given), search, prepare)
