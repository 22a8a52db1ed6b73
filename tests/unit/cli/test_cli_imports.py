"""What a run of the command line imports: a user waits for each module, so only for those that are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rag_kit.cli import exits
from rag_kit.cli.main import main


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keyword index in both languages, so that the index itself asks for no dictionary either."""
    base = tmp_path_factory.mktemp("imports")
    (base / "docs").mkdir()
    (base / "docs" / "pump.md").write_text("# Pump\n\nThe pump starts at 40 degrees.\n", encoding="utf-8")
    (base / "docs" / "风扇.md").write_text("# 风扇\n\n风扇在六十度时启动，噪音很大。\n", encoding="utf-8")
    arguments = ["ingest", base / "docs", "--index", base / "index", "--embedding-model", "none", "--quiet"]
    assert main([str(argument) for argument in arguments]) == exits.OK
    return base / "index"


@pytest.mark.parametrize("pipeline", ["bm25", "hybrid"])
def test_ask_imports_only_what_it_uses(index: Path, pipeline: str) -> None:
    """A question asked by keyword loads no vector store, provider, renderer, other command or other language."""
    program = (
        "import sys\n"
        "from rag_kit.cli.__main__ import entry\n"
        f"ask = ['--index', {str(index)!r}, '--pipeline', {pipeline!r}]\n"
        "sys.argv = ['rag-kit', 'ask', 'When does the pump start?', *ask]\n"
        "assert entry() == 0\n"
        "absent = {'chromadb', 'openai', 'onnxruntime', 'pandas', 'scipy', 'ragas', 'ir_measures', 'click', 'tqdm'}\n"
        "absent |= {'langchain_community', 'rich', 'readline', 'jieba', 'rjieba', 'rag_kit.evaluation'}\n"
        "absent |= {'rag_kit.query_construction', 'rag_kit.cli.ingest', 'rag_kit.cli.evaluate'}\n"
        "tasks = ('generating', 'grading', 'questions')\n"
        "absent |= {'rag_kit.models.extractive.' + name for name in tasks}\n"
        "assert not absent & set(sys.modules), absent & set(sys.modules)\n"
        "sys.argv[2] = '风扇什么时候启动？'\n"
        "assert entry() == 0\n"
        "assert 'rjieba' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "40 degrees" in done.stdout and "六十度" in done.stdout


def test_a_command_is_parsed_without_the_others() -> None:
    """`rag-kit ask` reads the arguments of no other command; without a command all of them are listed."""
    program = (
        "import sys\n"
        "from rag_kit.cli.main import main\n"
        "assert main(['ask', 'x']) == 2\n"
        "others = {m for m in sys.modules if m.startswith('rag_kit.cli.')} & {\n"
        "    'rag_kit.cli.' + name for name in ('ingest', 'benchmark', 'compare', 'evaluate', 'doctor')}\n"
        "assert not others, others\n"
        "assert main([]) == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: rag-kit") and "benchmark" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["benchmark", ".", "--pipeline", "bm25"],
        ["evaluate", ".", "--metric", "recall@1", "--pipeline", "a:b"],
    ],
)
def test_measuring_without_its_extra_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ir-measures, which brings SciPy, is no part of the base; what needs it names the extra, before any work."""
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    assert main(arguments) == exits.USAGE
    [line] = capsys.readouterr().err.splitlines()
    assert "recall@10" in line and "pip install 'rag-kit[eval]'" in line
