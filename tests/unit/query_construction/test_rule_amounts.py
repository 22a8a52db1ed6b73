"""Rules over fields of kinds, amounts, flags and dates: plurals, units, comparatives, what is missing."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.scripts import load_script

from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

RULES = RuleConstructor(today=date(2026, 1, 1))
SHOP = Schema.of(
    [
        {"name": "type", "type": "str", "allowed": ["report", "memos", "policy", "movie", "virus", "Box", "CEO"]},
        {"name": "country", "type": "str", "allowed": ["South Korea", "Korea"]},
        {"name": "price", "type": "float"},
        {"name": "rating", "type": "float"},
        {"name": "age", "type": "int"},
        {"name": "word_count", "type": "int"},
        {"name": "assignee", "type": "str", "allowed": ["Ann Lee", "Bo Karlsson"]},
        {"name": "in_stock", "type": "bool"},
        {"name": "is_published", "type": "bool"},
        {"name": "released", "type": "date"},
    ]
)  # fmt: skip
OFFICE = Schema.of(
    [
        {"name": "类别", "type": "str", "allowed": ["手机", "电视"]},
        {"name": "性别", "type": "str", "allowed": ["男", "女"]},
        {"name": "作者", "type": "str", "allowed": ["王伟", "李娜"]},
        {"name": "页数", "type": "int"},
        {"name": "年龄", "type": "int"},
        {"name": "价格", "type": "int"},
        {"name": "年份", "type": "int"},
        {"name": "是否公开", "type": "bool"},
    ]
)  # fmt: skip


def made(question: str, schema: Schema = SHOP) -> Any:
    return RULES.construct(question, schema).filter


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("reports since 2019", "report"), ("Reports", "report"), ("the report of the year", "report"),
        ("a memo", "memos"), ("memos", "memos"), ("policies on travel", "policy"), ("Movies", "movie"),
        ("two viruses", "virus"), ("boxes", "Box"), ("box", "Box"), ("what the CEOs say", "CEO"),
    ],
)  # fmt: skip
def test_plurals(question: str, value: str) -> None:
    """A value is named by its plural, a plural value by its singular, at the beginning too."""
    found = made(question)
    assert {"type": {"$eq": value}} in (found, *found.get("$and", ()))


@pytest.mark.parametrize("question", ["reporting lines", "polite words", "vir us", "ceo pay", "what is a tv"])
def test_other_words_are_no_plurals(question: str) -> None:
    """Words that only begin alike, or are no acronym, name nothing."""
    assert made(question) is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("under 300 dollars", {"price": {"$lt": 300}}),
        ("at most $5k", {"price": {"$lte": 5000}}),
        ("20 euros or less", {"price": {"$lte": 20}}),
        ("10 to 20 euros", {"$and": [{"price": {"$gte": 10}}, {"price": {"$lte": 20}}]}),
        ("cheaper than 50", {"price": {"$lt": 50}}),
        ("more expensive than 2000", {"price": {"$gt": 2000}}),
        ("priced over 1000", {"price": {"$gt": 1000}}),
        ("a price over 2010", {"price": {"$gt": 2010}}),
        ("rated 4 or higher", {"rating": {"$gte": 4}}),
        ("not rated above 4", {"rating": {"$lte": 4}}),
        ("at least 4.5 stars", {"rating": {"$gte": 4.5}}),
        ("between 5 and 7 years old", {"$and": [{"age": {"$gte": 5}}, {"age": {"$lte": 7}}]}),
        ("at least 100 words", {"word_count": {"$gte": 100}}),
        ("1.5 thousand words or more", {"word_count": {"$gte": 1500}}),
        ("released after 2010 for 20 dollars", {"$and": [
            {"released": {"$gte": "2011-01-01"}}, {"price": {"$eq": 20}}]}),
        ("2010 dollars", {"price": {"$eq": 2010}}),
        ("under 300 HKD", {"price": {"$lt": 300}}),
        ("12 Swiss francs or less", {"price": {"$lte": 12}}),
        ("two hundred words or more", {"word_count": {"$gte": 200}}),
        ("5 kg", None),
        ("reports rated below 3 or priced over 1000", {"$and": [
            {"type": {"$eq": "report"}}, {"$or": [{"rating": {"$lt": 3}}, {"price": {"$gt": 1000}}]}]}),
        ("with no rating", {"rating": {"$exists": False}}),
        ("unrated", {"rating": {"$exists": False}}),
        ("unassigned", {"assignee": {"$exists": False}}),
        ("no assignee", {"assignee": {"$exists": False}}),
        ("with no assignee Ann Lee", {"assignee": {"$ne": "Ann Lee"}}),
        ("with no rating above 4", {"rating": {"$lte": 4}}),
        ("in stock", {"in_stock": {"$eq": True}}),
        ("out of stock", {"in_stock": {"$eq": False}}),
        ("not in stock", {"in_stock": {"$eq": False}}),
        ("unpublished", {"is_published": {"$eq": False}}),
        ("a memo and a policy", {"type": {"$in": ["memos", "policy"]}}),
        ("Ann Lee's memos, then the movies", {"$and": [
            {"assignee": {"$eq": "Ann Lee"}}, {"type": {"$in": ["memos", "movie"]}}]}),
        ("since March 2019", {"released": {"$gte": "2019-03-01"}}),
        ("at least three stars", {"rating": {"$gte": 3}}),
        ("price >= 20 and <= 50", {"$and": [{"price": {"$gte": 20}}, {"price": {"$lte": 50}}]}),
        ("five stars", None),
        ("300 miles", None),
        ("what costs the world", None),
    ],
)  # fmt: skip
def test_english(question: str, expected: Any) -> None:
    """Units, comparatives, verbs, scales, missing fields, flags."""
    assert made(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("至少30页", {"页数": {"$gte": 30}}),
        ("页数超过50", {"页数": {"$gt": 50}}),
        ("2000元以下的手机", {"$and": [{"价格": {"$lte": 2000}}, {"类别": {"$eq": "手机"}}]}),
        ("1000到2000元", {"$and": [{"价格": {"$gte": 1000}}, {"价格": {"$lte": 2000}}]}),
        ("价格超过五千", {"价格": {"$gt": 5000}}),
        ("价格低于1.5万", {"价格": {"$lt": 15000}}),
        ("500港元以下", {"价格": {"$lte": 500}}),
        ("60岁以上", {"年龄": {"$gte": 60}}),
        ("不满十岁", {"年龄": {"$lt": 10}}),
        ("類別為電視", {"类别": {"$eq": "电视"}}),
        ("性别为女", {"性别": {"$eq": "女"}}),
        ("沒有作者的文檔", {"作者": {"$exists": False}}),
        ("不公开的文档", {"是否公开": {"$eq": False}}),
        ("公开的文档", {"是否公开": {"$eq": True}}),
        ("价格3000元以上或者页数50以下的手机", {"$and": [
            {"$or": [{"价格": {"$gte": 3000}}, {"页数": {"$lte": 50}}]}, {"类别": {"$eq": "手机"}}]}),
        ("2019年以來", {"年份": {"$gte": 2019}}),
        ("三星怎么样", None),
        ("第五页写了什么", None),
    ],
)  # fmt: skip
def test_chinese(question: str, expected: Any) -> None:
    """Units, numbers in words, either script, flags, what is missing."""
    assert made(question, OFFICE) == expected


@pytest.mark.parametrize(
    ("question", "where", "field", "descending", "limit"),
    [
        ("the last three reports", {"type": {"$eq": "report"}}, "released", True, 3),
        ("the latest papers on sleep", None, "released", True, None),
        ("最新的三款手机", {"类别": {"$eq": "手机"}}, "年份", True, 3),
        ("最早的电视", {"类别": {"$eq": "电视"}}, "年份", False, None),
    ],
)
def test_orders(question: str, where: Any, field: str, descending: bool, limit: int | None) -> None:
    """Superlatives give order and number; a noun that names a kind is a condition too."""
    found = RULES.construct(question, OFFICE if question[-1] > "z" else SHOP)
    assert found.filter == where and found.limit == limit
    assert found.sort is not None and (found.sort.field, found.sort.descending) == (field, descending)


@pytest.fixture(scope="module")
def measures() -> Any:
    """benchmarks/quality/quality_self_query.py as a module."""
    return load_script("benchmarks/quality/quality_self_query.py")


@pytest.mark.slow
@pytest.mark.data
def test_filters_are_exactly_right(measures: Any, data_sets: Path) -> None:
    """At least 97 of 100 questions give exactly the filter that was expected of them."""
    counts = measures.terms(data_sets).values()
    asked = sum(count["questions"] for count in counts)
    assert asked >= 300 and sum(count["right"] for count in counts) >= 0.97 * asked, counts


def test_filters_over_other_fields_are_right(measures: Any) -> None:
    """At least 98 of 100 questions over made-up collections give exactly the expected filter."""
    counts = measures.fields().values()
    asked = sum(count["questions"] for count in counts)
    assert asked >= 140 and sum(count["right"] for count in counts) >= 0.98 * asked


@pytest.mark.slow
@pytest.mark.parametrize("name", ["filings_en", "filings_zh"])
def test_useful_fields_help_and_useless_ones_do_no_harm(measures: Any, name: str) -> None:
    """On made-up filings all fields together double plain search, and no field alone costs more than .01."""
    scores = measures.score(name, Path())
    assert scores["all"]["ndcg@10"] > 2 * scores["plain"]
    assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ["scifact", "pubmedqa_l"])
def test_public_sets_lose_nothing(measures: Any, data_sets: Path, name: str) -> None:
    """Plain abstracts with titles, years and MeSH terms: at most .01 below plain search, whichever fields are used."""
    scores = measures.score(name, data_sets)
    assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict)), scores
