"""Runs: pipelines of every kind, resuming, what is computed again, caps, failures, progress, locks."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from support.later import later

from rag_kit.concurrency.budget import charge_call, charge_tokens
from rag_kit.errors import BudgetExceededError, InvalidInputError, LockedError, MissingExtraError
from rag_kit.evaluation import Example, Results, aevaluate, evaluate
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.rows import RunFolder

pd = later("pandas")


class Length(Metric):
    """Share of ten characters; counts how often it is computed."""

    source = "ours"
    stage = "generation"

    def __init__(self, name: str = "ours_length", factor: float = 1.0) -> None:
        self.name = name
        self.factor = factor
        self.seen: list[str] = []

    def settings(self) -> dict[str, Any]:
        return {"factor": self.factor}

    async def score(self, example: Example, output: Output, judge: Any) -> Cell:
        self.seen.append(example.id)
        return Cell.ok(min(1.0, self.factor * len(output.answer or "") / 10))


class Judged(Length):
    """One call of a judge for each example."""

    needs_judge = True

    async def score(self, example: Example, output: Output, judge: Any) -> Cell:
        charge_call()
        charge_tokens(10)
        return await super().score(example, output, judge)


class FakeJudge:
    """A scripted judge with all that a run needs."""

    max_concurrency = 4

    def __init__(self, model: str = "fake", **prompts: str) -> None:
        self.model = model
        self.prompts = prompts

    def fingerprint(self) -> dict[str, Any]:
        return {"model": self.model, "prompts": self.prompts, "api_key": "abcdef"}


class Counting:
    """A pipeline that remembers what it was asked."""

    def __init__(self, answer: str = "Yes.") -> None:
        self.answer = answer
        self._asked: list[str] = []

    def __call__(self, question: str) -> str:
        self._asked.append(question)
        return self.answer

    @property
    def asked(self) -> list[str]:
        return self._asked


def examples(n: int = 5) -> list[Example]:
    return [Example(f"q{i}", f"Question {i}?", reference="Yes.") for i in range(n)]


def run(pipeline: Any, metrics: Any, out: Path | None = None, **more: Any) -> Results:
    given = {"dataset": examples(), "progress": False, **more}
    return evaluate(pipeline, given.pop("dataset"), metrics, out=out, **given)


class Fixed(BaseRetriever):
    """Always the same document."""

    k: int = 1

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(f"About {query}", id=f"d{i}") for i in range(self.k)]


def graph(node: str = "answer", **settings: Any) -> Any:
    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    class State(TypedDict, total=False):
        question: str
        answer: str
        history: list[Any]

    def say(state: State) -> State:
        turns = len(state.get("history", []))
        return {"answer": f"{state['question']} after {turns}"}

    builder = StateGraph(State)
    builder.add_node(f"{node}ing", say)
    builder.add_edge(START, f"{node}ing")
    builder.add_edge(f"{node}ing", END)
    return builder.compile(**settings)


async def coroutine_function(question: str) -> str:
    await asyncio.sleep(0)
    return f"async {question}"


KINDS = {
    "function": (lambda question: f"sync {question}", "sync Question 0?"),
    "coroutine": (coroutine_function, "async Question 0?"),
    "awaitable": (lambda question: coroutine_function(question), "async Question 0?"),
    "runnable": (RunnableLambda(lambda question: {"answer": f"run {question}"}), "run Question 0?"),
    "chain of a mapping": (
        ChatPromptTemplate.from_template("{question}!")
        | RunnableLambda(lambda prompt: prompt.to_messages()[0]),
        "Question 0?!",
    ),
    "model": (GenericFakeChatModel(messages=iter([AIMessage("Hello.")] * 9)), "Hello."),
    "graph": (graph(), "Question 0? after 0"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_pipeline(kind: str) -> None:
    """Functions, coroutine functions, Runnables, models and graphs are asked as their kind wants it."""
    pipeline, wanted = KINDS[kind]
    results = run(pipeline, Length())
    assert results["q0"].output.answer == wanted
    assert results["q0"].output.error is None
    assert [row.example.id for row in results.rows] == ["q0", "q1", "q2", "q3", "q4"]


def test_a_retriever_gives_passages_and_no_answer() -> None:
    """Metrics that read the answer are not applicable then, with the reason."""
    results = run(Fixed(k=2), Length())
    assert [p.id for p in results["q0"].output.passages or ()] == ["d0", "d1"]
    assert results["q0"].cells["ours_length"].status == "not_applicable"
    assert "answer" in results["q0"].cells["ours_length"].reason


def test_histories_reach_graphs() -> None:
    """By the input where the graph takes it, by the thread of a kit's graph that takes only the question."""
    from rag_kit.graphs import build_plain_rag
    from rag_kit.models import chat_model
    from rag_kit.retrieval import BM25Retriever

    turn = {"question": "Who wrote the first program?", "answer": "Ada wrote the first program."}
    dataset = [Example("q0", "What was she?", history=(turn,)), Example("q1", "What was Ada?")]
    assert run(graph(), Length(), dataset=dataset)["q0"].output.answer == "What was she? after 1"
    retriever = BM25Retriever.from_texts(["Ada wrote the first program.", "Ada was a mathematician."])
    plain = build_plain_rag(retriever, chat_model("extractive"))
    output = run(plain, Length(), dataset=dataset)["q0"].output
    assert any("Ada" in query for query in output.queries if query.startswith("What was she?")), (
        output.queries
    )
    assert output.calls == 2


def test_questions_asked_without_their_history_are_counted() -> None:
    """A function and a retriever get the question alone, and the results say so; with make_input nothing is said."""
    turn = {"question": "Who?", "answer": "Ada."}
    dataset = [Example("q0", "What was she?", history=(turn,)), Example("q1", "What was Ada?")]
    for pipeline in (lambda question: question, Fixed(k=2)):
        (note,) = run(pipeline, Length(), dataset=dataset).notes
        assert note.startswith("1 questions with a history were asked without it")
    assert not run(graph(), Length(), dataset=dataset).notes
    assert not run(lambda given: given, Length(), dataset=dataset, make_input=lambda e: e.conversation).notes


def test_each_example_is_a_conversation_of_its_own() -> None:
    """A graph with a checkpointer does not carry one question over into the next."""
    from langgraph.checkpoint.memory import InMemorySaver

    results = run(graph(checkpointer=InMemorySaver()), Length())
    assert results["q4"].output.answer == "Question 4? after 0"


def test_make_input_says_what_the_pipeline_is_called_with() -> None:
    """Any function of the example."""
    results = run(lambda given: given["id"], Length(), make_input=lambda example: {"id": example.id})
    assert results["q3"].output.answer == "q3"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        *[({"pipeline": wrong}, "Runnable") for wrong in (5, None, Counting)],
        ({"pipeline": "no_colon"}, "module:object"),
        ({"pipeline": "/an/index"}, "index_retriever"),
        ({"dataset": []}, "no example"),
        ({"dataset": [Example("a", "?"), Example("a", "!")]}, "must be unique"),
        ({"dataset": 3}, "int"),
        ({"dataset": [{"question": "Who?"}]}, "give objects of the class Example"),
        ({"judge": "openai:m"}, r"Judge\(...\)"),
        ({"max_concurrency": 0}, "max_concurrency=0"),
        ({"timeout": -1}, "timeout"),
        ({"max_calls": -1}, "max_calls"),
        ({"name": " "}, "name is"),
        ({"prices": "x"}, "price"),
        ({"deadline": "soon"}, "deadline"),
        ({"version": ""}, "version is"),
    ],
)
def test_wrong_arguments_are_refused_with_the_next_step(given: dict[str, Any], message: str) -> None:
    """Before anything is asked."""
    counting = Counting()
    with pytest.raises(InvalidInputError, match=message):
        run(**{"pipeline": counting, "metrics": Length(), **given})
    assert counting.asked == []
    with pytest.raises(InvalidInputError, match="give objects of the class Example"):
        run(counting, Length(), dataset=pd.DataFrame({"question": ["Who?"]}))
    called = coroutine_function("Who?")
    with pytest.raises(InvalidInputError, match="the function itself, and do not call it"):
        run(called, Length())
    called.close()


def test_a_failing_pipeline_or_metric_gives_error_cells_and_no_key() -> None:
    """The other examples are not touched; no number stands for the failure; what looks like a key is masked."""

    def pipeline(question: str) -> str:
        if "2" in question:
            raise ValueError("401 with api_key=sk-abcdefgh12345678")
        return "Yes."

    results = run(pipeline, Length())
    cell = results["q2"].cells["ours_length"]
    assert (cell.status, cell.value) == ("error", None)
    assert "ValueError" in cell.reason
    assert "abcdefgh" not in cell.reason + str(results["q2"].output.error)
    assert results.summary()["ours_length"].n == 4
    assert results.summary()["ours_length"].errors == 1

    class Broken(Length):
        async def score(self, example: Example, output: Output, judge: Any) -> Cell:
            raise RuntimeError("broken, token=abcdefgh1234")

    cell = run(Counting(), Broken())["q0"].cells["ours_length"]
    assert cell.status == "error"
    assert "abcdefgh" not in cell.reason

    class Bare(Length):
        async def score(self, example: Example, output: Output, judge: Any) -> Any:
            return 0.5

    cell = run(Counting(), Bare())["q0"].cells["ours_length"]
    assert (cell.status, cell.reason) == ("error", "score gave a float; give a Cell, such as Cell.ok(0.5)")


def test_a_slow_pipeline_is_an_error_after_its_time_out() -> None:
    """Sync or async; the others go on."""

    async def pipeline(question: str) -> str:
        await asyncio.sleep(30 if "1" in question else 0)
        return "Yes."

    def blocking(question: str) -> str:
        if "1" in question:
            released.wait(30)
        return "Yes."

    released = threading.Event()
    for each in (pipeline, blocking):
        results = run(each, Length(), timeout=0.3)
        assert results["q1"].output.error == "TimeoutError: no answer within 0.3 s"
        assert results.summary()["ours_length"].n == 4
    released.set()


def test_a_slow_metric_is_an_error_after_its_time_out() -> None:
    """`metric_timeout` holds for one cell."""

    class Slow(Length):
        async def score(self, example: Example, output: Output, judge: Any) -> Cell:
            if example.id == "q1":
                await asyncio.sleep(30)
            return Cell.ok(1.0)

    results = run(Counting(), [Slow("ours_slow"), Length()], metric_timeout=0.3)
    assert "metric_timeout" in results["q1"].cells["ours_slow"].reason
    assert results.summary()["ours_slow"].n == 4
    assert results.summary()["ours_length"].n == 5


def test_unchanged_nothing_is_asked_again(tmp_path: Path) -> None:
    """The second run asks neither pipeline nor judge, gives the same rows, and leaves the file as it is."""
    pipeline, metric = Counting(), Judged()
    first = run(pipeline, [metric, Length("ours_b")], tmp_path / "r", judge=FakeJudge())
    content = (tmp_path / "r" / "rows.jsonl").read_bytes()
    assert (len(pipeline.asked), len(metric.seen)) == (5, 5)
    second = run(pipeline, [metric, Length("ours_b")], tmp_path / "r", judge=FakeJudge())
    assert (len(pipeline.asked), len(metric.seen)) == (5, 5)
    assert second.rows == first.rows == Results.load(tmp_path / "r").rows
    assert (tmp_path / "r" / "rows.jsonl").read_bytes() == content
    assert second.manifest["done"] | {"money": None} == {
        "reused": 5, "asked": 0, "scored": 0, "calls": 0, "tokens": 0, "money": None,
    }  # fmt: skip
    assert second.manifest["created"] == first.manifest["created"]


def test_only_what_a_change_affects_is_computed_again(tmp_path: Path) -> None:
    """Another metric, its settings, the judge, a reference, a question, a version: each as little as possible."""
    pipeline, judged, plain = Counting(), Judged("ours_judged"), Length("ours_plain")

    def counts(**more: Any) -> tuple[int, int, int]:
        before = len(pipeline.asked), len(judged.seen), len(plain.seen)
        given = {"judge": FakeJudge(), "version": "1", "name": "mine", **more}
        metrics = given.pop("metrics", [judged, plain])
        run(pipeline, metrics, tmp_path / "r", **given)
        after = len(pipeline.asked), len(judged.seen), len(plain.seen)
        return tuple(b - a for a, b in zip(before, after, strict=True))  # type: ignore[return-value]

    assert counts() == (5, 5, 5)
    assert counts() == (0, 0, 0)
    assert counts(judge=FakeJudge("other")) == (0, 5, 0)
    assert counts(judge=FakeJudge("other")) == (0, 0, 0)
    judged.factor = 0.5
    assert counts(judge=FakeJudge("other")) == (0, 5, 0)
    # another reference: the pipeline does not see it
    changed = [Example("q0", "Question 0?", reference="No."), *examples()[1:]]
    assert counts(judge=FakeJudge("other"), dataset=changed) == (0, 1, 1)
    asked = [Example("q0", "Another question?", reference="No."), *examples()[1:]]
    assert counts(judge=FakeJudge("other"), dataset=asked) == (1, 1, 1)
    # a pipeline of another version that answers the same: its cells still hold
    assert counts(judge=FakeJudge("other"), dataset=asked, version="2") == (5, 0, 0)
    pipeline.answer = "No, never."
    assert counts(judge=FakeJudge("other"), dataset=asked, version="3") == (5, 5, 5)
    # fewer metrics, and then again all: nothing is lost
    assert counts(judge=FakeJudge("other"), dataset=asked, version="3", metrics=[plain]) == (0, 0, 0)
    assert Results.load(tmp_path / "r").metrics == ("ours_plain",)
    assert counts(judge=FakeJudge("other"), dataset=asked, version="3") == (0, 0, 0)
    # fewer examples, and then again all
    assert counts(judge=FakeJudge("other"), dataset=asked[:2], version="3") == (0, 0, 0)
    assert len(Results.load(tmp_path / "r")) == 2
    assert counts(judge=FakeJudge("other"), dataset=asked, version="3") == (0, 0, 0)
    assert len(Results.load(tmp_path / "r")) == 5


def test_metrics_that_name_their_prompts_depend_on_no_other(tmp_path: Path) -> None:
    """A changed prompt file touches only the metrics that use it."""

    class Named(Judged):
        def settings(self) -> dict[str, Any]:
            return {"prompts": ["judge_a"]}

    metric = Named()
    run(Counting(), metric, tmp_path / "r", judge=FakeJudge(**{"judge_a.en": "1", "judge_b.en": "1"}))
    run(Counting(), metric, tmp_path / "r", judge=FakeJudge(**{"judge_a.en": "1", "judge_b.en": "2"}))
    assert len(metric.seen) == 5
    run(Counting(), metric, tmp_path / "r", judge=FakeJudge(**{"judge_a.en": "2", "judge_b.en": "2"}))
    assert len(metric.seen) == 10


def test_a_pipeline_with_other_settings_is_asked_again(tmp_path: Path) -> None:
    """Without a version the settings and the code of a pipeline tell it from others."""

    def closure(answer: str) -> Any:
        def pipeline(question: str) -> str:
            asked.append(question)
            return answer

        return pipeline

    asked: list[str] = []
    run(closure("a"), Length(), tmp_path / "f")
    run(closure("a"), Length(), tmp_path / "f")
    assert len(asked) == 5
    assert run(closure("b"), Length(), tmp_path / "f")["q0"].output.answer == "b"
    assert len(run(Fixed(k=1), Length(), tmp_path / "r")["q0"].output.passages or ()) == 1
    assert len(run(Fixed(k=3), Length(), tmp_path / "r")["q0"].output.passages or ()) == 3
    for pipeline, count in (
        (graph(), 5),
        (graph(), 0),
        (graph("say"), 5),
    ):  # its nodes tell a graph from others
        assert run(pipeline, Length(), tmp_path / "g", name="mine").manifest["done"]["asked"] == count


@pytest.mark.parametrize(
    "code",
    [
        'CONFIG = ("两年", 2)\ndef ask(question): return CONFIG[0]',
        'def update(): return "两年"\nasync def ask(question): return update()',
        'class Base:\n  text = "两年"\n  def say(self): return self.text\n'
        "class Own(Base): pass\ndef ask(question): return Own().say()",
        'import re\nYEAR = re.compile("两年")\ndef ask(question): return YEAR.pattern',
        'def make():\n  config = ("两年", 2)\n  return lambda question: config[0]\nask = make()',
        "class Own:\n  asked = 0\n  def __init__(self, texts): self.texts = texts\n"
        "  def __call__(self, question):\n    Own.asked += 1\n    return self.texts[0]\n"
        'ask = Own(("两年", "三月"))',
        'last, asked, counts = "", [], {"all": 0}\ndef ask(question):\n  global last\n  last = question\n'
        '  asked.append(question)\n  counts["all"] += 1\n  return "两年"',
    ],
)
def test_what_a_function_reads_or_calls_is_part_of_it(code: str, tmp_path: Path) -> None:
    """Plain data, functions and classes of its module tell it from others; what it fills does not."""

    def ask(text: str) -> Any:
        exec(text, namespace := {"__name__": "own_module"})
        return namespace["ask"]

    same = ask(code)
    assert [run(same, Length(), tmp_path, name="mine").manifest["done"]["asked"] for _ in "ab"] == [5, 0]
    assert run(ask(code), Length(), tmp_path, name="mine").manifest["done"]["asked"] == 0
    assert (
        run(ask(code.replace("两年", "三年")), Length(), tmp_path, name="mine")["q0"].output.answer == "三年"
    )


def test_an_edited_metric_of_ones_own_is_computed_again(tmp_path: Path) -> None:
    """The key has its code, and what that reads; the pipeline is not asked."""
    code = (
        "from rag_kit.evaluation.cells import Cell\nfrom rag_kit.evaluation.metric import Metric\nVALUE = 0.25\n"
        "class Own(Metric):\n  name, source, stage = 'ours_own', 'ours', 'generation'\n"
        "  async def score(self, example, output, judge): return Cell.ok(VALUE)"
    )
    for text, scored, value in ((code, 5, 0.25), (code, 0, 0.25), (code.replace("0.25", "0.5"), 5, 0.5)):
        exec(text, namespace := {"__name__": "own_module"})
        results = run(lambda question: "Yes.", namespace["Own"](), tmp_path, name="mine", version="1")
        assert results.manifest["done"]["scored"] == scored and results.values("ours_own")["q0"] == value
    assert results.manifest["done"]["asked"] == 0


def test_variables_that_the_hash_does_not_see_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once for a run with a folder, without a version."""
    frame, prompt = pd.DataFrame({"text": ["Yes."]}), ChatPromptTemplate.from_template("{question}")
    config = {"text": "text"}

    def ask(question: str) -> str:
        return str(frame[config["text"]][0]) if prompt.invoke({"question": question}) else ""

    run(ask, Length(), tmp_path / "r")
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.startswith("Changes in config (dict), frame (DataFrame) do not")
    run(ask, Length(), tmp_path / "v", version="1")
    run(ask, Length())
    assert len(caplog.records) == 1


def test_a_folder_shows_the_last_run_that_ended(tmp_path: Path) -> None:
    """While a run goes on, and where it is killed, its folder holds what the one before gave, whole."""
    seen: list[Results] = []

    def pipeline(question: str) -> str:
        seen.append(Results.load(tmp_path / "r"))
        return "Yes."

    run(pipeline, Length(), tmp_path / "r", dataset=examples(2), name="first", max_concurrency=1)
    assert [(len(each), each.examples, each.complete) for each in seen] == [(0, 2, False)] * 2
    seen.clear()
    run(pipeline, Length("ours_b"), tmp_path / "r", name="second", max_concurrency=1)
    assert {(each.name, each.metrics, len(each), each.complete) for each in seen} == {
        ("first", ("ours_length",), 2, True)
    }
    assert Results.load(tmp_path / "r").complete


def test_errors_are_tried_again(tmp_path: Path) -> None:
    """Failed cells are computed again, unless that is switched off."""
    broken = {"Question 1?"}
    asked = []

    def pipeline(question: str) -> str:
        asked.append(question)
        if question in broken:
            raise OSError("no connection")
        return "Yes."

    assert run(pipeline, Length(), tmp_path / "r", version="1").summary()["ours_length"].errors == 1
    run(pipeline, Length(), tmp_path / "r", version="1", retry_errors=False)
    assert len(asked) == 5
    broken.clear()
    assert run(pipeline, Length(), tmp_path / "r", version="1").summary()["ours_length"].errors == 0
    assert asked[5:] == ["Question 1?"]


def test_a_cap_ends_the_run_and_keeps_what_is_there(tmp_path: Path) -> None:
    """`max_calls`: no error, a reason in the manifest; the next run does the rest and nothing twice."""
    metric = Judged()
    pipeline = Counting()
    results = run(pipeline, [metric, Length("ours_b")], tmp_path / "r", judge=FakeJudge(), max_calls=3)
    assert len(metric.seen) == 3
    assert "max_calls=3" in results.manifest["stopped_by"]
    assert results.manifest["status"] == "stopped"
    summary = results.summary()["ours_length"]
    assert (summary.n, summary.missing, summary.errors, summary.total) == (3, 2, 0, 5)
    assert "stopped" in str(results)
    assert not results.complete
    loaded = Results.load(tmp_path / "r")
    assert loaded.rows == results.rows
    assert loaded.summary() == results.summary()
    asked = len(pipeline.asked)
    again = run(pipeline, [metric, Length("ours_b")], tmp_path / "r", judge=FakeJudge())
    assert len(metric.seen) == 5
    assert len(pipeline.asked) == 5 >= asked
    assert again.complete
    assert again.manifest["stopped_by"] is None


def test_calls_of_the_pipeline_count_towards_the_caps() -> None:
    """Also those of LangChain models that know nothing of budgets."""
    model = GenericFakeChatModel(messages=iter([AIMessage("Yes.")] * 9))
    results = run(model, Length(), max_calls=2, max_concurrency=1)
    assert results.manifest["done"]["asked"] == len(results)
    assert 2 <= len(results) <= 3
    assert "max_calls=2" in results.manifest["stopped_by"]


def test_after_a_cap_what_asks_no_model_is_computed_all_the_same() -> None:
    """A row whose answer was paid for has every cell that costs nothing."""

    def pipeline(question: str) -> str:
        charge_call()
        return "Yes."

    metrics = [Judged(), Length("ours_plain")]
    results = run(pipeline, metrics, judge=FakeJudge(), max_calls=2, max_concurrency=1)
    assert len(results) >= 1 and results.summary()["ours_plain"].n == len(results)
    assert not results.complete and "max_calls=2" in results.manifest["stopped_by"]


def test_a_cap_of_the_pipelines_own_is_an_error_of_its_row() -> None:
    """Only the caps of the run end the run."""
    from rag_kit.concurrency import Budget, use_budget

    def pipeline(question: str) -> str:
        with use_budget(Budget(max_calls=0 if "1" in question else 5)):
            charge_call()
        return "Yes."

    results = run(pipeline, Length(), max_calls=100)
    assert results.manifest["stopped_by"] is None
    assert "BudgetExceededError" in str(results["q1"].output.error)
    assert results["q0"].output.calls == 1


def test_a_deadline_ends_a_run_that_hangs(tmp_path: Path) -> None:
    """Finished cells are kept."""

    async def pipeline(question: str) -> str:
        if "3" in question:
            await asyncio.sleep(60)
        return "Yes."

    started = time.monotonic()
    results = run(pipeline, Length(), tmp_path / "r", deadline=1.0)
    assert time.monotonic() - started < 30
    assert "deadline" in results.manifest["stopped_by"]
    assert results.summary()["ours_length"].n == 4
    assert len(Results.load(tmp_path / "r")) == 4


def test_a_metric_whose_extra_is_missing_ends_the_run(tmp_path: Path) -> None:
    """With the advice what to install; what is there is kept."""

    class Missing(Length):
        async def score(self, example: Example, output: Output, judge: Any) -> Cell:
            raise MissingExtraError("eval", "This metric")

    with pytest.raises(MissingExtraError, match="eval"):
        run(Counting(), Missing(), tmp_path / "r")
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["status"] == "failed"


def test_the_second_run_of_a_folder_is_refused(tmp_path: Path) -> None:
    """Two runs never write to the same folder."""
    with closing(RunFolder(tmp_path / "r")):
        with pytest.raises(LockedError, match="another run"):
            run(Counting(), Length(), tmp_path / "r")
    assert len(run(Counting(), Length(), tmp_path / "r")) == 5


def test_a_half_written_line_is_dropped_and_its_work_done_again(tmp_path: Path) -> None:
    """Whatever byte the file ends at, the next run completes it and nothing else is asked."""
    whole = run(Counting(), Length(), tmp_path / "r", name="mine", version="1")
    content = (tmp_path / "r" / "rows.jsonl").read_bytes()
    lines = content.splitlines(keepends=True)
    for cut in (1, len(lines[4]) // 2, len(lines[4]) - 1):
        (tmp_path / "r" / "rows.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:cut])
        pipeline = Counting()
        results = run(pipeline, Length(), tmp_path / "r", name="mine", version="1")
        assert pipeline.asked == ["Question 4?"]
        assert [row.output.answer for row in results] == [row.output.answer for row in whole]
        assert len(Results.load(tmp_path / "r")) == 5


def test_stale_rows_are_neither_shown_nor_lost(tmp_path: Path) -> None:
    """A run that is stopped after a change shows only rows of the new pipeline; the old ones stay in the folder."""
    run(Counting(), Length(), tmp_path / "r", name="mine", version="1")

    async def slow(question: str) -> str:
        if question != "Question 0?":
            await asyncio.sleep(60)
        return "New."

    results = run(slow, Length(), tmp_path / "r", name="mine", version="2", deadline=1.0)
    assert (
        [row.output.answer for row in Results.load(tmp_path / "r")]
        == ["New."]
        == [r.output.answer for r in results]
    )
    back = Counting()
    assert len(run(back, Length(), tmp_path / "r", name="mine", version="1")) == 5
    assert back.asked == []


def test_manifest_holds_what_the_run_was_made_with_and_no_key(tmp_path: Path) -> None:
    """Versions, settings, fingerprints, metrics; values named like keys are masked."""
    run(Counting(), Judged(), tmp_path / "r", judge=FakeJudge(), max_calls=50, prices=2.0, name="mine")
    text = (tmp_path / "r" / "manifest.json").read_text("utf-8")
    manifest = json.loads(text)
    assert manifest["versions"]["rag-kit"]
    assert manifest["settings"]["max_calls"] == 50
    assert manifest["judge"]["model"] == "fake"
    assert manifest["metrics"][0]["settings"] == {"factor": 1.0}
    assert manifest["usage"]["judge"] == {"calls": 5, "tokens": 50}
    assert manifest["status"] == "complete"
    assert "abcdef" not in text


def test_usage_by_model_is_counted_for_any_chain() -> None:
    """Calls, tokens and money of models that the kit does not call itself."""
    message = AIMessage(
        "Yes.", usage_metadata={"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
        response_metadata={"model_name": "gpt-x"},
    )  # fmt: skip
    chain = GenericFakeChatModel(messages=iter([message] * 9)) | RunnableLambda(lambda reply: reply.content)
    results = run(chain, Length(), prices={"gpt-x": {"input": 1.0, "output": 10.0}})
    output = results["q0"].output
    assert (output.calls, output.tokens) == (1, 120)
    assert results["q0"].usage["pipeline"] == {"gpt-x": {"input_tokens": 100, "output_tokens": 20}}
    assert results.money() == [pytest.approx(0.0003)] * 5
    assert results.manifest["done"]["money"] == pytest.approx(0.0015)


def test_progress_is_reported_at_the_start_and_after_each_example(tmp_path: Path) -> None:
    """Done, total, cost so far and time left."""
    seen: list[Any] = []
    run(Counting(), Judged(), tmp_path / "r", judge=FakeJudge(), dataset=examples(2), name="m", version="1")
    run(
        Counting(), Judged(), tmp_path / "r", judge=FakeJudge(), progress=seen.append, prices=1.0, name="m",
        version="1",
    )  # fmt: skip
    assert [each.done for each in seen] == [2, 3, 4, 5]
    last = seen[-1]
    assert (last.total, last.reused, last.calls, last.tokens) == (5, 2, 3, 30)
    assert last.money == pytest.approx(30e-6)
    assert last.seconds > 0
    assert str(last) == "3 calls, 0.0k tokens, 3e-05 money"


def test_a_bar_is_drawn_where_somebody_looks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rate, calls and time left on stderr of a terminal; nothing elsewhere, nothing on stdout."""
    import sys

    run(Counting(), Length(), progress=True)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run(Counting(), Length(), progress=True, name="my run")
    shown = capsys.readouterr()
    assert "my run" in shown.err
    assert "5/5" in shown.err
    assert "0 calls" in shown.err
    assert shown.out == ""


async def test_inside_a_running_loop() -> None:
    """The blocking `evaluate` works where a loop runs, as in Jupyter; asyncio is not patched."""
    original = asyncio.run
    results = evaluate(coroutine_function, examples(), Length(), progress=False)
    assert results["q1"].output.answer == "async Question 1?"
    assert asyncio.run is original
    awaited = await aevaluate(coroutine_function, examples(), Length(), progress=False)
    assert awaited.summary() == results.summary()


def test_asking_and_scoring_go_on_side_by_side_within_bounds() -> None:
    """`max_concurrency` is the pipeline's limit, and it is used; nobody runs far ahead of a slow judge."""
    now = most = asked = scored = 0
    ahead = []

    async def pipeline(question: str) -> str:
        nonlocal now, most, asked
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now, asked = now - 1, asked + 1
        return "Yes."

    class Slow(Length):
        async def score(self, example: Example, output: Output, judge: Any) -> Cell:
            nonlocal scored
            await asyncio.sleep(0.02)
            scored += 1
            ahead.append(asked - scored)
            return Cell.ok(1.0)

    run(pipeline, Slow(), dataset=examples(100), max_concurrency=3)
    assert most == 3 and max(ahead) <= 3 * 3 + 1


def test_what_a_refused_call_made_poorer_is_no_result(tmp_path: Path) -> None:
    """A pipeline that goes on with less when the run's cap refuses a call is asked again later."""

    def pipeline(question: str) -> str:
        try:
            charge_call()
        except BudgetExceededError:
            return "poor"
        return "rich"

    results = run(pipeline, Length(), tmp_path / "r", max_calls=2, max_concurrency=1)
    assert [row.output.answer for row in results] == ["rich", "rich"]
    assert "max_calls=2" in results.manifest["stopped_by"]
    assert {row.output.answer for row in run(pipeline, Length(), tmp_path / "r")} == {"rich"}


def test_what_a_pipeline_notes_does_not_make_it_another_one(tmp_path: Path) -> None:
    """Counters and lists that it fills as it works, in closures and attributes."""

    class Object:
        def __init__(self, k: int) -> None:
            self.k, self.calls = k, 0

        def __call__(self, question: str) -> str:
            self.calls += 1
            return "Yes." * self.k

    def closure() -> tuple[Any, Any]:
        count, asked, flags = 0, [], {"dies": True}

        def pipeline(question: str) -> str:
            nonlocal count
            count += 1
            asked.append(question)
            flags["dies"] = False
            return "Yes."

        return pipeline, lambda: count

    thing = Object(1)
    pipeline, count = closure()
    for each, asked in (
        (thing, lambda: thing.calls),
        (pipeline, count),
    ):
        folder = tmp_path / type(each).__name__
        for _ in range(3):
            run(each, Length(), folder)
        assert asked() == 5
    run(Object(2), Length(), tmp_path / "Object")
    assert Results.load(tmp_path / "Object")["q0"].output.answer == "Yes.Yes."


def test_a_reference_is_not_taken_for_a_short_answer_and_that_is_said() -> None:
    """A table's column of answers is read as references: the reason says how to read it as answers."""
    for reference, said in (("Ada", True), (None, False)):
        example = [Example("q", "Who?", reference=reference)]
        run = evaluate(lambda question: "Ada", example, ["ours_answer_found"], progress=False)
        reason = run.rows[0].cells["ours_answer_found"].reason
        assert "the example has no answers" in reason and ("columns={'answers': ...}" in reason) is said


def test_documents_beside_the_answer_are_kept_as_fields() -> None:
    """Passages of a graph become text and metadata in a result, not the repr of an object."""
    state = {"answer": "It.", "retrieved": [Document("text", metadata={"file": "a.md"})], "sure": [1, "x"]}
    extra = Output.of({**state, "best": Document("one")}).extra
    assert extra["retrieved"] == [{"text": "text", "metadata": {"file": "a.md"}}]
    assert extra["best"]["text"] == "one" and extra["sure"] == [1, "x"]
