"""Tracing by LangSmith's client, over HTTP on loopback and as OpenTelemetry spans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langsmith import Client
from langsmith import utils as langsmith_utils
from langsmith.run_helpers import tracing_context
from support.openai_server import OpenAIServer
from support.trackers import LangSmithServer

from rag_kit.graphs import build_plain_rag
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide"
TEXTS = ("canarypassage", "canaryquestion", "canaryanswer", "风扇")
KEY = "sk-canary-0123456789abcdef"


@pytest.fixture(params=[True, False], ids=["hidden", "whole"])
def hidden(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Whether the texts are hidden, by the variables that the guide names."""
    for name in ("LANGSMITH_HIDE_INPUTS", "LANGSMITH_HIDE_OUTPUTS"):
        monkeypatch.setenv(name, str(request.param).lower())
    langsmith_utils.get_env_var.cache_clear()
    yield request.param
    langsmith_utils.get_env_var.cache_clear()


async def trace(client: Client, endpoint: OpenAIServer) -> None:
    """Ask a graph in both forms."""
    words = BM25Retriever.from_texts(["The canarypassage fan starts at 60 degrees. 风扇"], name="words")
    retriever = EnsembleRetriever(retrievers=[words, words], name="manual")
    model = chat_model("openai:gpt-test", base_url=endpoint.url, api_key=KEY)
    graph = build_plain_rag(retriever, model)
    asked: Any = {"question": "When does the canaryquestion fan start?"}
    with tracing_context(enabled=True, client=client):
        graph.invoke(asked)
        await graph.ainvoke(asked)
    client.flush()


def check(spans: list[tuple[str, str, dict[str, Any]]], sent: str, hidden: bool) -> None:
    """The names, tokens and texts of two runs: (kind, name, metadata) of each span."""
    assert [name for kind, name, _ in spans if kind == "chain"].count("plain_rag") == 2
    retrievers = sorted(name for kind, name, _ in spans if kind == "retriever")
    assert retrievers == ["manual"] * 2 + ["words"] * 4
    models = [metadata for kind, _, metadata in spans if kind == "llm"]
    assert len(models) == 2
    for metadata in models:
        assert (metadata["ls_provider"], metadata["ls_model_name"]) == ("openai", "gpt-test")
        assert (metadata["prompt_name"], metadata["prompt_language"]) == ("answer", "en")
        assert metadata["prompt_version"] and metadata["prompt_hash"].startswith("sha256:")
        usage = metadata["usage_metadata"]
        usage = json.loads(usage) if isinstance(usage, str) else usage
        assert usage["input_tokens"] > 100 and 0 < usage["output_tokens"] < 30
    for text in TEXTS:
        assert (text in sent) is not hidden, text
    assert KEY not in sent


async def test_langsmith(hidden: bool) -> None:
    """Runs bear the names of retriever, prompt and model and the tokens; texts only where they are not hidden."""
    answer = "The canaryanswer fan starts at 60 degrees. [1]"
    with LangSmithServer() as server, OpenAIServer([answer]) as endpoint:
        await trace(Client(api_url=server.url, api_key="lsv2_pt_x", auto_batch_tracing=False), endpoint)
        runs = list(server.runs.values())
    spans = [(run["run_type"], run["name"], run["extra"]["metadata"]) for run in runs]
    check(spans, json.dumps(runs, ensure_ascii=False), hidden)


async def test_opentelemetry(hidden: bool) -> None:
    """The same as OpenTelemetry spans, from which the guide's function computes the cost; LangSmith gets nothing."""
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed (langsmith[otel])")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with (
        LangSmithServer() as server,
        OpenAIServer(["The canaryanswer fan starts at 60 degrees. [1]"]) as endpoint,
    ):
        settings: dict[str, Any] = {"otel_tracer_provider": provider, "tracing_mode": "otel"}
        await trace(Client(api_url=server.url, api_key="lsv2_pt_x", **settings), endpoint)
        assert not server.writes
    finished = exporter.get_finished_spans()
    start = "langsmith.metadata."
    spans = [
        (
            str(span.attributes["langsmith.span.kind"]),
            span.name,
            {name.removeprefix(start): value for name, value in span.attributes.items()},
        )
        for span in finished
    ]
    sent = json.dumps([dict(span.attributes) for span in finished], ensure_ascii=False)
    check(spans, sent + str([span.events for span in finished]), hidden)

    page = (GUIDE / "en" / "tracing.md").read_text(encoding="utf-8")
    code = page[page.index("import json\n") : page.index("print(cost(")]
    names: dict[str, Any] = {}
    exec(compile(code, "tracing.md", "exec"), names)
    names["PRICES"]["gpt-test"] = (1e6, 0.0)
    tokens = [json.loads(metadata["usage_metadata"]) for kind, _, metadata in spans if kind == "llm"]
    assert names["cost"](finished) == sum(each["input_tokens"] for each in tokens)
