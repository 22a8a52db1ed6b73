"""The command line, used in the process itself."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
from support.command_line import run_command as run

from rag_kit.cli import exits
from rag_kit.cli.main import COMMANDS, main
from rag_kit.models.wheels.files import RERANKERS, is_installed, model_folder


def test_ask_answers_with_file_heading_and_quote(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is printed with its source, heading and a verbatim quote; the model is named on stderr."""
    code, out, err = run(capsys, "ask", "When does the pump start?", "--index", folder / "index")
    assert code == exits.OK
    assert "40 degrees" in out and "[1]" in out
    assert "pump.md" in out and "Start" in out
    assert "“The pump starts at 40 degrees.”" in out
    assert "extractive" in err and "RAG_KIT_CHAT_MODEL" in err


def test_ask_in_chinese_and_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives the answer, its citations and the passages; stdout is nothing but JSON."""
    code, out, _ = run(capsys, "ask", "风扇什么时候启动？", "--index", folder / "index", "--json")
    result = json.loads(out)
    assert code == exits.OK
    assert "六十度" in result["answer"] and result["status"] == "grounded"
    assert result["citations"][0]["file"] == "风扇.md"
    assert result["documents"][0]["metadata"]["rag_kit"]["rank"] == 1


def test_around_an_answer_all_is_said_in_its_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sheet, notes and what was not found; in English by --language, or for such a question; JSON stays."""
    (tmp_path / "文档").mkdir()
    workbook = openpyxl.Workbook()
    workbook.active.title = "设备清单"
    for row in (("设备", "数量"), ("离心水泵", "12 台"), ("pump A", "13 pieces")):
        workbook.active.append(row)
    workbook.save(tmp_path / "文档" / "附件.xlsx")
    index = ("--index", tmp_path / "index")
    run(capsys, "ingest", tmp_path / "文档", *index, "--embedding-model", "none")
    for command, question in itertools.product(
        ("ask", "retrieve"), ("离心水泵的数量是多少？", "How many pump A?")
    ):
        _, out, err = run(capsys, command, question, *index)
        chinese = question[0] != "H"
        assert ("附件.xlsx · 工作表 设备清单" in out, "附件.xlsx · sheet 设备清单" in out) == (
            chinese,
            not chinese,
        )
        assert ("说明：已降级：只用关键词检索，因为索引没有向量" in err, "note: " in err) == (
            chinese,
            not chinese,
        )
    _, out, err = run(capsys, "ask", "离心水泵 pump A?", *index, "--language", "zh", "--graph", "crag")
    assert "note: " not in err and "说明：评估：不确定" in err
    _, out, _ = run(capsys, "ask", "离心水泵的数量是多少？", *index, "--json")
    assert json.loads(out)["notes"][0] == "degraded: keyword search only, for the index has no vectors"
    assert run(capsys, "retrieve", "甲壳虫？", *index)[1].startswith("没有找到内容：没有段落")


def test_hostile_text_is_shown_not_obeyed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal escapes and bidirectional controls of a document never reach the terminal."""
    for command in (["retrieve"], ["retrieve", "--explain"], ["ask"]):
        code, out, err = run(
            capsys, command[0], "When does the valve open?", "--index", folder / "index", *command[1:]
        )
        assert code == exits.OK
        assert "\x1b" not in out + err and "\u202e" not in out + err
        assert "valve" in out


def test_filter_narrows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--filter keeps only what matches."""
    search = ("retrieve", "starts degrees 启动", "--index", folder / "index", "--json")
    code, out, _ = run(capsys, *search, "--filter", '{"file": "pump.md"}')
    assert code == exits.OK
    assert {d["metadata"]["file"] for d in json.loads(out)["documents"]} == {"pump.md"}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ask", "x", "--index", "nowhere"], exits.NO_INDEX, "rag-kit ingest"),
        (["retrieve", "x", "--index", "{index}", "--filter", "{{"], exits.USAGE, "--filter"),
        (["retrieve", "x", "--index", "{index}", "--filter", '{{"a": {{"$foo": 1}}}}'], exits.USAGE, "$foo"),
        (["retrieve", "x", "--index", "{index}", "--pipeline", "magic"], exits.USAGE, "hybrid"),
        (["retrieve", "x", "--index", "{index}", "--pipeline", "no.such:thing"], exits.USAGE, "no.such"),
        (["retrieve", "x", "--index", "{index}", "--pipeline", "dense"], exits.USAGE, "embedding"),
        (["retrieve", "x", "--index", "{index}", "-k", "0"], exits.USAGE, "k"),
        (["ask", "why " * 250_000, "--index", "{index}"], exits.USAGE, "at most 32,000"),
        (["retrieve", "  ", "--index", "{index}"], exits.USAGE, "question is empty"),
        (["ask", "x"], exits.USAGE, "RAG_KIT_INDEX"),
        (["ask", "x", "--index", "{index}", "--deadline", "-1"], exits.USAGE, "deadline:"),
        (["ask", "x", "--index", "{index}", "--deadline", "nan"], exits.USAGE, "deadline:"),
        (["ask", "x", "--index", "{index}", "--max-tokens", "-5"], exits.USAGE, "max_tokens:"),
        (
            ["ask", "x", "--index", "{index}", "--model", "openai:m", "--base-url", "http://a:pw@h/v1"],
            exits.USAGE,
            "base_url",
        ),
        (["retrieve", "x", "--index", "{index}", "--filter", "[" * 100_000], exits.USAGE, "--filter"),
        (["retrieve", "x", "--index", "{index}", "--pipeline", "os:system"], exits.USAGE, "os:system"),
        (["ask", "pump start", "--index", "{index}", "--max-calls", "0"], exits.BUDGET, "max_calls"),
        (["ask", "x", "--index", "{index}", "--model", "nobody:nothing"], exits.USAGE, "nobody"),
        (["ingest", "no-such-folder", "--index", "new-index"], exits.USAGE, "no-such-folder"),
        (["ask", "x", "--index", __file__], exits.NO_INDEX, "no index in"),
        (["ingest", ".", "--index", __file__], exits.USAGE, "is a file"),
    ],
)
def test_a_mistake_gives_one_line_and_its_own_exit_code(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    """Every mistake of a user is one clear line on stderr, never a traceback."""
    monkeypatch.chdir(tmp_path)
    got, out, err = run(capsys, *[a.format(index=folder / "index") for a in arguments])
    lines = [line for line in err.splitlines() if line.startswith("rag-kit: ")]
    assert got == code, err
    assert len(lines) == 1 and says in lines[0], err
    assert "Traceback" not in out + err
    assert "unexpected" not in err


@pytest.mark.parametrize(
    "arguments",
    [["verify", "{url}"], ["ingest", "{url}", "--index", "new"], ["verify", "--index", "'{url}'"]],
)
def test_no_mistake_shows_a_password(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
) -> None:
    """A URL in the wrong place is shown without its password, and no folder is named after it."""
    monkeypatch.chdir(tmp_path)
    url = "postgresql://app:s3cret@db.local:5432/docs?index=a"
    got, _, err = run(capsys, *[word.format(url=url) for word in arguments])
    assert got == exits.USAGE and err.startswith("rag-kit: ") and "s3cret" not in err
    assert not list(tmp_path.iterdir())


def test_own_retriever_by_module_and_object(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """--pipeline module:object takes a function that makes a retriever from the index."""
    (tmp_path / "my_own_pipeline.py").write_text(
        "from rag_kit.retrieval import index_retriever\n"
        "def words(index):\n    return index_retriever(index, pipeline='bm25', k=1)\n"
        "nothing = 3\n"
        "from langchain_core.documents import Document\n"
        "from langchain_core.retrievers import BaseRetriever\n"
        "class Strings(BaseRetriever):\n"
        "    def _get_relevant_documents(self, query, *, run_manager):\n        return ['text'] * 9\n"
        "class Many(BaseRetriever):\n"
        "    def _get_relevant_documents(self, query, *, run_manager):\n"
        "        return [Document(f'The pump starts at {n} degrees.', metadata={'n': n}) for n in range(9)]\n"
        "strings, many = Strings(), Many()\n"
    )
    monkeypatch.chdir(tmp_path)
    ask = ["retrieve", "pump", "--index", str(folder / "index"), "--json", "--pipeline"]
    code, out, _ = run(capsys, *ask, "my_own_pipeline:words")
    assert code == exits.OK and len(json.loads(out)["documents"]) == 1
    code, _, err = run(capsys, *ask, "my_own_pipeline:nothing")
    assert code == exits.USAGE and "retriever" in err
    for command in ("retrieve", "ask"):
        ask[0] = command
        code, _, err = run(capsys, *ask, "my_own_pipeline:strings")
        assert code == exits.USAGE and "Strings returned a list that holds str" in err
        code, out, err = run(
            capsys, *ask, "my_own_pipeline:many", "-k", "3", "--filter", '{"n": {"$gte": 2}}'
        )
        assert [d["metadata"]["n"] for d in json.loads(out)["documents"]] == [2, 3, 4], err
        assert len(json.loads(run(capsys, *ask, "my_own_pipeline:many")[1])["documents"]) == 9


def test_an_edited_prompt_file_is_used(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`prompts show` gives the file itself; an edited copy in --prompts replaces it, a broken one is named."""
    _, text, _ = run(capsys, "prompts", "show", "answer", "--language", "en")
    own = tmp_path / "answer.en.prompt"
    ask = ["ask", "When does the pump start?", "--index", folder / "index", "--prompts", tmp_path]
    own.write_text(text, encoding="utf-8")
    assert run(capsys, *ask)[0] == exits.OK
    own.write_text(text.replace("{{question}}", "{{qestion}}"), encoding="utf-8")
    code, _, err = run(capsys, *ask)
    assert code == exits.USAGE
    assert "answer.en.prompt:" in err and "qestion" in err
    own.write_text(
        text.replace("{{question}}", "{{qestion}}").replace("version:", "vershun:"), encoding="utf-8"
    )
    code, _, err = run(capsys, *ask)
    lines = [line for line in err.splitlines() if line.startswith("rag-kit: ")]
    assert code == exits.USAGE and len(lines) > 1
    assert all("answer.en.prompt" in line and line.count("answer.en.prompt:") == 1 for line in lines), err


def test_verify_finds_a_whole_index(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fresh index is whole, and repair leaves it as it is; a damaged one has its own exit code until repair."""
    index = folder / "index"
    [keywords] = index.glob("bm25-*")
    before = keywords.stat().st_mtime_ns
    assert run(capsys, "verify", "--index", index)[0] == exits.OK
    code, out, _ = run(capsys, "repair", "--index", index)
    assert code == exits.OK and "nothing needed repair" in out and "repaired" not in out
    assert keywords.stat().st_mtime_ns == before
    keywords.write_bytes(keywords.read_bytes()[:-20])
    code, out, _ = run(capsys, "verify", "--index", index)
    assert code == exits.DAMAGED and "problem: keyword" in out
    code, out, _ = run(capsys, "repair", "--index", index)
    assert code == exits.OK and "repaired: rebuilt the file of keyword" in out and "needed" not in out
    assert run(capsys, "verify", "--index", index)[0] == exits.OK


def test_an_empty_index_is_named(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ingest says so when nothing could be read, and so does each search."""
    empty = tmp_path / "empty"
    (empty / ".git").mkdir(parents=True)
    ingest = ("ingest", empty, "--index", tmp_path / "nothing", "--embedding-model", "none")
    code, _, err = run(capsys, *ingest)
    assert code == exits.OK and "the index is empty: no file with text was found" in err
    assert json.loads(run(capsys, *ingest, "--json")[1])["notes"]
    for command in ("ask", "retrieve"):
        _, _, err = run(capsys, command, "When does it start?", "--index", tmp_path / "nothing")
        assert "The index is empty" in err and "rag-kit ingest PATH" in err
        _, _, err = run(capsys, command, "When does it start?", "--index", folder / "index")
        assert "The index is empty" not in err


def test_json_holds_nothing_that_steers_a_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json escapes control, bidirectional and lone surrogate characters, and is still the same value."""
    query = "valve \x9b31m \u202e \ud800"
    code, out, _ = run(capsys, "retrieve", query, "--index", folder / "index", "--json")
    assert code == exits.OK
    assert json.loads(out)["question"] == query
    out.encode("utf-8")
    assert "\x9b" not in out and "\u202e" not in out


@pytest.mark.slow
def test_doctor_tells_and_hides_the_key(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """doctor lists what is there, and prints no key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234567890")
    monkeypatch.setenv("RAG_KIT_CHAT_MODEL", "openai:gpt-4o-mini")
    monkeypatch.setenv("RAG_KIT_BASE_URL", "http://127.0.0.1:9/v1")
    code, out, err = run(capsys, "doctor", "--index", folder / "index")
    assert code == exits.FAILED  # nothing answers on port 9
    assert "sk-canary" not in out + err
    assert "extra minilm" in out and "index" in out
    monkeypatch.delenv("RAG_KIT_CHAT_MODEL")
    monkeypatch.delenv("RAG_KIT_BASE_URL")
    assert run(capsys, "doctor", "--json")[0] == exits.OK


def test_doctor_names_the_models_that_are_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Doctor names what is not installed, with the command, and nothing else as missing."""
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path))

    def found() -> dict[str, str]:
        findings = json.loads(run(capsys, "doctor", "--json")[1])
        return next(row for row in findings if row["name"] == "models from wheels")

    assert found()["state"] == "off"
    assert (
        "e5, minilm, bge-small-en, cross-encoder, colbert-small (rag-kit models install" in found()["detail"]
    )
    folder = model_folder("e5")
    folder.mkdir(parents=True)
    (folder / "e5-small-q4.bin").touch()
    monkeypatch.setattr("rag_kit.models.wheels.files.has_extra", lambda: False)
    assert found()["state"] == "off" and "rag-kit[minilm]" in found()["detail"]
    assert (
        run(capsys, "doctor")[0] == exits.OK
    )  # weights that another environment uses are no fault of this one
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "e5")
    code, out, _ = run(capsys, "doctor")
    assert code == exits.FAILED and re.search(r"bad +embedding model .*rag-kit\[minilm\]", out)


def test_rerank_says_what_to_install(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the cross-encoder one line names the command; beside a retriever of one's own the option is refused."""
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path))
    monkeypatch.setattr("rag_kit.models.wheels.files.has_extra", lambda: True)
    code, _, err = run(capsys, "retrieve", "warranty", "--index", folder / "index", "--rerank")
    assert code == exits.USAGE and "rag-kit models install cross-encoder" in err
    code, _, err = run(
        capsys, "retrieve", "warranty", "--index", folder / "index", "--pipeline", "own:words", "--rerank"
    )
    assert code == exits.USAGE and "--rerank is for the built-in pipelines" in err


@pytest.mark.skipif(not all(map(is_installed, RERANKERS)), reason="rag-kit models install cross-encoder")
@pytest.mark.parametrize(
    ("words", "stage"),
    [
        (["retrieve", "When does the pump start?", "--rerank"], "rerank:cross_encoder"),
        (["ask", "--rerank", "When does the pump start?"], "rerank:cross_encoder"),
        (["ask", "When does the pump start?", "--rerank", "colbert-small"], "rerank:late_interaction"),
        (["retrieve", "--rerank", "colbert-small", "When does the pump start?"], "rerank:late_interaction"),
    ],
)
def test_rerank_reorders(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], stage: str
) -> None:
    """Every passage has been reranked by the named model, wherever the question stands."""
    code, out, _ = run(capsys, *words, "--index", folder / "index", "--explain")
    assert code == exits.OK and stage in out


@pytest.mark.skipif(not is_installed("colbert-small"), reason="rag-kit models install colbert-small")
def test_rerank_by_stored_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reranking compares what ``--legs tokens`` stored: no note says that something was computed."""
    (tmp_path / "pump.md").write_text("# Pump\n\nThe pump starts at 40 degrees.")
    where = ["--index", str(tmp_path / "i")]
    assert run(capsys, "ingest", tmp_path / "pump.md", *where, "--legs", "tokens")[0] == exits.OK
    question = "When does the pump start?"
    code, out, _ = run(capsys, "retrieve", question, *where, "--rerank", "colbert-small", "--explain")
    assert code == exits.OK and "rerank:late_interaction" in out and "stored" not in out


def test_help_imports_no_langchain() -> None:
    """rag-kit --help answers at once: no LangChain, no numpy, no Chroma is imported."""
    program = (
        "import sys\n"
        "from rag_kit.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as e:\n    assert e.code == 0\n"
        "heavy = [m for m in sys.modules if m.split('.')[0] in "
        "('langchain', 'langchain_core', 'chromadb', 'numpy', 'openai', 'langgraph', 'pydantic', 'jieba')]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("pipeline", [pytest.param("bm25", marks=pytest.mark.slow), "hybrid"])
def test_ask_imports_only_what_it_uses(index: Path, pipeline: str) -> None:
    """A question asked by keyword loads no vector store, provider, renderer, other command or other language."""
    program = (
        "import sys\n"
        "from rag_kit.cli.__main__ import entry\n"
        f"ask = ['--index', {str(index)!r}, '--pipeline', {pipeline!r}]\n"
        "sys.argv = ['rag-kit', 'ask', 'When does the pump start?', *ask]\n"
        "assert entry() == 0\n"
        "absent = {'chromadb', 'openai', 'onnxruntime', 'pandas', 'scipy', 'ragas', 'ir_measures', 'click', 'tqdm'}\n"
        "absent |= {'langchain_community', 'rich', 'readline', 'jieba', 'rjieba', 'rag_kit.evaluation.metric'}\n"
        "absent |= {'rag_kit.evaluation.runs', 'rag_kit.query_construction'}\n"
        "absent |= {'rag_kit.cli.ingest', 'rag_kit.cli.evaluate'}\n"
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
