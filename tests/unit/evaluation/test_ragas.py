"""Ragas is the scorer: each metric beside a bare object of Ragas's with the same scripted model over HTTP."""

from __future__ import annotations

import asyncio
import copy
import http.client
import json
import math
import re
import sqlite3
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from support.openai_server import OpenAIServer, Recorded
from support.ragas_model import answer, answer_to

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Example, Judge, aevaluate, evaluate
from rag_kit.evaluation.judge.adapter import chinese_prompt, original_hash, prompts_of, ragas_llm
from rag_kit.evaluation.judge.ragas_table import ROWS
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.ragas_metric import RagasMetric
from rag_kit.evaluation.scorers import get_metric

COUNT = 4
FILES = sorted((Path(__file__).parents[3] / "prompts" / "ragas").glob("*.zh.yaml"))
#: Metrics of which the kit has every prompt in Chinese.
IN_CHINESE = {
    "faithfulness", "answer_relevancy", "context_precision", "context_precision_without_reference", "context_recall",
    "context_entity_recall", "context_relevance", "answer_accuracy", "answer_correctness", "factual_correctness",
    "response_groundedness",
}  # fmt: skip
TEXTS = {
    "en": ("Where does river {} rise?", "River {} rises in hills. It is long.", "River {} rises far off.", "Hill {}."),
    "zh": ("第{}条河发源于哪里？", "第{}条河发源于山区。它很长。", "第{}条河的源头在山里。", "山{}。"),
}  # fmt: skip
RUBRICS = {"score1_description": "Wrong.", "score5_description": "Right."}


def rows(language: str) -> list[tuple[Example, Output]]:
    """So many rows, from one to three passages each."""
    question, said, reference, passage = TEXTS[language]
    found = []
    for n in range(COUNT):
        call = {"name": "search", "args": {"n": n % 3}}
        messages = [
            {"type": "human", "content": question.format(n)},
            {
                "type": "ai",
                "content": said.format(n),
                "tool_calls": [{"name": "search", "args": {"n": n % 2}}],
            },
        ]
        metadata = {
            "reference_tool_calls": [call], "reference_topics": ["rivers", "河流"],
            "rubrics": {f"score{s}_description": f"level {s}" for s in range(1, 6)},
            "reference_table": f"a,b\n1,{n % 2}\n2,3\n",
        }  # fmt: skip
        example = Example(
            f"q{n}", question.format(n), reference=reference.format(n), metadata=metadata,
            reference_contexts=(passage.format(n) * 20,),
        )  # fmt: skip
        documents = [passage.format(n + k) for k in range(1 + n % 3)]
        found.append(
            (example, Output.of({"answer": said.format(n), "documents": documents, "messages": messages}))
        )
    return found


class Wire:
    """One kept connection to the server: what costs the least of the processor's time."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(
            url.removeprefix("http://").removesuffix("/v1"), timeout=30
        )

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the answer."""
        self._connection.request("POST", f"/v1{path}", json.dumps(body).encode())
        return dict(json.loads(self._connection.getresponse().read()))

    def chat(self, prompt: str) -> str:
        """The model's reply."""
        body = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
        return str(self.post("/chat/completions", body)["choices"][0]["message"]["content"])

    def vectors(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        return [
            each["embedding"] for each in self.post("/embeddings", {"model": "e", "input": texts})["data"]
        ]


class WireModel(BaseChatModel):
    """A LangChain chat model on that connection."""

    wire: Any

    @property
    def _llm_type(self) -> str:
        return "wire"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        message = AIMessage(self.wire.chat(str(messages[-1].content)))
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)

    def with_structured_output(self, schema: Any, **options: Any) -> Any:
        """The model itself: its server gives JSON."""
        return self


class WireEmbeddings(Embeddings):
    """LangChain embeddings on that connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        return self._wire.vectors(texts)

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Without a thread."""
        return self.embed_documents(texts)


async def bare(wire: Wire, name: str, language: str) -> Any:
    """An object of Ragas's that asks the server itself, without this kit; for Chinese with the prompts of the files."""
    import ragas.metrics.collections as collections
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM
    from ragas.prompt.metrics.base_prompt import BasePrompt

    class LLM(InstructorBaseRagasLLM):  # type: ignore[misc]
        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            return response_model.model_validate_json(wire.chat(prompt))

        def generate(self, prompt: str, response_model: Any) -> Any:
            raise NotImplementedError

    class Vectors(BaseRagasEmbedding):  # type: ignore[misc]
        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            return wire.vectors([text])[0]

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return self.embed_text(text)

    kind, llm = ROWS[name], LLM()
    parts: dict[str, Any] = {"llm": llm} if kind.llm else {}
    if kind.embeddings:
        parts["embeddings"] = Vectors()
    metric = getattr(collections, kind.ragas_class)(**parts, **kind.settings)
    if language == "zh":
        for attribute, prompt in list(vars(metric).items()):
            if isinstance(prompt, BasePrompt) and getattr(prompt, "examples", None):
                setattr(metric, attribute, from_file(prompt) or await prompt.adapt("chinese", llm))
    return metric


@cache
def records() -> list[Any]:
    """The contents of the files with prompts in Chinese."""
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES]


def from_file(prompt: Any) -> Any:
    """A prompt of Ragas's with instruction and examples of the file that was made of just this one."""
    for record in records():
        if record["original"] == original_hash(prompt):
            chinese = copy.deepcopy(prompt)
            chinese.instruction = record["instruction"]
            chinese.examples = [
                (prompt.input_model(**each["input"]), prompt.output_model(**each["output"]))
                for each in record["examples"]
            ]
            return chinese
    return None


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """One server for all rows; each distinct prompt's reply is thought of once."""
    replies: dict[str, str] = {}

    def reply(request: Recorded) -> str:
        prompt = str(request.body["messages"][-1]["content"])
        if prompt not in replies:
            replies[prompt] = json.dumps(answer_to(prompt), ensure_ascii=False)
        return replies[prompt]

    with OpenAIServer([reply]) as made:
        yield made


def judge_on(server: OpenAIServer, **settings: Any) -> Judge:
    """A judge that asks the server through LangChain."""
    embeddings = OpenAIEmbeddings(model="e", base_url=server.url, api_key="k")  # type: ignore[call-arg, arg-type]
    return Judge(ChatOpenAI(model="m", base_url=server.url, api_key="k"), embeddings, **settings)  # type: ignore[arg-type]


def arguments(metric: Any, example: Example, output: Output) -> dict[str, Any]:
    """Repeat the inputs that Ragas is given."""
    import inspect

    from ragas.messages import AIMessage, HumanMessage, ToolCall

    first, second = output.messages or ({}, {})
    turns = [
        HumanMessage(content=str(first.get("content"))),
        AIMessage(content=str(second.get("content")), tool_calls=[ToolCall(**second["tool_calls"][0])]),
    ]
    gold = example.metadata["reference_tool_calls"]
    parameters = inspect.signature(metric.ascore).parameters
    given: dict[str, Any] = {
        "user_input": turns if "Message" in str(parameters.get("user_input")) else example.question,
        "response": output.answer, "reference": example.reference, "retrieved_contexts": output.contexts,
        "reference_contexts": list(example.reference_contexts), "rubrics": example.metadata["rubrics"],
        "reference_topics": example.metadata["reference_topics"],
        "reference_tool_calls": [ToolCall(name=each["name"], args=each["args"]) for each in gold],
    }  # fmt: skip
    if type(metric).__name__ == "SQLSemanticEquivalence":
        del given["reference_contexts"]  # this column is the schema of the database
    if type(metric).__name__ in ("DomainSpecificRubrics", "RubricsScoreWithoutReference"):
        del given["reference"]
    return {name: given[name] for name in parameters if name in given}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", [name for name in ROWS if not name.startswith("data_")])
async def test_the_value_is_the_one_that_ragas_gives(name: str, language: str, server: OpenAIServer) -> None:
    """Equal to 1e-9 on each row, and the model was sent the same prompts; for Chinese the kit's, or adapted ones."""
    wire, given = Wire(server.url), rows(language)
    server.requests.clear()
    metric = await bare(wire, name, language)
    wanted = [(await metric.ascore(**arguments(metric, *row))).value for row in given]
    asked = {request.prompt for request in server.chats}
    server.requests.clear()
    judge, ours = Judge(WireModel(wire=wire), WireEmbeddings(wire)), RagasMetric(name)
    cells = [await ours.measure(*row, judge) for row in given]
    assert {request.prompt for request in server.chats} == asked
    assert len(cells) == COUNT
    for cell, value in zip(cells, wanted, strict=True):
        if cell.status == "undefined":  # Ragas gives 0 where every topic was rightly declined, else NaN
            assert value == 0.0 if name == "topic_adherence" else math.isnan(value)
        else:
            assert cell.status == "ok", cell.reason
            assert cell.value == pytest.approx(value, abs=1e-9)
    if asked:
        languages = {each for cell in cells for each in cell.details["prompts"].values()}
        adapted = language == "zh" and not name.startswith("noise_")  # that one has no examples to translate
        kit = all(map(from_file, prompts_of(await bare(wire, name, "en")).values())) if adapted else False
        by = {"chinese"} if kit else {"chinese, translated by the judge"}
        assert languages == (by if adapted else {"english"})
        assert kit == (language == "zh" and name in IN_CHINESE)


@pytest.mark.parametrize("name", ["data_comparison", "data_comparison_columns"])
async def test_tables_are_compared_as_ragas_does(name: str) -> None:
    """The reference table may stand in the metadata, and an answer in a code fence."""
    metric, ours = await bare(Wire("http://127.0.0.1:1/v1"), name, "en"), RagasMetric(name)
    for example, _ in rows("en"):
        said = "a,b\n1,0\n2,3\n"
        wanted = await metric.ascore(reference=example.metadata["reference_table"], response=said)
        cell = await ours.measure(example, Output.of(f"```csv\n{said}```"))
        assert cell.value == pytest.approx(wanted.value, abs=1e-9)


async def test_the_number_is_that_of_ragas_with_its_own_client() -> None:
    """Also beside ``llm_factory`` with Ragas's own way of asking for JSON."""
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics.collections import Faithfulness

    with OpenAIServer([answer]) as server:
        bare = Faithfulness(llm=llm_factory("gpt-4o", client=AsyncOpenAI(base_url=server.url, api_key="k")))
        for example, output in rows("en")[:3]:
            wanted = await bare.ascore(**arguments(bare, example, output))
            cell = await get_metric("faithfulness").measure(example, output, judge_on(server))
            assert cell.value == pytest.approx(wanted.value, abs=1e-9)


def test_names_objects_classes_and_partials_are_handed_in_alike() -> None:
    """Any metric of the collections, one wrapper; an object's own LLM is not asked, the judge is. Sync face."""
    from ragas.metrics.collections import AnswerAccuracy, DomainSpecificRubrics

    polite = DomainSpecificRubrics(llm=ragas_llm(None), rubrics=RUBRICS, name="polite")
    made = partial(DomainSpecificRubrics, llm=ragas_llm(None), name="kind", rubrics={1: "Rude.", 5: "Kind."})
    wanted = ["faithfulness", polite, AnswerAccuracy, made]
    examples = [example for example, _ in rows("en")[:2]]
    outputs = {example.question: output for example, output in rows("en")[:2]}

    def reply(request: Any) -> Any:
        found = answer(request)
        return {**found, "score": 5} if "score" in found else found

    with OpenAIServer([reply]) as server:
        results = evaluate(outputs.__getitem__, examples, wanted, judge=judge_on(server), progress=False)
    assert results.metrics == ("faithfulness", "polite", "answer_accuracy", "kind")
    assert all(cell.status == "ok" for row in results.rows for cell in row.cells.values())
    assert results.rows[0].cells["polite"].value == 5.0
    entry = next(each for each in results.manifest["metrics"] if each["name"] == "polite")
    assert (
        entry["settings"]["with"]["rubrics"] == RUBRICS and "Ragas's own prompts" in entry["settings"]["sent"]
    )


def test_a_run_is_taken_up_again_with_the_same_objects(tmp_path: Path) -> None:
    """Nothing is asked twice, whether a metric is named, made once, or made anew with the same settings."""
    from ragas.metrics.collections import Faithfulness

    examples = [example for example, _ in rows("en")[:2]]
    outputs = {example.question: output for example, output in rows("en")[:2]}
    once = RagasMetric("context_recall")
    with OpenAIServer([answer]) as server:
        for _ in range(2):
            wanted = [
                "answer_accuracy",
                once,
                Faithfulness(llm=ragas_llm(None)),
                RagasMetric("rubrics", rubrics=RUBRICS),
            ]
            server.requests.clear()
            evaluate(
                outputs.__getitem__, examples, wanted, judge=judge_on(server, max_retries=0), out=tmp_path / "run",
                retry_errors=False, progress=False, version="1",
            )  # fmt: skip
        assert not server.requests


async def test_a_metric_of_the_users_own_that_derives_from_ragas_runs_too() -> None:
    """A metric's needs are read from its ``ascore``: columns of the example, the output, and the example's metadata."""
    from ragas.metrics.collections.base import BaseMetric
    from ragas.metrics.result import MetricResult

    class Tone(BaseMetric):  # type: ignore[misc]
        async def ascore(self, response: str, tone: str) -> Any:
            return MetricResult(value=float(tone in response))

    metric = Tone(name="tone")
    examples = [Example("a", "?", metadata={"tone": "kind"}), Example("b", "?")]
    results = await aevaluate(lambda question: "a kind word", examples, [metric], progress=False)
    first, second = (row.cells["tone"] for row in results.rows)
    assert (first.value, second.status) == (1.0, "not_applicable")
    assert "no metadata.tone" in second.reason


@pytest.mark.parametrize(
    ("name", "example", "output", "missing"),
    [
        ("faithfulness", Example("q", "?"), Output(answer="a"), "passages"),
        ("context_recall", Example("q", "?"), Output(answer="a", passages=()), "reference"),
        (
            "topic_adherence",
            Example("q", "?"),
            Output.of({"messages": [{"type": "human", "content": "hi"}]}),
            "reference_topics",
        ),
        ("exact_match", Example("q", "?"), Output(answer="a"), "answers"),
        (
            "agent_goal_accuracy",
            Example("q", "?"),
            Output.of({"messages": [{"type": "human", "content": "hi"}]}),
            "reference_goal",
        ),
    ],
)
async def test_a_row_that_lacks_a_column_is_not_applicable(
    name: str, example: Example, output: Output, missing: str
) -> None:
    """The reason names it; nobody is asked."""
    with OpenAIServer([answer]) as server:
        cell = await get_metric(name).measure(example, output, judge_on(server))
        assert not server.requests
    assert cell.status == "not_applicable" and missing in cell.reason


async def test_a_prompt_is_adapted_once_and_kept_as_json(tmp_path: Path) -> None:
    """Side by side in one run, and never again by a judge of that model with that cache; another model adapts anew."""
    cache = tmp_path / "judge.sqlite"
    translations = []
    with OpenAIServer([answer]) as server:
        for model in ("m", "m", "other"):
            server.requests.clear()
            judge = Judge(ChatOpenAI(model=model, base_url=server.url, api_key="k"), "none", cache=cache)  # type: ignore[arg-type]
            metric = RagasMetric("context_recall", chinese="judge")
            await asyncio.gather(*(metric.measure(*row, judge) for row in rows("zh")[:4]))
            translations.append(sum("TRANSLATOR" in request.prompt for request in server.chats))
            prompt = (await metric.prompts(judge, "zh"))["prompt"]
            assert prompt.examples[0][0].question.startswith("译：")
    assert translations == [1, 0, 1]
    with sqlite3.connect(cache) as connection:
        kept = [json.loads(each) for (each,) in connection.execute("SELECT answer FROM answers")]
    assert any("译：" in json.dumps(each, ensure_ascii=False) for each in kept)


async def test_a_wrong_translation_is_asked_for_again_and_not_kept(tmp_path: Path) -> None:
    """Also with a cache, which keeps the right one alone."""
    wrong = iter([{"statements": ["one"]}])

    def reply(request: Any) -> Any:
        return next(wrong, None) or answer(request) if "TRANSLATOR" in request.prompt else answer(request)

    with OpenAIServer([reply]) as server:
        for chats in (2, 0):
            judge = judge_on(server, cache=tmp_path / "judge.sqlite")
            server.requests.clear()
            cell = await RagasMetric("context_recall", chinese="judge").measure(*rows("zh")[0], judge)
            assert cell.status == "ok"
            assert sum("TRANSLATOR" in request.prompt for request in server.chats) == chats


async def test_a_judge_that_cannot_translate_is_an_error_of_each_cell_and_asked_once() -> None:
    """It is told how to go on: ``language="en"`` sends Ragas's English prompts."""

    def reply(request: Any) -> Any:
        return {"statements": ["one"]} if "TRANSLATOR" in request.prompt else answer(request)

    with OpenAIServer([reply]) as server:
        judge, metric = judge_on(server), RagasMetric("context_recall", chinese="judge")
        cells = await asyncio.gather(*(metric.measure(*row, judge) for row in rows("zh")[:5]))
        assert len(server.chats) == 2
        assert {cell.status for cell in cells} == {"error"} and "language='en'" in cells[0].reason
        cell = await metric.measure(*rows("zh")[0], judge_on(server, language="en"))
    assert cell.status == "ok" and cell.details["prompts"] == {"prompt": "english"}


def shape(value: Any) -> Any:
    """Plain JSON without its words: names, lengths of lists, numbers."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return (
        [shape(item) for item in value]
        if isinstance(value, list)
        else ""
        if isinstance(value, str)
        else value
    )


@pytest.mark.parametrize("name", sorted(IN_CHINESE))
async def test_chinese_prompts_say_what_the_english_ones_do(name: str) -> None:
    """As many examples, of the same fields, list lengths and verdicts; statements that are quoted are those given."""
    metric = await RagasMetric(name)._get_object()
    for english in prompts_of(metric).values():
        chinese = chinese_prompt(english)
        assert chinese is not None
        assert re.search("[\u4e00-\u9fff]{10}", chinese.instruction)
        for sign in ("0", "1", "2", "4", "TP", "FP", "FN", "noncommittal", "verdict", '{"rating": X}'):
            assert chinese.instruction.count(sign) == 0 or sign in english.instruction
        for pair, original in zip(chinese.examples, english.examples, strict=True):
            given, reply = (part.model_dump(mode="json") for part in pair)
            assert [shape(given), shape(reply)] == [shape(part.model_dump(mode="json")) for part in original]
            assert "".join(re.findall("[\u4e00-\u9fff]", json.dumps(given, ensure_ascii=False)))
            for item in reply.get("classifications", []):
                assert item["statement"] in given["answer"]
            for item in reply.get("TP", []) + reply.get("FP", []):
                assert item["statement"] in given["answer"]
            if "context" in given and "statements" in reply:
                assert [item["statement"] for item in reply["statements"]] == given["statements"]


async def test_another_version_of_ragas_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    """A prompt that has changed is translated by the judge, and the log says so once."""
    metric = RagasMetric("context_recall")
    (await metric._get_object()).prompt.instruction += " Be strict."
    with OpenAIServer([answer]) as server:
        cells = [await metric.measure(*row, judge_on(server)) for row in rows("zh")[:2]]
    assert {cell.details["prompts"]["prompt"] for cell in cells} == {"chinese, translated by the judge"}
    (said,) = [record.message for record in caplog.records if "of this version of Ragas" in record.message]
    assert said.startswith("ContextRecallPrompt") and "the judge translates it" in said


def test_who_translates_is_part_of_what_identifies_a_value() -> None:
    """Values of the kit's prompts and of the judge's are not mixed; a wrong word is refused."""
    assert RagasMetric("faithfulness").settings() != RagasMetric("faithfulness", chinese="judge").settings()
    with pytest.raises(InvalidInputError, match="'kit' and 'judge'"):
        RagasMetric("faithfulness", chinese="me")  # type: ignore[arg-type]


def _discrete() -> Any:
    """A metric of Ragas's that is not of its collections."""
    from ragas.metrics import DiscreteMetric

    return DiscreteMetric(name="tone", prompt="Is {response} kind?", allowed_values=["yes", "no"])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("MultiModalFaithfulness", "pictures"),
        ("Faithfulnes", "unknown metric"),
        (partial(RagasMetric, "rubrics", rubrics={1: "alone"}), "2 scores or more"),
        (partial(RagasMetric, "ours_tool_call_f1"), "unknown metric"),
        ("ours_tool_call_f1", "did you mean 'tool_call_f1'"),
        (lambda: get_metric(_discrete()), "unknown metric"),
    ],
)
def test_what_is_no_metric_is_refused(metric: Any, message: str) -> None:
    """With what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        metric() if callable(metric) else get_metric(metric)


def test_settings_that_the_class_does_not_take_are_refused() -> None:
    """Ragas itself takes any word and does nothing with it."""
    for name in ("faithfulness", "AnswerAccuracy"):
        with pytest.raises(InvalidInputError, match="strictness"):
            RagasMetric(name, strictness=3)
    assert RagasMetric("answer_relevancy", strictness=1).settings()["with"] == {"strictness": 1}


async def test_three_guesses_are_three_replies_also_from_the_cache(tmp_path: Path) -> None:
    """Ragas's own cache gives one reply three times; here each repetition has a key of its own."""
    seen: list[int] = []

    def reply(request: Any) -> Any:
        seen.append(1)
        return {"question": f"Guess {len(seen)}?", "noncommittal": 0}

    values = set()
    with OpenAIServer([reply]) as server:
        for _ in range(2):
            judge = judge_on(server, cache=tmp_path / "judge.sqlite")
            cell = await RagasMetric("answer_relevancy").measure(*rows("en")[0], judge)
            values.add(cell.value)
            assert [each["question"] for each in cell.details["replies"]] == [
                "Guess 1?",
                "Guess 2?",
                "Guess 3?",
            ]
    assert (len(seen), len(values)) == (3, 1)
