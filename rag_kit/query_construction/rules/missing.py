"""Questions for documents of which a field is not known: "undated", "with no rating", 没有作者."""

from __future__ import annotations

import re
from functools import lru_cache

from langchain_core.structured_query import Comparator, Comparison

from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.rules.scripts import simplified

_UNDATED = (
    r"\b(?:without|with\s+no|lacking|missing)\s+(?:a\s+|any\s+|the\s+)?(?:known\s+)?(?:publication\s+)?(?:years?|dates?)\b"
    r"|\b(?:with\s+an?\s+|whose\s+)?(?:unknown|missing)\s+(?:publication\s+)?(?:year|date)\b"
    r"|\b(?:whose\s+|where\s+|the\s+|and\s+)*(?:publication\s+)?(?:year|date)\s+(?:is\s+)?(?:unknown|missing|absent|not\s+(?:known|given|stated))\b"
    r"|\bundated\b|没有(?:发表|出版)?(?:年份|日期)|年份(?:缺失|不明|未知)"
)
# what may follow, so that "without a rating above 4" and "with no author Smith" are not meant
_STOP = r"(?=\s*(?:$|[,.;:?!)]|(?:and|or|but|from|by|in|since|after|before|that|which|yet|at\s+all)\b))"
_ZH_STOP = r"(?=\s*(?:$|[的、，,。？?！!]|或|且|并|和))"


def find_missing(text: str, schema: Schema, time: MetadataField | None) -> list[Atom]:
    """Conditions on what is not there; flags have none, for they are negated.

    Args:
        text: The question.
        schema: The fields.
        time: The field that dates are compared with.

    Example:
        >>> schema = Schema.of([{"name": "rating", "type": "float"}, {"name": "作者", "type": "str"}])
        >>> [atom.field for text in ("cameras with no rating", "没有作者的文档", "no rating above 4")
        ...  for atom in find_missing(text, schema, None)]
        ['rating', '作者']
    """
    found: list[Atom] = []
    for field in schema:
        match = None if field.type == "bool" else _pattern(field, field is time).search(text)
        if match is not None and not any(
            match.start() < one.end and one.begin < match.end() for one in found
        ):
            found.append(Atom(*match.span(), field.name, Comparison(Comparator.EQ, field.name, None)))
    return found


def _un(name: str) -> str:
    """ "unassigned" for ``assignee``, "unrated" for ``rating``."""
    stem = re.sub(r"(?:ing|ees?|ers?|ors?|e)$", "", name)
    return rf"un{stem}e?d\b" if len(stem) >= 3 and stem.isalpha() else "(?!)"


@lru_cache(maxsize=256)
def _pattern(field: MetadataField, time: bool) -> re.Pattern[str]:
    patterns = [_UNDATED] if time else []
    for written in (field.name, *field.aliases):
        name = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", simplified(written))))
        patterns += [
            rf"\b(?:without|lacking|missing|(?:with|having|have|has)\s+no)\s+(?:an?\s+|any\s+|the\s+)?(?:known\s+)?{name}s?\b{_STOP}",
            rf"\b(?:whose\s+|where\s+|the\s+|with\s+)?{name}s?\s+(?:is\s+|are\s+)?(?:unknown|missing|absent|empty|null|not\s+(?:known|given|stated|set))\b",
            rf"\b(?:no\s+{name}s?(?=\s*(?:$|[,.;:?!)]|(?:and|or|but)\b))|{_un(name)})",
            rf"\b(?:with\s+an?\s+)?(?:unknown|missing)\s+{name}\b{_STOP}",
            rf"(?:没有|缺少|缺失|无){name}{_ZH_STOP}|{name}(?:为空|缺失|不明|未知|为无)",
        ]
    return re.compile("|".join(patterns), re.IGNORECASE)
