"""Without a language model the graphs give extracts and say so; what the passages do not name is declined."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.graphs import BUILDERS, fixed

from rag_kit.graphs import build_plain_rag
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.models import chat_model
from rag_kit.retrieval import index_retriever

PASSAGES = [
    Document(
        "The XP-3200 lifts water 8 metres high.", metadata={"title": "Pumps", "heading": "Manual > Head"}
    ),
    Document("The net profit was 5 million in 2022 and 6 million in 2023."),
]
ZH_PASSAGES = [
    Document("XP-3200的扬程为8米，可以输送清水。", metadata={"title": "水泵手册"}),
    Document("2022年净利润为500万元，2023年净利润为600万元。"),
]


@pytest.mark.parametrize("name", BUILDERS)
def test_an_identifier_or_year_that_no_passage_has_is_declined(name: str) -> None:
    """Every graph, English and Chinese, each in one form; what is there is answered, with a note that says how."""
    for passages, absent, present in (
        (PASSAGES, "How high does the XP-9900 lift water?", "How high does the XP-3200 lift water?"),
        (PASSAGES, "What was the net profit in 2021?", "What was the net profit in 2023?"),
        (ZH_PASSAGES, "XP-9900的扬程是多少？", "XP-3200的扬程是多少？"),
        (ZH_PASSAGES, "2021年净利润是多少？", "2023年净利润是多少？"),
    ):
        graph = BUILDERS[name](fixed(*passages), chat_model("extractive"))
        for question, declined in ((absent, True), (present, False)):
            asked: Any = {"question": question}
            english = passages is PASSAGES
            result = graph.invoke(asked) if english else asyncio.run(graph.ainvoke(asked))
            assert (result["status"] == "declined") is declined, (question, result["answer"])
            assert any("no language model" in note for note in result["notes"]) is not declined


#: What a newcomer asks of the guide, the pages that answer, and words of the sentence or row that does.
ANSWERED = (
    ("How do I cap the number of model calls?", "en/(answers|models)", "max_calls"),
    ("How many characters may a question have?", "en/answers", "32,000"),
    ("Can several processes search one index?", "en/index-folder", "Any number of processes"),
    ("How does reciprocal rank fusion score a passage?", "en/retrieval", r"w / \(k \+ rank\)"),
    ("How do I repair a damaged index?", "en/index-folder", "rag-kit repair"),
    ("How many processes may write to an index at a time?", "en/index-folder", "Only one process"),
    ("Which exit code does a second writer get?", "en/index-folder", "exit code 8"),
    ("What happens to a broken or encrypted file?", "en/index-folder", "reported by name"),
    ("What does a score_threshold of 0.5 do?", "en/reranking", "lower score are left out"),
    ("What happens when a reranker fails?", "en/reranking", "leaves the order as it was"),
    ("How long does a 429 wait?", "en/models", "at most 30 s"),
    ("Can I use a LangChain text splitter?", "en/reading", "Any LangChain text splitter"),
    ("How are long threads summarised?", "en/conversational", "the older half"),
    ("How do I search with misspelled words?", "en/sparse", "TrigramRetriever"),
    ("How are tables in PDFs read?", "en/reading", "markdown tables"),
    ("What is the difference between mode paper and mode reflect?", "en/self-rag", "reflect"),
    ("怎样修复损坏的索引？", "zh/index-folder", "rag-kit repair"),
    ("同时可以有几个进程写入索引？", "zh/index-folder", "只允许一个进程"),
    ("损坏或加密的文件会怎么样？", "zh/index-folder", "按文件名逐个报告"),
    ("重排失败时会怎样？", "zh/reranking", "保持原来的顺序"),
    ("minilm 懂中文吗？", "zh/problem-chinese", "只懂英文"),
    ("权重为零的检索器会怎么样？", "zh/retrieval", "不会被调用"),
    ("一个问题最多可以有多少个字符？", "zh/answers", "32,000"),
    ("PDF 里的表格怎么读？", "zh/reading", "Markdown 表格"),
)
DECLINED = (
    "What does a licence cost per year?",
    "How do I connect it to SharePoint?",
    "How tall is Mount Everest?",
    "Which phone app can I install?",
    "一年的许可证多少钱？",
    "珠穆朗玛峰有多高？",
)


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Plain RAG without any model over the kit's own guide, searched by keyword."""
    folder = tmp_path_factory.mktemp("guide") / "index"
    ingest([Path(__file__).parents[3] / "docs" / "guide"], folder, embeddings=None)
    with DocumentIndex.open(folder) as index:
        yield build_plain_rag(index_retriever(index), chat_model("extractive"))


def shows(graph: Any, question: str, page: str, words: str) -> bool:
    """Whether the first extract is of the right page, with the words that answer, and every citation holds."""
    result = graph.invoke({"question": question})
    if result["status"] == "declined":
        return False
    first = result["citations"][0]["number"]
    said = " ".join(one["statement"] for one in result["citations"] if one["number"] == first)
    source = result["documents"][first - 1].metadata["source"]
    return bool(re.search(page, source) and re.search(words, said)) and result["status"] == "grounded"


@pytest.mark.slow
def test_questions_on_the_guide(guide: Any) -> None:
    """At least 22 of thirty show the right passage first, with what answers; what the guide lacks is declined."""
    wrong = [row[0] for row in ANSWERED if not shows(guide, *row)]
    assert len(ANSWERED) - len(wrong) >= 22, wrong
    assert [guide.invoke({"question": question})["status"] for question in DECLINED] == ["declined"] * 6


@pytest.mark.slow
def test_no_extract_of_the_guide_is_code(guide: Any) -> None:
    """Whatever is asked of pages full of code, no line of it is an answer."""
    for question in (
        "What is the default chunk size?",
        "How do I import the graphs?",
        "How large may a file be?",
    ):
        answer = guide.invoke({"question": question})["answer"]
        assert not re.search(r"^(?:from \w+ import|import |print\(|\w+ = \w+\()", answer, re.MULTILINE), (
            answer
        )


@pytest.mark.parametrize(
    ("question", "declined"),
    [
        ("I live in Bath. 《风扇手册》的作者是谁？", False),
        ("《风扇手册》的作者是谁？ My dog is called Rex.", False),
        ("我住在 Bath。《风扇手册》的作者是谁？", False),
        ("I live in Bath. When does the Alkor start?", True),
        ("We are in Bath. Tell me when the XQ-77 starts.", True),
        ("I know the fan. When does the fan of Bath start?", True),
    ],
)
def test_names_in_what_askers_say_of_themselves_are_not_looked_for(question: str, declined: bool) -> None:
    """They say nothing of what is asked; names and identifiers of the question still count."""
    passages = Document("The fan starts at 60 degrees."), Document("《风扇手册》的作者是李安。")
    graph = build_plain_rag(fixed(*passages), chat_model("extractive"))
    assert (graph.invoke({"question": question})["status"] == "declined") is declined


def test_a_header_without_words_is_not_quoted() -> None:
    """A row under empty header cells stands alone, and holds."""
    table = "| | |\n|---|---|\n| purpose of the red valve | does it stop the pump? Yes, at 60 degrees. |"
    passage = Document(f"Notes on the pump.\n\n{table}", metadata={"title": "Valves"})
    graph = build_plain_rag(fixed(passage), chat_model("extractive"))
    result = graph.invoke({"question": "What is the purpose of the red valve?"})
    assert result["status"] == "grounded" and "| | |" not in result["answer"]
