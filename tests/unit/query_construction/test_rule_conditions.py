"""Or-lists in which only some things are known values."""

from __future__ import annotations

import pytest

from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

SCHEMA = Schema.of(
    [
        {"name": "year", "type": "int"},
        {
            "name": "mesh",
            "type": "list[str]",
            "allowed": ["Stroke", "Obesity", "Humans", "Children", "中风", "肥胖"],
        },
        {"name": "brand", "type": "str", "allowed": ["Acme", "Nokia", "华为"]},
        {"name": "kind", "type": "str", "allowed": ["phones", "laptops"]},
    ]
)
RULES = RuleConstructor()


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Studies on Stroke or insomnia", None),
        ("Studies on insomnia or Stroke", None),
        ("Papers on stroke or about insomnia", None),
        ("papers on stroke, insomnia or apnea", None),
        ("papers on stroke, insomnia, apnea, or obesity", None),
        ("Studies on stroke or sleep apnea after 2010", {"year": {"$gt": 2010}}),
        ("stroke or insomnia in children", {"mesh": {"$contains": "Children"}}),
        ("Acme or Globex phones", {"kind": {"$eq": "phones"}}),
        ("phones by Globex or Acme", {"kind": {"$eq": "phones"}}),
        ("关于中风或失眠的研究", None),
        ("关于失眠或中风的研究", None),
        ("华为或小米的手机", None),
        ("2010年以后关于中风或者失眠的研究", {"year": {"$gt": 2010}}),
    ],
)
def test_a_known_value_beside_an_unknown_alternative_does_not_narrow(
    question: str, left: dict[str, object] | None
) -> None:
    """The condition goes, that is told, and the words stay in the query."""
    made = RULES.construct(question, SCHEMA)
    assert made.filter == left
    assert any("no known value" in repair for repair in made.repairs)
    asked = [word for word in ("insomnia", "apnea", "Globex", "失眠", "小米") if word in question]
    known = [word for word in ("stroke", "Stroke", "Acme", "中风", "华为") if word in question]
    assert all(word in made.query for word in (*asked, *known))


@pytest.mark.parametrize(
    ("question", "filter"),
    [
        ("phones from Nokia or Acme", {"$and": [{"kind": {"$eq": "phones"}}, {"brand": {"$in": ["Nokia", "Acme"]}}]}),
        ("For students, Nokia or Acme", {"brand": {"$in": ["Nokia", "Acme"]}}),
        ("phones from Acme or so", {"$and": [{"kind": {"$eq": "phones"}}, {"brand": {"$eq": "Acme"}}]}),
        ("stroke or severe obesity", {"$or": [{"mesh": {"$contains": "Stroke"}}, {"mesh": {"$contains": "Obesity"}}]}),
        ("published in 2010 or later", {"year": {"$gte": 2010}}),
        ("papers without stroke or insomnia", {"$not": {"mesh": {"$contains": "Stroke"}}}),
        ("中风或许与肥胖有关", {"$and": [{"mesh": {"$contains": "中风"}}, {"mesh": {"$contains": "肥胖"}}]}),
    ],
)  # fmt: skip
def test_known_alternatives_and_turns_of_phrase_are_conditions_still(
    question: str, filter: dict[str, object]
) -> None:
    """A word that is known on both sides, and "or" that joins nothing, are read as before."""
    made = RULES.construct(question, SCHEMA)
    assert made.filter == filter
    assert made.repairs == ()
