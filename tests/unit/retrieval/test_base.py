from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField, RunnableLambda

from rag_kit.concurrency.notes import use_notes
from rag_kit.documents import get_provenance
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.graphs import build_self_rag
from rag_kit.indexing import BM25Index
from rag_kit.models import chat_model
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import (
    BM25Retriever,
    CompressionRetriever,
    EnsembleRetriever,
    GraphRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    RagKitRetriever,
    RerankRetriever,
)
from rag_kit.retrieval.base import blocking_step
from rag_kit.retrieval.call import Call


class Ranked(RagKitRetriever):
    """Returns its texts in order and keeps what it was asked."""

    texts: list[str] = [f"text {n}" for n in range(10)]
    seen: Any = []

    async def _search(self, query: str, call: Call) -> list[Document]:
        return await blocking_step("texts", self._find, query, call)

    def _find(self, query: str, call: Call) -> list[Document]:
        self.seen.append((query, call, threading.current_thread().name))
        return [Document(text) for text in self.texts]


def test_k_of_the_call_and_of_the_constructor() -> None:
    """k is taken from the call, else from the constructor, through invoke, bind and batch."""
    retriever = Ranked(k=3, seen=[])
    assert len(retriever.invoke("q")) == 3
    assert len(retriever.invoke("q", None, k=5)) == 5
    assert len(retriever.bind(k=2).invoke("q")) == 2
    assert [len(docs) for docs in retriever.batch(["q", "r"], k=1)] == [1, 1]
    assert len((retriever | RunnableLambda(lambda docs: docs)).invoke("q", k=6)) == 6


async def test_async_runs_on_the_shared_pool() -> None:
    """Blocking work of a retriever runs on the kit's threads, not on asyncio's small pool."""
    retriever = Ranked(seen=[])
    assert len(await retriever.ainvoke("q", None, k=5)) == 5
    assert retriever.seen[0][2] == "rag_kit"


def test_row_2_whole_config_is_passed_down() -> None:
    """configurable, metadata, tags and max_concurrency are there for the parts, callbacks as child runs."""
    retriever = Ranked(seen=[])
    retriever.invoke("q", {"configurable": {"x": 1}, "max_concurrency": 3, "metadata": {"m": 2}})
    child = retriever.seen[0][1].child("part")
    assert child["configurable"] == {"x": 1} and child["max_concurrency"] == 3
    assert child["metadata"]["m"] == 2
    assert child["callbacks"].parent_run_id is not None and "part" in child["callbacks"].tags


def test_configurable_fields() -> None:
    """k can be made configurable like any LangChain field; a retriever around it names the field too."""
    retriever = Ranked(seen=[]).configurable_fields(k=ConfigurableField(id="k"))
    assert len(retriever.invoke("q", {"configurable": {"k": 7}})) == 7
    assert "k" in {spec.id for spec in EnsembleRetriever(retrievers=[retriever]).config_specs}


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "3", None])
def test_wrong_k(k: Any) -> None:
    """k must be a whole number of at least 1: at construction, in the call, and where the field is set later."""
    with pytest.raises(InvalidInputError, match="k="):
        Ranked(k=k)
    if k is not None:
        with pytest.raises(InvalidInputError, match="k="):
            Ranked().invoke("q", None, k=k)
        retriever = Ranked()
        retriever.k = k
        with pytest.raises(InvalidInputError, match="k="):
            retriever.invoke("q")


def test_wrong_arguments() -> None:
    """Unknown arguments, malformed filters and queries that are no strings are refused by name."""
    with pytest.raises(InvalidInputError, match=r"'kk'.*allowed: .*id_key"):
        Ranked(kk=3)
    with pytest.raises(InvalidInputError, match=r"'kk'.*allowed: filter, k"):
        Ranked().invoke("q", None, kk=3)
    with pytest.raises(FilterError, match="near"):
        Ranked(filter={"a": {"$near": 1}})
    with pytest.raises(FilterError, match="near"):
        Ranked().invoke("q", None, filter={"a": {"$near": 1}})
    with pytest.raises(InvalidInputError, match="int"):
        Ranked().invoke(3)  # type: ignore[arg-type]


def test_construction_errors_do_not_show_values() -> None:
    """A wrong value, which may be a secret, is not repeated by pydantic's report."""
    with pytest.raises(InvalidInputError) as caught:
        Ranked(texts="canary")
    assert "canary" not in str(caught.value) and "texts" in str(caught.value)


def test_parts_in_order_without_names_are_refused() -> None:
    """Retrievers take their arguments by name, and say so."""
    with pytest.raises(InvalidInputError, match="EnsembleRetriever takes its arguments by name"):
        EnsembleRetriever([Ranked()])


@pytest.mark.parametrize("family", [HyDERetriever, MultiQueryRetriever, SelfQueryRetriever])
@pytest.mark.parametrize("name", ["max_calls", "max_tokens"])
@pytest.mark.parametrize("value", [True, "5", 1.5, float("nan"), -1])
def test_a_cap_that_is_no_number_is_refused(family: Any, name: str, value: Any) -> None:
    """A flag is no cap of one call, and a text no number, as for the other counts."""
    parts = {"retriever": Ranked(), "llm": FakeListChatModel(responses=["x"]), "schema": []}
    if family is not SelfQueryRetriever:
        del parts["schema"]
    with pytest.raises(InvalidInputError, match=f"{name}=.* whole number"):
        family(**parts, **{name: value})
    assert getattr(family(**parts, **{name: 0}), name) == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": 1e300}, "timeout=1e"),
        ({"timeout": "soon"}, "timeout='soon'"),
        ({"deadline": -1}, "deadline=-1"),
        ({"max_concurrency": 0}, "max_concurrency=0"),
        ({"fetch_k": 0}, "fetch_k=0"),
        ({"on_error": "ignore"}, "on_error"),
        ({"k": 0}, "k=0"),
        ({"nn": 3}, "'nn'"),
    ],
)
def test_wrong_bounds_of_retrievers_that_ask_others(wrong: dict[str, Any], says: str) -> None:
    """Every such retriever has the same bounds, and refuses what they cannot be by name."""
    with pytest.raises(InvalidInputError, match=says):
        EnsembleRetriever(retrievers=[Ranked()], **wrong)


FAN, PUMP = "The fan starts at 60 degrees.", "The pump starts at 40 degrees."


def numbered(text: str) -> Any:
    """A store that numbers its only document 7."""
    return RunnableLambda(lambda query: [Document(text, id="7", metadata={"year": 2020})])


@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
@pytest.mark.parametrize(
    "family", ["rerank", "foreign reranker", "compression", "graph", "self query", "Self-RAG"]
)
async def test_two_texts_with_one_id_are_two_documents(family: str, native: bool) -> None:
    """Also after the ensemble that kept them apart; a note says so, and none that one is a repeat."""
    index = BM25Index.from_documents([Document(FAN, id="7", metadata={"year": 2020})])
    two: Any = EnsembleRetriever(retrievers=[BM25Retriever(index=index), numbered(PUMP)])
    made: Any = {
        "rerank": lambda: RerankRetriever(
            retriever=two, reranker=lambda query, documents: [1.0] * len(documents)
        ),
        "foreign reranker": lambda: RerankRetriever(retriever=two, reranker=Bare()),
        "compression": lambda: CompressionRetriever(retriever=two),
        "graph": lambda: GraphRetriever(index=index, retriever=two),
        # lists the fan beside the pump, which is found
        "self query": lambda: SelfQueryRetriever.from_rules(
            two, documents=[Document(FAN, id="7", metadata={"year": 2020})]
        ),
        "Self-RAG": lambda: build_self_rag(two, chat_model("extractive"), mode="paper"),
    }[family]()
    question: Any = (
        "documents of 2020" if family == "self query" else "At how many degrees do fan and pump start?"
    )
    question = {"question": question} if family == "Self-RAG" else question
    with use_notes() as noted:
        found = await made.ainvoke(question) if native else made.invoke(question)
    found = found["documents"] if family == "Self-RAG" else found
    assert {doc.page_content for doc in found} == {FAN, PUMP}
    assert not any("repeated" in note for note in noted.texts)


def test_one_text_with_one_id_is_one_document_whatever_blanks_are_around_it() -> None:
    """Two stores may keep or cut them."""
    twice = RunnableLambda(lambda query: [Document(text, id="7") for text in (FAN, FAN + " ", "\n" + FAN)])
    rerank: Any = {"reranker": lambda query, documents: [1.0] * len(documents)}
    assert len(RerankRetriever(retriever=twice, **rerank).invoke("fan")) == 1


class Bare(BaseDocumentCompressor):
    """A compressor that gives new documents back, in the other order: texts and ids alone."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return [Document(doc.page_content, id=doc.id) for doc in reversed(documents)]


def test_a_document_given_back_bare_keeps_the_record_of_its_own_text() -> None:
    """And not that of the other with its id."""
    two: Any = EnsembleRetriever(retrievers=[numbered(FAN), numbered(PUMP)])
    found = RerankRetriever(retriever=two, reranker=Bare()).invoke("fan")
    ranks = {doc.page_content: get_provenance(doc)["stages"][-1]["rank_before"] for doc in found}
    assert ranks == {FAN: 1, PUMP: 2}
