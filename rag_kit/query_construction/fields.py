"""Fields to filter by: the metadata of a collection, their types and values, and their description."""

from __future__ import annotations

import json
import re
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from typing import Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.text.values.period import Period
from rag_kit.text.values.periods import find_periods

FieldType = Literal["str", "int", "float", "bool", "date"]
DateFormat = Literal["iso", "yyyymmdd", "timestamp"]
_TYPES: tuple[FieldType, ...] = ("str", "int", "float", "bool", "date")
MAX_FIELDS = 64
_MAX_VALUES = 40  # of a field that a model sees
_MAX_LINE = 80  # characters of a name or value
_TYPE_BY_NAME: dict[str, FieldType] = {
    **dict.fromkeys(("str", "string", "text", "keyword", "enum", "category"), "str"),
    **dict.fromkeys(("int", "integer", "long", "year"), "int"),
    **dict.fromkeys(("float", "double", "number", "decimal"), "float"),
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("date", "datetime", "timestamp", "time"), "date"),
}
_YEAR_NAME = re.compile(r"(?:^|_)(?:year|yr)s?(?:$|_)|年(?:份|度|代)?(?:$|_)")
_LIST_TYPE = re.compile(r"\b(?:list|array|set|sequence)\s*(?:\[|<|of)?\s*(\w*)", re.IGNORECASE)


@lru_cache(maxsize=64)
def read_periods(values: tuple[Any, ...]) -> Mapping[str, Period]:
    """Read texts such as "2024Q2" or "June" as periods; none if one of the values is no period."""
    read: dict[str, Period] = {}
    for value in values:
        named = find_periods(value) if isinstance(value, str) else []
        if len(named) != 1 or named[0].end - named[0].begin < len(value):
            return {}
        read[value] = named[0].period
    return read


@dataclass(frozen=True)
class MetadataField:
    """A metadata field to filter by.

    Args:
        name: The metadata key.
        type: Type of the value, or of each entry if ``many``.
        many: The value is a list.
        description: For the model: what the field means.
        values: Values that occur, the most frequent first.
        complete: ``values`` holds all that occur (or may): others are corrected or refused.
        minimum: Least value that occurs (numbers; dates as stored).
        maximum: Greatest value.
        date_format: How dates are stored: ISO text, a number such as 20260131, or seconds since 1970 (UTC).
        grain: ``"year"`` or ``"month"`` if all its dates are the first day of one, as where no more is known.
        unique: Nearly every document has a value of its own, as with titles: the rules never filter by one.

    Raises:
        InvalidInputError: The name or type is not allowed.

    Example:
        >>> MetadataField("year", "int", minimum=1990, maximum=2020).is_year
        True
    """

    name: str
    type: FieldType = "str"
    many: bool = False
    description: str = ""
    values: tuple[Any, ...] = ()
    complete: bool = False
    minimum: Any = None
    maximum: Any = None
    date_format: DateFormat = "iso"
    grain: Literal["day", "month", "year"] = "day"
    unique: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name.startswith("$"):
            raise InvalidInputError(
                f"A field is named {self.name!r}; a name is a non-empty text that does not begin with '$'."
            )
        if self.type not in _TYPES:
            raise InvalidInputError(
                f"Field {self.name!r} has type {self.type!r}; allowed: {', '.join(_TYPES)}."
            )
        object.__setattr__(self, "values", tuple(self.values))

    @property
    def ordered(self) -> bool:
        """Whether its values can be compared by size, and sorted."""
        return not self.many and self.type in ("int", "float", "date")

    @property
    def is_year(self) -> bool:
        """Whether it holds years: by its name, or because all its numbers are years."""
        if self.type != "int" or self.many:
            return False
        if _YEAR_NAME.search(self.name.lower()):
            return True
        has_range = isinstance(self.minimum, int) and isinstance(self.maximum, int)
        return has_range and self.minimum >= 1500 and self.maximum <= 2100 and self.minimum < self.maximum

    @property
    def temporal(self) -> bool:
        """Whether the field is compared with dates."""
        if self.type != "str":
            return self.ordered and (self.type == "date" or self.is_year)
        periods = read_periods(self.values) if self.complete and not self.many else {}
        # texts such as "2024Q2" are periods; "2024" alone may be any number, unless the field's name says years
        is_certain = _YEAR_NAME.search(self.name.lower()) or not all(map(str.isdecimal, periods))
        return bool(periods and is_certain) and all(period.has_year for period in periods.values())


@dataclass(frozen=True)
class Schema:
    """The fields that a filter may use, at most 64; a question reaches no others."""

    fields: tuple[MetadataField, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        names = [field.name for field in self.fields]
        if len(names) > MAX_FIELDS:
            raise InvalidInputError(f"A schema has {len(names)} fields; at most {MAX_FIELDS} are allowed.")
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise InvalidInputError(f"A schema names {', '.join(double)} twice; each field once.")

    @classmethod
    def of(cls, value: Any) -> Schema:
        """Make a schema from fields, dicts, or LangChain's ``AttributeInfo``."""
        if isinstance(value, Schema):
            return value
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise InvalidInputError(
                f"A schema is {type(value).__name__}; give a list of fields such as "
                "{'name': 'year', 'type': 'int', 'description': 'year of publication'}."
            )
        return cls(tuple(_make_field(item) for item in value))

    def __iter__(self) -> Iterator[MetadataField]:
        return iter(self.fields)

    def find(self, name: str) -> MetadataField | None:
        """Return the field of a name, ignoring case, blanks and dashes; None if there is none, or several."""
        named = [field for field in self.fields if field.name == name]
        named = named or [field for field in self.fields if _normalize(field.name) == _normalize(name)]
        return named[0] if len(named) == 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(field.name for field in self.fields)


def _normalize(name: str) -> str:
    return re.sub(r"[\s_\-.]+", "", str(name)).lower()


def _make_field(item: Any) -> MetadataField:
    """Make a field from a dict such as ``{"name": "tags", "type": "list[string]"}`` or an ``AttributeInfo``."""
    if isinstance(item, MetadataField):
        return item
    if not isinstance(item, Mapping):
        item = {key: getattr(item, key, None) or "" for key in ("name", "type", "description")}
    settings = dict(item)
    declared = settings.pop("type", "str")
    type_name = getattr(declared, "__name__", str(declared)).strip()
    if list_type := _LIST_TYPE.search(type_name):
        type_name, settings["many"] = list_type[1] or "str", True
    if "allowed" in settings:
        settings = {"values": settings.pop("allowed"), "complete": True, **settings}
    known = {field.name for field in dataclass_fields(MetadataField)} - {"type"}
    if "name" not in settings or not settings.keys() <= known or type_name.lower() not in _TYPE_BY_NAME:
        raise InvalidInputError(
            f"A field was given as {dict(item)!r:.200}; it needs 'name', may have 'type' ({', '.join(_TYPES)}, or a "
            f"list of them), 'allowed', {', '.join(sorted(known - {'name'}))}."
        )
    return MetadataField(type=_TYPE_BY_NAME[type_name.lower()], **settings)


#: The words and signs of a description of fields; ``field`` is filled with name and type.
_Wording = namedtuple("_Wording", "list_type field description separator range values comma more")
_WORDINGS = {
    "en": _Wording("list of {}", "{} ({})", ": ", "; ", "from {} to {}", "values: ", ", ", " and {} more"),
    "zh": _Wording("{} 列表", "{}（{}）", "：", "；", "从 {} 到 {}", "取值：", "、", "，另有 {} 个"),
}


def describe_fields(schema: Schema, named: Mapping[str, Sequence[Any]], language: str = "en") -> str:
    """Write the fields for a prompt, a line each: type, meaning, range, values.

    At most 40 values of a field are listed: first those that the question names (`named`), then the most frequent.
    """
    words = _WORDINGS.get(language, _WORDINGS["en"])
    return "\n".join(_describe_field(field, named.get(field.name, []), words) for field in schema)


def _describe_field(field: MetadataField, named: Sequence[Any], words: _Wording) -> str:
    """Describe a field in one line: name, type, description, range or values, those `named` by the question first."""
    type_name = words.list_type.format(field.type) if field.many else field.type
    line: str = words.field.format(cut_line(field.name), type_name)
    if field.description:
        line += words.description + cut_line(field.description, 300)
    if field.minimum is not None and field.maximum is not None:
        return f"{line}{words.separator}{words.range.format(field.minimum, field.maximum)}"
    if field.values:
        values = list(dict.fromkeys([*named, *field.values]))[:_MAX_VALUES]
        more = len(field.values) - len(values)
        quoted = [json.dumps(cut_line(str(value)), ensure_ascii=False) for value in values]
        line += words.separator + words.values + words.comma.join(quoted)
        if more > 0 or not field.complete:
            line += words.more.format(more)
    return line


def cut_line(text: str, max_chars: int = _MAX_LINE) -> str:
    """Cut a text to one line."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"
