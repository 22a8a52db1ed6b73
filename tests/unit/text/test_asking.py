"""The words a question asks by are left out of searches, and nothing else is."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from rag_kit.indexing import BM25Index
from rag_kit.retrieval import BM25Retriever, SparseRetriever, TrigramRetriever
from rag_kit.text import Analyzer, default_analyzer
from rag_kit.text.analysis import CharacterNgrams
from rag_kit.text.asking import without_question_words


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("How do I cap the number of model calls?", "cap the number of model calls?"),
        ("Which files can we read, please?", "files read, ?"),
        ("what's the limit", "the limit"),
        ("Who wrote it, and when?", "Who wrote it, and when?"),
        ("Which albums did The Who record?", "albums The Who record?"),
        ("What does the WHO say?", "the WHO say?"),
        ("Which US states are wet?", "US states are wet?"),
        ('Which band made "Tell me why"?', 'band made "Tell me why"?'),
        ("How do I open the can?", "open the can?"),
        ("WHAT IS IT?", "IS IT?"),
        ("Patients have had my disease", "Patients have had my disease"),
        ("请问怎样限制调用次数？", "限制调用次数？"),
        ("為什麼要重建索引？", "要重建索引？"),
        ("我可以用哪些模型？", "用 模型？"),
        ("《十万个为什么》的作者是谁？", "《十万个为什么》的作者 ？"),
        ("吗啡有什么作用吗？", "吗啡有 作用 ？"),
        ("哪吒的父亲", "哪咤的父亲"),
    ],
)
def test_what_is_left_of_a_query(query: str, left: str) -> None:
    """Question words, auxiliaries and the asker go; names in capitals, quotations, titles and nouns stay."""
    assert " ".join(without_question_words(query).split()) == left


@pytest.mark.parametrize("query", ["What?", "How do I?", "What can we do?", "为什么？", "请问是谁"])
def test_a_query_of_such_words_alone_is_searched_as_it_is(query: str) -> None:
    """Nothing else is left of it, so it is searched for by its words."""
    assert default_analyzer().query_terms(query) == default_analyzer()(query) != []


def test_the_index_has_all_words_and_the_query_can_name_them() -> None:
    """Question words of the documents are indexed; a list of one's own, or none, leaves out only what it holds."""
    assert default_analyzer()("what the who did") == ["what", "who", "did"]
    assert Analyzer(stop_words=False).query_terms("how do cats") == ["how", "do", "cat"]
    assert Analyzer(stop_words=["cats"]).query_terms("how do cats") == ["how", "do"]


def test_a_name_in_capitals_is_no_stop_word() -> None:
    """IT is found and is not the pronoun; in a line of capitals it is told from nothing."""
    index = BM25Index.from_texts(["Whoever bought it was glad of it.", "Ask the IT department."])
    assert [doc.page_content for doc, _ in index.search("Who runs IT?")] == ["Ask the IT department."]
    assert default_analyzer()("READ IT NOW") == ["read", "now"]


CORPUS = [
    Document("Routing: how do I choose, what can I do, which should I take? How, what and which I can."),
    Document("max_calls is the most calls of a model that a run may make."),
    Document("怎样选择？请问哪些可以，哪些不可以，什么时候可以？"),
    Document("次数上限由预算给出。"),
]


@pytest.mark.parametrize("retriever", [BM25Retriever, SparseRetriever, TrigramRetriever])
def test_keyword_retrievers_search_for_the_topic(retriever: type) -> None:
    """The page that asks like the question does not win over the page that answers it."""
    found = retriever.from_documents(CORPUS, k=1)
    assert (
        found.invoke("How do I cap what a model calls? Which can I?")[0].page_content
        == CORPUS[1].page_content
    )
    assert found.invoke("请问怎样限制次数？")[0].page_content == CORPUS[3].page_content


def test_an_analyzer_of_the_user_s_sees_the_whole_query() -> None:
    """A function to terms is called with what was asked."""
    index = BM25Index.from_texts(["how now", "brown cow"], analyzer=str.split)
    assert index.query_terms("how do I") == ["how", "do", "I"]
    assert CharacterNgrams().query_terms("How do I go") == [" go", "go ", " go "]
