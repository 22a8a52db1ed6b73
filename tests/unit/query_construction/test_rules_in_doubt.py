"""A value in doubt is no filter: titles, common words, topics of questions; what is plain is read as meant."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.documents import Document
from support.rewriters import both, ids

from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.query_construction.discovery import discover_schema
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "quality"
RULES = RuleConstructor()
FILINGS = Schema.of(
    [
        {"name": "company", "type": "str", "allowed": ["3M", "Acme", "PepsiCo", "Best Buy"]},
        {"name": "fiscal_year", "type": "int"},
        {"name": "quarter", "type": "str", "allowed": ["Q1", "Q2", "Q3"]},
        {"name": "sector", "type": "str", "allowed": ["Financials", "Energy"]},
        {"name": "tags", "type": "list[str]", "allowed": ["Sleep", "Debt", "Terms"]},
    ]
)
财报 = Schema.of(
    [
        {"name": "公司", "type": "str", "allowed": ["华岳能源", "金桥银行"]},
        {"name": "财年", "type": "int"},
        {"name": "季度", "type": "int"},
        {"name": "行业", "type": "str", "allowed": ["金融", "能源"]},
    ]
)


def made(question: str, schema: Schema = FILINGS) -> list[tuple[str, str, Any]]:
    """The conditions, all of which must hold, as (field, operator, value)."""
    where = RULES.construct(question, schema).filter or {}
    return sorted(
        (name, *pair)
        for part in where.get("$and", [where])
        for name, how in part.items()
        for pair in how.items()
    )


ACME = ("company", "$eq", "Acme")


def year(value: int, how: str = "$eq") -> tuple[str, str, int]:
    return "fiscal_year", how, value


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the FY2018 capital expenditure of Acme in its financial statements?", [ACME, year(2018)]),
        ("How high was Acme's debt at the end of FY18?", [ACME, year(2018)]),
        ("As of 2022, what were the inventories of ACME?", [ACME, year(2022)]),
        ("What did Pepsico sell in fiscal year 2019?", [("company", "$eq", "PepsiCo"), year(2019)]),
        ("Did 3M pay a dividend in Q22023?", [("company", "$eq", "3M"), year(2023), ("quarter", "$eq", "Q2")]),
        ("What did Acme earn in 3Q21?", [ACME, year(2021), ("quarter", "$eq", "Q3")]),
        ("As of FY2023Q1, why did Acme sell plants?", [ACME, year(2023), ("quarter", "$eq", "Q1")]),
        ("How did sales of Acme change from FY21 to FY22?", [ACME, year(2021, "$gte"), year(2022, "$lte")]),
        ("Were there events in 2020 not in Acme's standard business?", [ACME, year(2020)]),
        ("Which segment had the biggest drop in Acme's sales in 2021?", [ACME, year(2021)]),
        ("reports since FY2019 on sleep", [year(2019, "$gte"), ("tags", "$contains", "Sleep")]),
        ("papers that are not by Acme", [("company", "$ne", "Acme")]),
    ],
)  # fmt: skip
def test_years_quarters_and_companies_are_read_as_meant(question: str, expected: list[Any]) -> None:
    """Fiscal years and quarters in their common forms, and a company by its name."""
    assert made(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "What does the statement of financial position show?",
        "Is adjustment for heterogeneity necessary in sleep disorders?",
        "What are long-term terms of debt worth?",
        "Is it the best buy for a small family with two children?",
    ],
)
def test_a_value_in_doubt_is_no_filter(question: str) -> None:
    """Common words, the topic of a question, a part of a longer name: the text alone is searched."""
    found = RULES.construct(question, FILINGS)
    assert found.filter is None and found.query == question


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("华岳能源2018财年的资本开支是多少？", [("公司", "$eq", "华岳能源"), ("财年", "$eq", 2018)]),
        ("截至2022年，金桥银行的存货与应收账款是多少？", [("公司", "$eq", "金桥银行"), ("财年", "$eq", 2022)]),
        ("截至2016年的文章", [("财年", "$lte", 2016)]),
        ("2020年有哪些重大交易不属于金桥银行的日常业务？", [("公司", "$eq", "金桥银行"), ("财年", "$eq", 2020)]),
        ("金桥银行在2021年第三季度派发股息了吗？",
         [("公司", "$eq", "金桥银行"), ("季度", "$eq", 3), ("财年", "$eq", 2021)]),
        ("公司持有的金融资产一共有多少？", []),
    ],
)  # fmt: skip
def test_chinese(question: str, expected: list[Any]) -> None:
    """财年, 截至, 季度 and companies; 金融 in 金融资产 is no value."""
    assert made(question, 财报) == expected


NAMES = Schema.of(
    [
        {"name": "month", "type": "str", "allowed": ["March", "May", "June"]},
        {"name": "author", "type": "str", "allowed": ["Will", "Lee"]},
        {"name": "status", "type": "str", "allowed": ["open", "closed"]},
        {"name": "year", "type": "int"},
        {"name": "类别", "type": "str", "allowed": ["其他", "教程"]},
    ]
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("papers that may help me", []),
        ("may help me", []),
        ("march tests", []),
        ("March tests", []),
        ("Papers? May they help", []),
        ("PAPERS THAT MAY HELP", []),
        ("reports that will help", []),
        ("tests in march", [("month", "$eq", "March")]),
        ("the May reports", [("month", "$eq", "May")]),
        ("reports of june", [("month", "$eq", "June")]),
        ("papers by Will", [("author", "$eq", "Will")]),
        ("papers with author will", [("author", "$eq", "Will")]),
        ("open tickets", [("status", "$eq", "open")]),
        ("关于其他方法的文章", []),
        ("类别为其他的文章", [("类别", "$eq", "其他")]),
    ],
)
def test_a_common_word_is_a_value_only_where_it_is_written_as_a_name(
    question: str, expected: list[Any]
) -> None:
    """ "may", "march" and "will" count in capitals inside a sentence, after in, of or from, and after their field."""
    found = RULES.construct(question, NAMES)
    assert made(question, NAMES) == expected
    assert expected or found.query == question


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("papers in Brain 13 (1970)", []),
        ("papers like Brain 13(2), 12 (1970)", []),
        ("papers that cite Chan et al., 1970", []),
        ("papers that cite Chan et al. (1970)", []),
        ("papers on sleep (Chan & Wu, 1970)", []),
        ("papers like Lancet 2004;13:221", []),
        ("《杂志》13（1970）上的论文", []),
        ("《杂志》2010年第3期的论文", []),
        ("sleep papers (1970)", [("year", "$eq", 1970)]),
        ("papers like Brain 13 (1970) since 2010", [("year", "$gte", 2010)]),
        ("2010年的论文", [("year", "$eq", 2010)]),
    ],
)
def test_the_year_of_a_reference_is_no_condition(question: str, expected: list[Any]) -> None:
    """Volume and year, author and year, year and pages name a publication; other years are conditions."""
    assert made(question, NAMES) == expected


async def test_titles_never_become_filters() -> None:
    """A text field in which nearly every document has a value of its own is discovered as one that names documents."""
    titles = ["in", "Salt", "Salt", *(f"Title {number}" for number in range(30))]
    documents = [
        Document(f"salt number {number}", id=str(number), metadata={"title": title, "kind": "note"})
        for number, title in enumerate(titles)
    ]
    schema = discover_schema(documents)
    assert {field.name: field.unique for field in schema} == {"title": True, "kind": False}
    retriever = SelfQueryRetriever.from_rules(documents, k=3)
    for question in ("Salt in 5", "papers with the title 'Salt', number 5"):
        assert retriever.construct_query(question).filter is None
        assert ids(await both(retriever, question))[0] == "5"


async def test_an_order_needs_documents() -> None:
    """ "The latest papers" are sorted; the latest treatment is a question about the world."""
    documents = [
        Document("the latest treatment of stroke is rest", id="old", metadata={"year": 2001}),
        Document("stroke", id="new", metadata={"year": 2020}),
    ]
    retriever = SelfQueryRetriever.from_rules(documents)
    assert ids(await both(retriever, "What is the latest treatment of stroke?"))[0] == "old"
    assert ids(await both(retriever, "the latest papers on stroke"))[0] == "new"


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark's module, loaded from its file."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    name = "quality_self_query_sets"
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", ["filings_en", "filings_zh"])
def test_useful_fields_help_and_useless_ones_do_no_harm(sets: ModuleType, name: str) -> None:
    """On made-up filings all fields together double plain search, and no field alone costs more than .01."""
    scores = sets.measure(name, Path())
    assert scores["all"]["ndcg@10"] > 2 * scores["plain"]
    assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict))


@pytest.mark.slow
@pytest.mark.data
def test_public_sets_lose_nothing(sets: ModuleType, data_sets: Path) -> None:
    """Plain abstracts with titles, years and MeSH terms: at most .01 below plain search, whichever fields are used."""
    for name in ("scifact", "pubmedqa_l"):
        scores = sets.measure(name, data_sets)
        assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict)), scores
