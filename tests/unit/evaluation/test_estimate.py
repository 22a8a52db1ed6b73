"""A dry run says what a run will take, and the judge is asked nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_openai import ChatOpenAI
from support.openai_server import OpenAIServer, Recorded
from support.ragas_model import answer

from rag_kit.cli.main import main
from rag_kit.evaluation import Example, Judge, aevaluate, evaluate
from rag_kit.evaluation.runs.estimate import Estimate

METRICS = [
    "faithfulness", "context_recall", "answer_correctness", "answer_relevancy", "factual_correctness",
    "answer_accuracy", "context_precision", "exact_match",
]  # fmt: skip
QUESTIONS = {
    "en": [
        Example(f"q{n}", f"Where does river {n} rise?", reference="Far off. It is long.") for n in range(6)
    ],
    "zh": [Example(f"q{n}", f"第{n}条河发源于哪里？", reference="源头在山里。它很长。") for n in range(6)],
}


def pipeline(question: str) -> dict[str, Any]:
    """Two statements, two passages."""
    said = "It rises in hills. It is long." if question.isascii() else "它发源于山区。它很长。"
    return {"answer": said, "documents": ["It rises in hills.", "它发源于山区。"]}


def judge_of(server: OpenAIServer) -> Judge:
    """A judge over loopback."""
    llm = ChatOpenAI(model="m", base_url=server.url, api_key="key")
    return Judge(llm, DeterministicFakeEmbedding(size=4))


@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_calls_are_those_of_the_run_and_tokens_near(language: str) -> None:
    """Every metric's calls, of prompts adapted to Chinese too; tokens within a third, by Ragas's real prompts."""
    with OpenAIServer([answer]) as server:
        settings: Any = {"progress": False, "prices": {"*": {"input": 1.0, "output": 2.0}}}
        expected = evaluate(
            pipeline, QUESTIONS[language], METRICS, judge=judge_of(server), dry_run=True, **settings
        )
        assert isinstance(expected, Estimate) and not server.requests
        results = evaluate(pipeline, QUESTIONS[language], METRICS, judge=judge_of(server), **settings)
    assert "exact_match" not in expected.parts
    for name, part in expected.parts.items():
        if name in METRICS:
            cells = results.cells(name).values()
            tokens = sum(cell.tokens for cell in cells)
            assert part["calls"] == sum(cell.calls for cell in cells), name
            assert 0.6 * tokens < part["input_tokens"] + part["output_tokens"] < 1.4 * tokens, name
    total = expected.parts["total"]
    assert total["calls"] == results.manifest["usage"]["judge"]["calls"]
    assert total["money"] == pytest.approx((total["input_tokens"] + 2 * total["output_tokens"]) / 1e6)
    said = {"en": "the judge was asked nothing", "zh": "没有询问评判模型"}[language]
    assert said in str(expected) and "faithfulness" in expected._repr_html_()


async def test_the_pipeline_is_asked_a_few_questions_and_counted(tmp_path: Path) -> None:
    """Five questions give calls and tokens; without ``out`` nothing is written; with a run, only the rest counts."""
    with OpenAIServer(["ok"]) as server:
        llm = ChatOpenAI(model="m", base_url=server.url, api_key="key")
        asked = [Example(f"q{n}", f"Why {n}?", reference="So.") for n in range(40)]
        expected = await aevaluate(
            llm, asked, ["exact_match"], dry_run=True, progress=False, out=tmp_path / "new"
        )
        assert isinstance(expected, Estimate)
        assert (expected.asked, len(server.chats)) == (5, 5) and not (tmp_path / "new").exists()
        assert expected.parts["pipeline"]["calls"] == 40 and expected.parts["pipeline"]["input_tokens"] > 0
        await aevaluate(llm, asked[:30], ["exact_match"], progress=False, out=tmp_path / "run", name="m")
        left = await aevaluate(
            llm, asked, ["exact_match"], dry_run=True, progress=False, out=tmp_path / "run", name="m"
        )
        assert isinstance(left, Estimate) and left.parts["pipeline"]["questions"] == 10
        before = len(server.chats)
        await aevaluate(llm, asked, ["exact_match"], progress=False, out=tmp_path / "run", name="m")
        assert len(server.chats) == before + 5  # what the dry run was told is kept


@pytest.mark.parametrize("cap", [{"max_calls": 2}, {"deadline": 0.3}])
def test_caps_end_the_asking(cap: dict[str, Any]) -> None:
    """Questions asked before the cap are the sample; no error comes out, and the cap is named."""

    def slow(question: str) -> dict[str, Any]:
        time.sleep(0.2)
        return {"answer": "It.", "usage": {"calls": 1}}

    asked = [Example(f"q{n}", f"Why {n}?", reference="So.") for n in range(40)]
    expected = evaluate(slow, asked, ["exact_match"], dry_run=True, progress=False, **cap)
    assert isinstance(expected, Estimate) and expected.asked < 5 and expected.stopped
    assert f"A cap ended the asking: {expected.stopped}" in str(expected)


def test_failed_questions_say_nothing_of_the_cost() -> None:
    """The mean is that of the others, and how many failed is said."""

    def shaky(question: str) -> dict[str, Any]:
        seen.append(question)
        if len(seen) <= 3:
            raise ValueError("no")
        return {"answer": "It is. It was.", "documents": ["It is."], "usage": {"calls": 2}}

    seen: list[str] = []
    asked = [Example(f"q{n}", f"Why {n}?", reference="So.") for n in range(40)]
    with OpenAIServer([answer]) as server:
        expected = evaluate(
            shaky, asked, ["faithfulness"], judge=judge_of(server), dry_run=True, progress=False
        )
    assert isinstance(expected, Estimate) and (expected.asked, expected.failed) == (5, 3)
    assert expected.parts["pipeline"]["calls"] == 80 and expected.parts["faithfulness"]["calls"] == 80
    assert "3 of the 5 failed" in str(expected)


def test_the_command_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--dry-run`` as text and as JSON; exit code 0, nothing asked."""
    (tmp_path / "mine.py").write_text(
        "def ask(question):\n    return {'answer': 'A b. C d.', 'documents': ['A b.']}\n"
    )
    (tmp_path / "q.csv").write_text("question,answer\nWho is it?,Ada Lovelace was it.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def refuse(request: Recorded) -> Any:
        raise AssertionError(request.prompt)

    with OpenAIServer([refuse]) as server:
        monkeypatch.setenv("RAG_KIT_CHAT_MODEL", "openai:m")
        monkeypatch.setenv("RAG_KIT_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        command = ["evaluate", "q.csv", "--pipeline", "mine:ask", "--metric", "faithfulness", "--dry-run"]
        assert main(command) == 0
        assert "faithfulness" in capsys.readouterr().out
        assert main([*command, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["expected"]["faithfulness"]["calls"] == 2
        assert not server.requests
