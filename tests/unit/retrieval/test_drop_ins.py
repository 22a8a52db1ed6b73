"""The kit's retrievers where other frameworks take a LangChain retriever, or by the adapters of the guide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.tools import create_retriever_tool
from langchain_openai import ChatOpenAI
from support.openai_server import OpenAIServer, Recorded, tool

from rag_kit.documents import PROVENANCE_KEY, get_provenance
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, RagKitRetriever

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide"
DOCS = [
    Document("The fan is loud because of dust.", id="a", metadata={"tenant": "north", "page": 1}),
    Document("风扇积灰会很吵。", id="b", metadata={"tenant": "north", "page": 2}),
    Document("The secret fan is loud.", id="c", metadata={"tenant": "south", "page": 3}),
]


def made() -> RagKitRetriever:
    """A fusion with a tenant's filter: what a framework calls must keep to it."""
    words = BM25Retriever.from_documents(DOCS, k=3)
    return EnsembleRetriever(retrievers=[words, words], filter={"tenant": "north"}, k=2)


async def test_tool_of_an_agent() -> None:
    """``create_retriever_tool`` in ``create_agent``: the model gets the text, the artifact has the provenance."""

    def reply(request: Recorded) -> Any:
        asked = request.body["messages"][-1]
        return f"I read: {asked['content']}" if asked["role"] == "tool" else tool({"query": "fan loud"})

    for native in (False, True):
        with OpenAIServer([reply]) as server:
            model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test")
            manual = create_retriever_tool(
                made(), "manual", "The manual.", response_format="content_and_artifact"
            )
            agent = create_agent(model, [manual])
            asked: Any = {"messages": [("user", "Why is my fan loud?")]}
            messages = (await agent.ainvoke(asked) if native else agent.invoke(asked))["messages"]
        assert messages[-1].content.startswith("I read: The fan is loud because of dust.")
        assert [doc.id for doc in messages[2].artifact] == ["a"]
        assert get_provenance(messages[2].artifact[0])["stages"] and PROVENANCE_KEY not in messages[2].content


async def test_chains_of_langchain_classic() -> None:
    """Chains and retrievers of langchain_classic around a retriever of the kit, in both forms."""
    pytest.importorskip("langchain_classic")
    from langchain_classic.chains import RetrievalQA, create_history_aware_retriever, create_retrieval_chain
    from langchain_classic.chains.combine_documents import create_stuff_documents_chain
    from langchain_classic.retrievers import MultiQueryRetriever
    from langchain_core.prompts import ChatPromptTemplate

    prompt = ChatPromptTemplate([("system", "From: {context}"), ("user", "{input}")])
    model = FakeListChatModel(responses=["风扇吵"])
    rewriting = create_history_aware_retriever(model, made(), ChatPromptTemplate([("user", "{input}")]))
    chain = create_retrieval_chain(rewriting, create_stuff_documents_chain(model, prompt))
    asked = {"input": "为什么？", "chat_history": [("user", "风扇")]}
    for result in (chain.invoke(asked), await chain.ainvoke(asked)):
        assert [doc.id for doc in result["context"]] == ["b"] and result["answer"] == "风扇吵"
    asking = RetrievalQA.from_chain_type(model, retriever=made(), return_source_documents=True)
    assert [doc.id for doc in asking.invoke({"query": "fan loud"})["source_documents"]] == ["a"]
    several = MultiQueryRetriever.from_llm(made(), FakeListChatModel(responses=["loud fan\n风扇吵"]))
    assert {doc.id for doc in await several.ainvoke("fan")} == {"a", "b"}


def adapter(framework: str) -> dict[str, Any]:
    """The guide's adapter; its code is the same in both languages, but for comments."""
    found = []
    for language in ("en", "zh"):
        page = (GUIDE / language / "drop-ins.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python no-run\n(.*?)```", page, re.DOTALL)
        found.append(next(block for block in blocks if f"from {framework}" in block))
    assert len({re.sub("#.*", "", block) for block in found}) == 1
    names: dict[str, Any] = {}
    exec(compile(found[0], framework, "exec"), names)
    return names


async def test_query_engine_of_llama_index() -> None:
    """The adapter in a query engine: texts, metadata and scores arrive, the provenance stays out of the prompt."""
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed (extra slow)")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine

    engine = RetrieverQueryEngine.from_args(
        adapter("llama_index")["LlamaIndexRetriever"](made()), llm=MockLLM()
    )
    for result in (engine.query("fan loud"), await engine.aquery("fan loud")):
        [node] = result.source_nodes
        assert (node.node_id, node.metadata["page"]) == ("a", 1) and node.score > 0
        assert DOCS[0].page_content in str(result) and PROVENANCE_KEY not in str(result)


async def test_pipeline_of_haystack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapter in a pipeline, blocking and asynchronous."""
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    pytest.importorskip("haystack", reason="haystack-ai is not installed (extra slow)")
    from haystack import Pipeline
    from haystack.components.builders import PromptBuilder

    pipeline = Pipeline()
    component = adapter("haystack")["HaystackRetriever"](made())
    pipeline.add_component("retriever", component)
    text = "{% for each in documents %}{{ each.content }}{% endfor %}"
    pipeline.add_component("prompt", PromptBuilder(text, required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    result = pipeline.run({"retriever": {"query": "风扇吵"}})
    assert result["prompt"]["prompt"] == "风扇积灰会很吵。"
    [found] = (await component.run_async(query="fan loud"))["documents"]
    assert (found.id, found.meta["page"]) == ("a", 1) and found.score > 0
