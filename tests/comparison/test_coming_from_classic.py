"""The page "Coming from langchain_classic": its code runs on both sides, and its arguments are taken or named."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.structured_query import Comparison, StructuredQuery, Visitor
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import (
    BM25Retriever,
    CompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
    RerankRetriever,
    VectorRetriever,
)

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
FIELDS = [{"name": "year", "description": "Year", "type": "integer"}]
DOCS = [Document(f"The fan of {2000 + n} is loud.", id=str(n), metadata={"year": 2000 + n}) for n in range(9)]


def store() -> InMemoryVectorStore:
    """A store of nine documents."""
    made = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    made.add_documents(DOCS)
    return made


def model(answer: str) -> FakeListChatModel:
    """A model that always gives one answer."""
    return FakeListChatModel(responses=[answer])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_code_of_the_page_runs_on_both_sides(language: str) -> None:
    """Each snippet, theirs and ours, in the order of the page, with its asserts."""
    for package in ("langchain_classic", "langchain_community", "langchain_chroma", "rank_bm25", "lark"):
        pytest.importorskip(package)
    page = (GUIDE / language / "coming-from-langchain-classic.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(snippets) == 14
    names: dict[str, Any] = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, code in enumerate(snippets, start=1):
            exec(compile(code, f"{language} snippet {number}", "exec"), names)


def test_an_ensemble_takes_c_and_gives_the_union_for_none() -> None:
    """``c`` is ``rrf_k``; ``k=None`` returns what the retrievers find by themselves, whatever their own ``k``."""
    arms = [BM25Retriever.from_documents(DOCS, k=5), store().as_retriever(search_kwargs={"k": 4})]
    assert EnsembleRetriever(retrievers=arms, c=7).rrf_k == 7
    assert len(EnsembleRetriever(retrievers=arms).invoke("fan")) == 4
    union = EnsembleRetriever(retrievers=arms, k=None)
    ids = {doc.id for arm in arms for doc in arm.invoke("fan")}
    assert {doc.id for doc in union.invoke("fan")} == ids and len(union.invoke("fan", k=3)) == 3
    assert len(EnsembleRetriever(retrievers=[union, arms[0]], k=None, fusion="convex").invoke("fan")) >= len(
        ids
    )
    with pytest.raises(InvalidInputError, match="c and rrf_k were given"):
        EnsembleRetriever(retrievers=arms, c=7, rrf_k=7)
    with pytest.raises(InvalidInputError, match="k=None was given"):
        BM25Retriever.from_documents(DOCS, k=None)  # type: ignore[arg-type]


async def test_multi_query_gives_the_union_for_none() -> None:
    """The union of all versions, blocking and not."""
    llm = model("fan 2003\nfan 2004\nfan 2005\nfan 2006")
    both = [MultiQueryRetriever.from_llm(llm, store().as_retriever(), k=k, n=4) for k in (None, 4)]
    assert len(both[0].invoke("fan")) == len(await both[0].ainvoke("fan")) > 4 == len(both[1].invoke("fan"))


def test_bm25_takes_the_arguments_of_langchain_community() -> None:
    """``bm25_params`` and ``preprocess_func`` are ``k1``, ``b`` and ``analyzer``; what has no meaning is named."""
    texts = ["Alpha-1 beta", "beta gamma", "alpha-1"]
    theirs = BM25Retriever.from_texts(texts, bm25_params={"k1": 2.0, "b": 0.1}, preprocess_func=str.split)
    ours = BM25Retriever.from_texts(texts, k1=2.0, b=0.1, analyzer=str.split)
    assert [get_provenance(d)["score"] for d in theirs.invoke("beta")] == [
        get_provenance(d)["score"] for d in ours.invoke("beta")
    ]
    with pytest.raises(
        InvalidInputError, match=r"'epsilon' is no argument \(in rag_kit: nothing.*allowed: b, k1, variant"
    ):
        BM25Retriever.from_documents(DOCS, bm25_params={"epsilon": 0.2})
    with pytest.raises(InvalidInputError, match="analyzer and preprocess_func"):
        BM25Retriever.from_documents(DOCS, analyzer=str.split, preprocess_func=str.split)


def test_search_kwargs_and_search_type_are_read() -> None:
    """``search_kwargs`` are ``k`` and ``filter``; other kinds of search name the retriever that they are here."""
    words = VectorRetriever(
        vectorstore=store(),
        search_type="similarity",
        search_kwargs={"k": 2, "filter": {"year": {"$gt": 2004}}},
    )
    assert len(words.invoke("fan")) == 2 and all(d.metadata["year"] > 2004 for d in words.invoke("fan", k=9))
    for kind, named in (
        ("mmr", "MMRReranker"),
        ("similarity_score_threshold", "score_threshold"),
        ("x", "allowed"),
    ):
        with pytest.raises(InvalidInputError, match=named):
            VectorRetriever(vectorstore=store(), search_type=kind)
    for wrong, said in (({"fetch_k": 3}, "fetch_k"), ([3], "list"), ({"k": 0}, "k=0")):
        with pytest.raises(InvalidInputError, match=said):
            VectorRetriever(vectorstore=store(), search_kwargs=wrong)
    with pytest.raises(InvalidInputError, match="k was given twice"):
        VectorRetriever(vectorstore=store(), k=3, search_kwargs={"k": 2})


@pytest.mark.parametrize(
    ("question", "contents"), [("the 2 loudest after 2005", "Fans"), ("2005年以后最吵的2个", "风扇")]
)
async def test_self_query_takes_the_arguments_of_langchain_classic(question: str, contents: str) -> None:
    """By place: model, store, contents, fields. The contents reach the model; ``enable_limit`` decides on numbers."""
    answer = '{"query": "fan", "filter": {"field": "year", "operator": "gt", "value": 2005}, "limit": 2}'
    seen: list[str] = []

    class Kept(FakeListChatModel):
        def _call(self, messages: Any, *args: Any, **more: Any) -> str:
            seen.append("\n".join(str(message.content) for message in messages))
            return super()._call(messages, *args, **more)

    llm = Kept(responses=[answer])
    made = SelfQueryRetriever.from_llm(llm, store(), contents, FIELDS)
    assert len(made.invoke(question)) == len(await made.ainvoke(question)) == 2
    assert contents in seen[0] and "year" in seen[0]
    every = SelfQueryRetriever.from_llm(
        llm=llm,
        vectorstore=store(),
        document_contents=contents,
        metadata_field_info=FIELDS,
        enable_limit=False,
    )
    assert {doc.metadata["year"] for doc in every.invoke(question)} == {2006, 2007, 2008}
    assert SelfQueryRetriever.from_llm(llm, store(), schema=FIELDS, search_kwargs={"k": 1}).k == 1


class Predicates(Visitor):
    """Translates comparisons into the filters of a store."""

    def visit_operation(self, operation: Any) -> Any:
        """Not needed."""
        raise NotImplementedError

    def visit_comparison(self, comparison: Comparison) -> Any:
        """As the store takes it."""
        return {"only": comparison.attribute, "above": comparison.value}

    def visit_structured_query(self, structured_query: StructuredQuery) -> tuple[str, dict[str, Any]]:
        """The filter argument."""
        return structured_query.query, {"filter": structured_query.filter.accept(self)}  # type: ignore[union-attr]


def test_a_translator_is_used_for_a_store_without_one() -> None:
    """A ``structured_query_translator`` turns plain comparisons into the store's own filter."""
    asked: list[Any] = []

    class Unknown(VectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            asked.append(kwargs.get("filter"))
            return [doc for doc in DOCS if doc.metadata["year"] > kwargs["filter"]["above"]][:k]

        @classmethod
        def from_texts(cls, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    answer = '{"query": "fan", "filter": {"field": "year", "operator": "gt", "value": 2006}}'
    made = SelfQueryRetriever.from_llm(
        model(answer), Unknown(), "fans", FIELDS, structured_query_translator=Predicates()
    )
    assert {doc.metadata["year"] for doc in made.invoke("fans after 2006")} == {2007, 2008}
    assert asked == [{"only": "year", "above": 2006}]
    with pytest.raises(InvalidInputError, match="goes with a vector store"):
        SelfQueryRetriever.from_llm(
            model(answer), store().as_retriever(), "fans", FIELDS, structured_query_translator=Predicates()
        )


WORDS = BM25Retriever.from_documents(DOCS)
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (EnsembleRetriever, {"retrievers": [WORDS], "wieghts": [1]}, "did you mean 'weights'"),
    (BM25Retriever.from_documents, {"documents": DOCS, "analyser": str.split}, "did you mean 'analyzer'"),
    (BM25Retriever, {"docs": DOCS}, r"in rag_kit: BM25Retriever.from_documents"),
    (MultiQueryRetriever, {"retriever": WORDS, "llm_chain": WORDS}, "in rag_kit: llm="),
    (
        MultiQueryRetriever.from_llm,
        {"llm": model(""), "retriever": WORDS, "parser_key": "x"},
        "in rag_kit: nothing",
    ),
    (
        SelfQueryRetriever.from_llm,
        {"llm": model(""), "retriever": DOCS, "chain_kwargs": {}},
        "in rag_kit: prompt=",
    ),
    (ParentDocumentRetriever.from_documents, {"documents": DOCS, "docstore": 1}, "in rag_kit: nothing"),
    (CompressionRetriever, {"base_retriever": WORDS, "base_compresor": 1}, "is no argument"),
    (RerankRetriever, {"base_retriever": WORDS, "base_compressor": "x"}, "reranker is 'x'"),
]


@pytest.mark.parametrize(("make", "arguments", "said"), WRONG)
def test_a_wrong_name_is_met_with_the_right_one(make: Any, arguments: dict[str, Any], said: str) -> None:
    """The nearest name, or what to give instead; all names stand there once, whatever the number of mistakes."""
    with pytest.raises(RagKitError, match=said) as caught:
        make(**arguments)
    assert str(caught.value).count("allowed:") <= 1


def test_allowed_names_are_listed_once_and_whole() -> None:
    """Two mistakes, one list, with the arguments of ``from_texts`` and the fields of every LangChain retriever."""
    with pytest.raises(InvalidInputError) as caught:
        BM25Retriever.from_texts(["a"], kk=1, analysr=str.split)
    listed = str(caught.value).split("allowed: ")[1].rstrip(".").split(", ")
    assert {"k", "k1", "b", "analyzer", "variant", "metadatas", "tags", "metadata", "name", "filter"} <= set(
        listed
    )
    assert len(listed) == len(set(listed))
    with pytest.raises(
        InvalidInputError, match=r"'fliter' is no argument \(did you mean 'filter'\?\); allowed: filter, k"
    ):
        WORDS.invoke("fan", fliter={})
