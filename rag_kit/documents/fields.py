"""Metadata fields of filters and documents (``name[]``: one that holds a list), and the error for an unknown one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import Any

from rag_kit.documents.display import clean_text
from rag_kit.documents.filters import LISTS, Filter, translate
from rag_kit.documents.provenance import PROVENANCE_KEY
from rag_kit.errors import InvalidInputError

_MAX_LISTED = 40
_MIN_SIMILARITY = 0.75  # as "yaer" is to "year"; below it "max_hops" would mean "max_tokens"


def fields_of_filter(where: Filter | None) -> set[str]:
    """Return the fields that a document must have to pass a filter, without those of ``$exists``.

    Example:
        >>> sorted(fields_of_filter({"year": 2020, "tags": {"$contains": "a"}, "draft": {"$exists": False}}))
        ['tags[]', 'year']
    """
    operators_of: defaultdict[str, set[str]] = defaultdict(set)

    def record(key: str, operator: str, operand: object, negated: bool) -> bool:
        operators_of[key].add(operator)
        return True  # any clause would do: the translation itself is not used

    translate(where, record, lambda word, parts: True)  # calls `record` with each condition
    needed = {key: operators for key, operators in operators_of.items() if "$exists" not in operators}
    return {f"{key}[]" if "$contains" in operators else key for key, operators in needed.items()}


def read_fields(rows: Iterable[Mapping[str, Any]], needed: Set[str]) -> set[str]:
    """Collect the fields of metadata rows, up to the row with which all `needed` ones are found, if any are needed."""
    fields: set[str] = set()
    for row in rows:
        for name, value in row.items():
            if value is not None and name != PROVENANCE_KEY:
                fields.add(f"{name}[]" if isinstance(value, LISTS) else name)
        if needed and needed <= fields:
            break
    return fields


def unknown_field_error(missing: Set[str], known: Set[str], *, listed: bool = True) -> InvalidInputError:
    """Make the error for a filter on fields that no document has; it names fields, never values.

    With ``listed=False``, for a user who may see only some of the documents, it does not name the ``known`` fields.
    """
    name = min(missing).removesuffix("[]")
    names = sorted({clean_text(field.removesuffix("[]"))[:60] for field in known})
    unlisted = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    fields = f" The fields there are: {', '.join(names[:_MAX_LISTED])}{unlisted}."
    if not listed:
        problem = "which no document has (or not as a list, as $contains asks, or only as a list)"
        fields = " The fields there are stay unnamed, since the retriever has a filter of its own."
    elif name in known:
        problem = "which is a list in no document"
    elif f"{name}[]" in known:
        problem = f"which is a list in every document: ask {{{name!r:.80}: {{'$contains': ...}}}}"
    else:
        problem = f"a field that no document has{did_you_mean(name, names)}"
    return InvalidInputError(
        f"The filter asks for {name!r:.80}, {problem}.{fields} $contains asks whether a list holds a value; it does "
        "not search inside a text; for a folder write {'file': {'$startswith': 'folder/'}}. Where a field may be "
        "missing, say so: {'$exists': false}."
    )


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return a hint at the allowed name spelled most like a wrong one; empty where none is alike.

    Example:
        >>> did_you_mean("yaer", ["source", "year"])
        " (did you mean 'year'?)"
    """
    import difflib  # needed only after a mistake

    close = difflib.get_close_matches(name, list(allowed), n=1, cutoff=_MIN_SIMILARITY)
    return f" (did you mean {close[0]!r}?)" if close else ""
