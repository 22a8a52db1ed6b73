"""Versions of documents: which passages state different values of the same thing, and which is the newest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_kit.retrieval import BM25Retriever
from rag_kit.text.evidence.sentences import passage_text
from rag_kit.text.versions import Disagreement, find_disagreements, read_version


def found(question: str, *texts: str, metadata: list[dict[str, object]] | None = None) -> list[Disagreement]:
    rows = zip(texts, metadata or [{}] * len(texts), strict=True)
    return find_disagreements(question, [passage_text(at, *row) for at, row in enumerate(rows, start=1)])


@pytest.mark.parametrize(
    ("question", "one", "other", "shown"),
    [
        ("What is the hotel limit?", "The hotel limit is 120 EUR per night.",
         "The hotel limit was raised to 135 EUR a night.", ["120 EUR", "135 EUR"]),
        ("How long is the warranty?", "The warranty is 24 months.",
         "We grant a warranty of 36 months from the date of purchase.", ["24 months", "36 months"]),
        ("When is the deadline for applications?", "The deadline for applications is 3 March 2024.",
         "Applications: the deadline is 15 March 2024.", ["3 March 2024", "15 March 2024"]),
        ("What is the hotel limit?", "| Item | Limit |\n|---|---|\n| Hotel | 120 EUR |",
         "| Item | Limit |\n|---|---|\n| Hotel | 135 EUR |", ["120 EUR", "135 EUR"]),
        ("住宿标准是多少？", "员工每晚住宿标准为350元。", "住宿标准调整为每晚400元。", ["350元", "400元"]),
        ("年假有多少天？", "员工每年享有年假10天。", "员工每年可享受15天年假。", ["10天", "15天"]),
    ],
)  # fmt: skip
def test_the_same_thing_with_another_value_is_found(
    question: str, one: str, other: str, shown: list[str]
) -> None:
    """Also where one version words it a little differently."""
    [pair] = found(question, one, other)
    assert [statement.shown for statement in pair.statements] == shown and pair.newest is None


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("What does parking cost?", "Parking in Berlin costs 35 EUR.", "Parking in Paris costs 45 EUR."),
        ("How long is the warranty?", "The warranty of the pump is 24 months.",
         "The warranty of the fan is 36 months."),
        ("How long is the warranty?", "The warranty is 24 months.", "The warranty is two years."),
        ("What was the revenue in 2023?", "Revenue in 2023 was 10 million EUR.",
         "Revenue in 2024 was 12 million EUR."),
        ("年假有多少天？", "工作满一年的员工年假为5天。", "工作满十年的员工年假为10天。"),
        ("Is the fan loud?", "The hotel limit is 120 EUR.", "The hotel limit is 135 EUR."),
        ("What is the limit?", "Is the limit 120 EUR?", "The limit is 135 EUR."),
    ],
)  # fmt: skip
def test_other_things_and_equal_values_are_no_disagreement(question: str, one: str, other: str) -> None:
    """Other places, things, times, conditions or questions; and the same value in other words."""
    assert found(question, one, other) == []


def test_titles_say_what_a_passage_is_about() -> None:
    """The same sentence under the titles of two products is about two things; under two versions of one title not."""
    texts = "The highest pressure is 5 bar.", "The highest pressure is 8 bar."
    for titles, count in (
        (("Pump XP-3200 manual", "Pump XP-9900 manual"), 0),
        (("Pump manual 2023", "Pump manual 2024"), 1),
        (("Pump manual (draft)", "Pump manual (final)"), 1),
        (("泵使用说明 第2版", "泵使用说明 第3版"), 1),
    ):
        metadata: list[dict[str, object]] = [{"title": title} for title in titles]
        groups = found("What is the highest pressure?", *texts, metadata=metadata)
        assert len(groups) == count, titles
        if count:
            assert groups[0].newest is not None and groups[0].newest.shown == "8 bar"


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        ([{"year": 2023}, {"year": 2025}, {"year": 2024}], 2),
        ([{"date": "2024-03-01"}, {"date": "2024-02-01"}, {"date": "2023-12-01"}], 1),
        ([{"version": "1.9"}, {"version": "1.10"}, {"version": 1.2}], 2),
        ([{"status": "draft", "year": 2025}, {"status": "final", "year": 2024}, {"status": "draft"}], 2),
        ([{"file": "docs/policy_2023.md"}, {"file": "docs/policy_2024.md"}, {"file": "policy_2022.md"}], 2),
        ([{"year": 2023}, {}, {"year": 2024}], None),
        ([{"year": 2024}, {"year": 2024}, {"year": 2023}], None),
    ],
)
def test_the_newest_is_known_by_stage_date_or_number(
    versions: list[dict[str, object]], newest: int | None
) -> None:
    """A final text goes before a draft; where one has no version, or two of the newest differ, nothing is guessed."""
    texts = [f"The hotel limit is {amount} EUR." for amount in (120, 135, 150)]
    [group] = found("What is the hotel limit?", *texts, metadata=versions)
    assert (group.newest and group.newest.number) == newest


def test_a_date_in_the_sentence_is_its_version() -> None:
    """Unless the question names the time: then the other one is no answer to it."""
    texts = "In 2023 the hotel limit is 120 EUR.", "In 2024 the hotel limit is 135 EUR."
    [group] = found("What is the hotel limit?", *texts)
    assert group.newest is not None and group.newest.number == 2
    assert found("What was the hotel limit in 2023?", *texts) == []


@pytest.mark.parametrize(
    ("question", "one", "other", "shown"),
    [
        ("保险费是多少？", "2.1 保险费为每年4,800元。", "2.1 保险费为每年5,300元。", ["4,800元", "5,300元"]),
        ("食堂补贴是多少？", "第三条 食堂补贴为每天12元。", "第四条 食堂补贴为每天15元。", ["12元", "15元"]),
        ("年会预算是多少？", "一、年会预算为5万元。", "二、年会预算为6万元。", ["5万元", "6万元"]),
        ("How long is the notice period?", "(3) The notice period is 30 days.", "(4) The notice period is 60 days.",
         ["30 days", "60 days"]),
        ("What is the cleaning fee?", "2.1 The cleaning fee is 900 EUR.", "2.1 The cleaning fee is 950 EUR.",
         ["900 EUR", "950 EUR"]),
    ],
)  # fmt: skip
def test_the_number_of_a_clause_is_no_value(question: str, one: str, other: str, shown: list[str]) -> None:
    """It is not listed, and another one makes no other statement."""
    [pair] = found(question, one, other)
    assert [statement.shown for statement in pair.statements] == shown


@pytest.mark.parametrize(
    ("question", "title", "forms", "count"),
    [
        ("运维合同有什么变化？", "运维合同", ("服务费为每年{}元。", "故障时在{}小时内到达。"), 2),
        ("运维合同的服务费是多少？", "运维合同", ("服务费为每年{}元。", "故障时在{}小时内到达。"), 1),
        (
            "How do the cleaning rules differ?",
            "Cleaning rules",
            ("The fee is {} EUR.", "Rooms close at {} m."),
            2,
        ),
    ],
)
def test_a_question_about_whole_documents_compares_all_they_state(
    question: str, title: str, forms: tuple[str, ...], count: int
) -> None:
    """Only the titles hold something of the question; a question that a sentence answers gets that one."""
    texts = ["\n".join(form.format(amount) for form in forms) for amount in (10, 12)]
    assert len(found(question, *texts, metadata=[{"title": title}] * 2)) == count


def test_nothing_is_read_out_of_nothing() -> None:
    """Texts without a version, empty ones, no passages."""
    assert read_version(["", "Travel policy", "policy.md"]).label == ""
    assert find_disagreements("", []) == find_disagreements("What?", [passage_text(1, "", {})]) == []


@pytest.mark.parametrize("name", ["xquad_en", "xquad_zh"])
def test_passages_of_real_articles_hardly_ever_disagree(data_sets: Path, name: str) -> None:
    """At most 2% of the questions of a set whose passages are about different things."""
    rows = [json.loads(line) for line in (data_sets / name / "corpus.jsonl").open(encoding="utf-8")]
    retriever = BM25Retriever.from_texts(
        [row["text"] for row in rows], [{"title": row["title"]} for row in rows], k=4
    )
    queries = [
        json.loads(line)["text"] for line in (data_sets / name / "queries.jsonl").open(encoding="utf-8")
    ]
    noted = 0
    for query in queries[:200]:
        documents = retriever.invoke(query)
        numbered = enumerate(documents, start=1)
        noted += bool(
            find_disagreements(
                query, [passage_text(at, one.page_content, one.metadata) for at, one in numbered]
            )
        )
    assert noted <= 4
