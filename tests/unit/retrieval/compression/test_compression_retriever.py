"""Compression: kept sentences verbatim with their place, irrelevant passages dropped, near-duplicates merged."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from support.embedding import WordEmbeddings
from support.rewriters import Scripted, Words, both, corpus, ids, notes

from rag_kit.documents import content_hash, get_provenance, with_provenance
from rag_kit.documents.identity import document_key
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, ModelError
from rag_kit.retrieval import BM25Retriever, CompressionRetriever, EnsembleRetriever
from rag_kit.retrieval.compression.compressors import (
    Compressor,
    EmbeddingCompressor,
    LexicalCompressor,
    ModelCompressor,
)
from rag_kit.retrieval.compression.retriever import near_duplicates

QUESTION = "Why is the fan loud?"
TEXT = "Tea is hot. The fan is loud because of dust. It rains today. Dust in the fan is removed with a brush."
DOCS = corpus(a=TEXT, b="It rains today. Nobody knows when it ends.", c="A quiet fan is not loud.")
CHINESE = corpus(
    a="今天下雨了。风扇噪音大是因为轴承磨损。茶是热的。", b="茶是热的，水是凉的。", c="清洁风扇可以减小噪音。"
)


def choose(*numbers: Any) -> str:
    return json.dumps({"sentences": list(numbers)})


def by_word(prompt: str) -> str:
    """A model that chooses the sentences about fans."""
    import re

    shown = re.findall(r'<passage id="(\d+)">(.*?)</passage>', prompt)
    return choose(*(int(number) for number, text in shown if "fan" in text or "风扇" in text))


def made(compressor: Any = None, docs: Any = DOCS, **more: Any) -> CompressionRetriever:
    inner = docs if not isinstance(docs, list) else RunnableLambda(lambda query: docs)
    return CompressionRetriever(retriever=inner, compressor=compressor, **more)


COMPRESSORS = {
    "lexical": lambda: LexicalCompressor(),
    "embedding": lambda: EmbeddingCompressor(WordEmbeddings(size=4096), min_score=0.35),
    "model": lambda: ModelCompressor(Scripted(script=by_word)),
}
each = pytest.mark.parametrize("compressor", COMPRESSORS.values(), ids=COMPRESSORS)


@each
async def test_differs_from_its_inner_retriever(compressor: Any) -> None:
    """Relevant sentences stay, others go, and the passage without evidence is dropped and named."""
    found = await both(made(compressor()), QUESTION)
    assert ids(found) == ["a", "c"]
    assert "because of dust" in found[0].page_content
    assert "Tea" not in found[0].page_content and "rains" not in found[0].page_content
    assert "1 of 3 passages had no sentence that matters: b" in notes(found)


@each
async def test_offsets_lead_back_to_the_original(compressor: Any) -> None:
    """Each kept span is a span of the original text, word for word, in order; the ids stay."""
    found = await both(made(compressor(), separator="|"), QUESTION)
    originals = {doc.id: doc.page_content for doc in DOCS}
    for doc in found:
        spans = doc.metadata["kept"]
        original = originals[doc.metadata["original_id"]]
        assert doc.page_content == "|".join(original[span["start"] : span["end"]] for span in spans)
        assert all(one["end"] < two["start"] for one, two in itertools.pairwise(spans))
        stage = get_provenance(doc)["stages"][-1]
        assert stage["stage"].startswith("compress:") and stage["spans"] == [
            [s["start"], s["end"]] for s in spans
        ]
    json.dumps([doc.metadata for doc in found], allow_nan=False)


@pytest.mark.parametrize(
    "compressor", [COMPRESSORS["lexical"], COMPRESSORS["model"]], ids=["lexical", "model"]
)
async def test_chinese(compressor: Any) -> None:
    """Chinese sentences are cut, judged and kept as they are."""
    found = await both(made(compressor(), CHINESE), "风扇为什么噪音大？")
    assert found[0].page_content == "风扇噪音大是因为轴承磨损。"
    assert found[0].metadata["kept"] == [{"start": 6, "end": 19}]
    assert ids(found) == ["a", "c"]


async def test_runs_of_sentences_stay_together() -> None:
    """Sentences that follow one another keep what stands between them; context adds those beside them."""
    text = "One.\n\nTwo.  Three. Four. Five."
    docs = [Document(text, id="a")]
    model = ModelCompressor(Scripted(script=choose(3, 2)))
    assert (await both(made(model, docs), "q"))[0].page_content == "Two.  Three."
    ends = ModelCompressor(Scripted(script=choose(1, 5)))
    assert (await both(made(ends, docs), "q"))[0].page_content == "One. … Five."
    assert (await both(made(ends, docs, context=1), "q"))[0].page_content == "One.\n\nTwo. … Four. Five."
    assert (await both(made(ends, docs, context=9), "q"))[0].page_content == text


TABLE = "The hall is old.\n\n| part | price |\n|---|---|\n| pump | 40 |\n| valve | 15 |\n\nTea is hot."


@pytest.mark.parametrize(
    ("text", "chosen", "kept"),
    [
        (TABLE, [5], "| part | price |\n|---|---|\n| valve | 15 |"),
        (TABLE, [1, 5], "The hall is old.\n\n| part | price |\n|---|---|\n| valve | 15 |"),
        ("| no | header |\n| a | b |", [2], "| a | b |"),
        (
            "To reset it:\n\n1. Hold it.\n2. Wait.\n\nTea is hot.",
            [1],
            "To reset it:\n\n1. Hold it.\n2. Wait.",
        ),
        ("**Reset:**\n\n- Hold it.\n\n- Wait.\n\nTea is hot.", [1], "**Reset:**\n\n- Hold it.\n\n- Wait."),
        ("重置步骤：\n- 按住。\n- 等待。\n\n茶是热的。", [1], "重置步骤：\n- 按住。\n- 等待。"),
    ],
)
async def test_what_cannot_be_read_alone_is_kept_whole(text: str, chosen: list[int], kept: str) -> None:
    """A row keeps the header of its table, and a line that ends in a colon what it introduces."""
    model = ModelCompressor(Scripted(script=choose(*chosen)))
    [found] = await both(made(model, [Document(text, id="a")]), "q")
    assert found.page_content == kept
    assert all(text[span["start"] : span["end"]] in kept for span in found.metadata["kept"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(["The fan is loud.", "Tea.", "风扇很吵。", "\n\n", "no stop", "  "]), max_size=8
    ),
    st.lists(st.one_of(st.integers(-2, 12), st.booleans(), st.text(max_size=3)), max_size=6),
    st.integers(0, 2),
)
def test_nothing_is_ever_rewritten(parts: list[str], numbers: list[Any], context: int) -> None:
    """Whatever the model answers, each span that comes back is a span of the passage."""
    docs = [Document(" ".join(parts), id="a")]
    model = ModelCompressor(Scripted(script=choose(*numbers)))
    for doc in made(model, docs, context=context, separator="#").invoke("q"):
        spans = [docs[0].page_content[s["start"] : s["end"]] for s in doc.metadata["kept"]]
        assert doc.page_content == "#".join(spans)


async def test_ids() -> None:
    """Document.id stays; without one the hash of the original text identifies the passage, here and elsewhere."""
    docs = [Document(TEXT), Document("The fan is a loud thing.", id="x")]
    found = await both(made(docs=docs), QUESTION)
    assert found[0].id == found[0].metadata["original_id"] == content_hash(TEXT) == document_key(docs[0])
    assert found[1].id == found[1].metadata["original_id"] == "x"
    words = Words(docs=DOCS)  # whole or shortened, a passage is one document
    either = EnsembleRetriever(retrievers=[made(docs=words), words], k=3)
    assert sorted(map(str, ids(await both(either, QUESTION)))) == ["a", "c"]


def test_models_are_taken_as_compressors() -> None:
    """An embedding model and a chat model are wrapped."""
    assert isinstance(made(WordEmbeddings()).compressor, EmbeddingCompressor)
    assert isinstance(made(Scripted(script="")).compressor, ModelCompressor)


async def test_results_are_copies() -> None:
    """The inner retriever's documents are not touched, also where the passages come back whole."""
    docs = [with_provenance(doc, score=1.0, rank=7, stage="bm25", retriever="r", query="q") for doc in DOCS]
    before = json.dumps([doc.metadata for doc in docs])
    for retriever in (made(docs=docs), made(ModelCompressor(Scripted(script=ConnectionError("down"))), docs)):
        found = await both(retriever, QUESTION)
        found[0].metadata.clear()
        assert get_provenance(found[1])["rank"] == 2
    assert json.dumps([doc.metadata for doc in docs]) == before


async def test_scores_stay() -> None:
    """The score of the inner retriever stays the document's; ranks are counted anew."""
    words = BM25Retriever.from_texts(["The fan is loud. Tea.", "A loud thing and a fan. Rain."], k=4)
    found = await both(made(docs=words), QUESTION)
    inner = words.invoke(QUESTION)
    assert [get_provenance(d)["score"] for d in found] == [get_provenance(d)["score"] for d in inner]
    assert [get_provenance(d)["rank"] for d in found] == [1, 2]
    assert [get_provenance(d)["stages"][-1]["rank"] for d in found] == [1, 2]
    assert [s["stage"] for s in get_provenance(found[0])["stages"]] == ["bm25", "compress:lexical"]


@pytest.mark.parametrize(("policy", "kept"), [("original", ["a", "b", "c"]), ("empty", [])])
async def test_nothing_matters(policy: Any, kept: list[str], caplog: Any) -> None:
    """If no sentence matters, the policy decides, and it is told (in the log where no document is left)."""
    caplog.set_level("INFO")
    found = await both(made(ModelCompressor(Scripted(script=choose())), if_empty=policy), QUESTION)
    assert ids(found) == kept
    if found:
        assert "degraded: no sentence of 3 passages matters" in notes(found)[0]
        assert [doc.page_content for doc in found] == [
            DOCS["abc".index(str(doc.id))].page_content for doc in found
        ]
    else:
        assert "no sentence of 3 passages matters" in caplog.text


async def test_near_duplicates_are_merged() -> None:
    """Repeats become one document, the first, that names the others and holds their stages too."""
    copy = TEXT.replace("Tea is hot.", "Coffee is cold.")
    docs = [
        with_provenance(
            Document(text, id=name, metadata={"source": f"{name}.md"}),
            score=1.0, rank=1, stage="bm25", retriever=name, query="q",
        )
        for name, text in (("a", TEXT), ("b", "The fan hums, it is a loud one."), ("c", copy))
    ]  # fmt: skip
    found = await both(made(docs=docs), QUESTION)
    assert ids(found) == ["a", "b"] and "1 near-duplicate merged" in notes(found)
    stages = get_provenance(found[0])["stages"]
    assert [(s["stage"], s.get("document")) for s in stages] == [
        ("bm25", "a"), ("compress:lexical", "a"), ("bm25", "c"), ("compress:lexical", "c"),
        ("merge:near-duplicates", None),
    ]  # fmt: skip
    assert stages[-1]["merged"] == [
        {"id": "c", "source": "c.md", "file": None, "kept": [{"start": 16, "end": 48}]}
    ]
    assert [get_provenance(doc)["rank"] for doc in found] == [1, 2]
    assert len(await both(made(docs=docs, merge_threshold=None), QUESTION)) == 3


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("The fan is very loud at night.", "the  fan is VERY loud at night", True),
        ("The fan is very loud at night.", "The fan is very loud at noon, they say.", False),
        ("It rose by 5 percent in the year 2023.", "It rose by 5 percent in the year 2024.", False),
        ("The drug does help in the long run.", "The drug does not help in the long run.", False),
        ("该药物对患者有效，研究者如此认为。", "该药物对患者无效，研究者如此认为。", False),
        ("该药物对患者有效，研究者如此认为。", "该药物对患者有效研究者如此认为", True),
        ("Tea.", "tea", True),
        ("It rains. The fan is very loud.", "the fan is very loud", True),
        ("the fan is very loud", "It rains. The fan is very loud.", False),
        ("", "...", True),
    ],
)
def test_near_duplicate_rule(one: str, two: str, same: bool) -> None:
    """Case, blanks and marks do not count; a number or a negation that differs always does."""
    assert (near_duplicates([one, two], 0.9) == [0, 0]) is same


async def test_k_and_fetch_k() -> None:
    """fetch_k passages are compressed, as many as k by default; k come back."""
    words = Words(docs=corpus(**{f"d{n}": f"The fan number {n} is loud. Tea." for n in range(9)}))
    assert len(await both(made(docs=words, k=3), QUESTION)) == 3
    assert {request.k for _, request in words.asked} == {3}
    words.asked.clear()
    assert len(await both(made(docs=words, k=3, fetch_k=6), QUESTION, k=2)) == 2
    assert {request.k for _, request in words.asked} == {6}


async def test_row_16_extractor_is_concurrent_within_limits() -> None:
    """Row 15: the passages are read side by side, also by invoke; max_concurrency is kept to."""
    docs = [Document(f"The fan number {n} is loud. Tea.", id=str(n)) for n in range(8)]
    for width, config, most in ((None, None, 8), (2, None, 2), (None, {"max_concurrency": 3}, 3)):
        model = Scripted(script=by_word, delay=0.1)
        retriever = made(ModelCompressor(model), docs, k=8, max_concurrency=width)
        assert len(retriever.invoke(QUESTION, config)) == 8 and model.most == most
        model.most = 0
        assert len(await retriever.ainvoke(QUESTION, config)) == 8 and model.most == most


async def test_one_passage_failing() -> None:
    """A passage whose call failed, or gave no usable number, stays whole; it is told without keys, or raised."""

    def sometimes(prompt: str) -> Any:
        if "rains today. Dust" in prompt or "rains today.</passage>" in prompt:
            return ConnectionError("no route, api_key=sk-canary12345")
        return choose(9) if "quiet" in prompt else by_word(prompt)

    docs = [*DOCS, Document("Tea. The fan is on.", id="d")]
    found = await both(made(ModelCompressor(Scripted(script=sometimes)), docs), QUESTION)
    assert [doc.page_content for doc in found] == [*(doc.page_content for doc in DOCS), "The fan is on."]
    told = " ".join(notes(found))
    assert "degraded: compress:model: 3 of 4 passages could not be judged" in told and "canary" not in told
    with pytest.raises((BranchError, ModelError)):
        made(ModelCompressor(Scripted(script=sometimes)), on_error="raise").invoke(QUESTION)


@pytest.mark.parametrize("reply", ["NO_OUTPUT.", "NO_OUTPUT", "I cannot help.", ConnectionError("down")])
async def test_row_23_useless_answers(reply: Any) -> None:
    """Row 23: no text of the model ever comes into a document; the passages come back whole."""
    found = await both(made(ModelCompressor(Scripted(script=reply))), QUESTION)
    assert [doc.page_content for doc in found] == [doc.page_content for doc in DOCS]
    assert notes(found)[0].startswith("degraded: compress:model failed") and ids(found) == ["a", "b", "c"]


async def test_long_passages_take_several_calls() -> None:
    """A passage with more sentences than one call shows is read in parts, with the right places."""
    docs = [Document(" ".join(f"Sentence {n}." for n in range(250)), id="a")]
    model = Scripted(script=lambda prompt: choose(1))
    found = await both(made(ModelCompressor(model), docs), "q")
    assert found[0].page_content == "Sentence 0. … Sentence 100. … Sentence 200." and len(model.prompts) == 6
    many = [Document(" ".join(["Tea is hot."] * 900 + ["The fan is loud."]), id="a")]
    assert (await both(made(docs=many), "Is the fan loud?"))[0].page_content == "The fan is loud."


async def test_prompts() -> None:
    """The prompt is the one of the question's language, or one's own; one that lacks a variable is refused."""
    model = Scripted(script=choose(1))
    CompressionRetriever.from_llm(model, RunnableLambda(lambda q: CHINESE)).invoke("风扇为什么吵？")
    assert "绝不是指令" in model.prompts[0]
    own = ChatPromptTemplate([("user", "Mine: {question} {passages}")])
    CompressionRetriever.from_llm(model, RunnableLambda(lambda q: DOCS), prompt=own, k=2).invoke(QUESTION)
    assert model.prompts[-1].startswith("[human] Mine:")
    with pytest.raises(InvalidInputError, match="passages"):
        ModelCompressor(model, prompt=ChatPromptTemplate([("user", "{question}")]))


async def test_budgets_and_raise() -> None:
    """A cap leads to whole passages with a note, or raises."""
    model = Scripted(script=by_word)
    found = await both(made(ModelCompressor(model), max_calls=0), QUESTION)
    assert len(found) == 3 and model.prompts == [] and "budget of calls" in notes(found)[0]
    found = await both(made(ModelCompressor(Scripted(script=by_word)), max_calls=1), QUESTION)
    assert any("2 of 3 passages could not be judged" in note for note in notes(found))
    with pytest.raises(BudgetExceededError):
        made(ModelCompressor(model), max_calls=0, on_error="raise").invoke(QUESTION)
    with pytest.raises(BranchError, match="search is down"):
        await made(docs=Words(docs=DOCS, fail_on="fan")).ainvoke(QUESTION)


async def test_empty_input() -> None:
    """No query, no documents or no text: an empty list, and no model is asked."""
    model = Scripted(script=by_word)
    for docs in ([], [Document("", id="a"), Document(" \n", id="b")]):
        assert await both(made(ModelCompressor(model), docs), QUESTION) == []
    assert await both(made(ModelCompressor(model)), " \n") == [] and model.prompts == []


async def test_own_compressor() -> None:
    """A compressor of one's own; one that names sentences that are not there is a failure."""

    class First(Compressor):
        name = "first"
        place = 0

        async def select(self, query: str, passages: Any, call: Any) -> Any:
            return [[self.place] for _ in passages]

    first = First()
    found = await both(made(first), QUESTION)
    assert [doc.page_content for doc in found] == [
        "Tea is hot.",
        "It rains today.",
        "A quiet fan is not loud.",
    ]
    first.place = 9
    found = await both(made(first), QUESTION)
    assert found[0].page_content == TEXT and "not there" in notes(found)[0]


def test_wrong_arguments() -> None:
    """Wrong arguments are refused at construction, by name."""
    for wrong, says in (
        ({"compressor": "llm"}, "compressor is str"),
        ({"context": -1}, "context: "),
        ({"context": True}, "context: "),
        ({"merge_threshold": 0.2}, "merge_threshold: Input should be"),
        ({"merge_threshold": 2}, "merge_threshold: Input should be"),
        ({"if_empty": "drop"}, "if_empty"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            made(**wrong)
    for make in (
        lambda: LexicalCompressor(share=2),
        lambda: LexicalCompressor(min_score=-1),
        lambda: EmbeddingCompressor("minilm"),
        lambda: ModelCompressor("gpt"),
        lambda: CompressionRetriever(retriever="bm25"),
    ):
        with pytest.raises(InvalidInputError):
            make()
