"""The numbers that Word shows before the paragraphs of its lists and numbered headings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from rag_kit.indexing.readers.numbers import list_number

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BASED_ON_STEPS = 10  # styles that a style builds on, one on the other


def value_of(node: Any) -> str | None:
    """The attribute ``w:val`` of an element; ``None`` where there is no element."""
    return None if node is None else node.get(f"{W}val")


class Styles:
    """The styles of a Word document, each with those that it builds on.

    Args:
        root: The root of its part ``styles.xml``, if it has one.
    """

    def __init__(self, root: Any) -> None:
        nodes = [] if root is None else list(root.iter(f"{W}style"))
        self.by_id = {node.get(f"{W}styleId"): node for node in nodes}
        self._default = next(
            (
                node.get(f"{W}styleId")
                for node in nodes
                if node.get(f"{W}default") in ("1", "true", "on") and node.get(f"{W}type") == "paragraph"
            ),
            None,
        )

    def chain(self, style_id: str | None) -> Iterator[Any]:
        """A style and those that it builds on, nearest first; without an id those of plain paragraphs."""
        node = self.by_id.get(style_id or self._default)
        for _ in range(_BASED_ON_STEPS):
            if node is None:
                return
            yield node
            node = self.by_id.get(value_of(node.find(f"{W}basedOn")))


class _Level:
    """A level of a list: where it starts, how its numbers are written, and after which level it begins anew."""

    def __init__(self, node: Any) -> None:
        formats = [value_of(each) or "decimal" for each in node.iter(f"{W}numFmt")]
        self.start = _integer(node.find(f"{W}start"), 1)
        self.style = formats[-1] if formats else "decimal"  # the last is that of a fallback
        self.text = value_of(node.find(f"{W}lvlText")) or ""
        self.legal = node.find(f"{W}isLgl") is not None and value_of(node.find(f"{W}isLgl")) not in (
            "0",
            "false",
        )
        self.gap = "" if value_of(node.find(f"{W}suff")) == "nothing" else " "
        self.restart = _integer(node.find(f"{W}lvlRestart"), -1)
        self.paragraphs = value_of(node.find(f"{W}pStyle"))


class Lists:
    """Counts the numbered paragraphs of a document, in its order.

    As in Word, lists of one abstract definition go on counting together, over tables and other paragraphs, until one
    of them overrides where it starts; a level begins anew after a higher one.

    Args:
        root: The root of the part ``numbering.xml``.
        styles: The document's styles, which may number paragraphs.
    """

    def __init__(self, root: Any, styles: Styles) -> None:
        self._styles = styles
        self._abstract = {node.get(f"{W}abstractNumId"): node for node in root.iter(f"{W}abstractNum")}
        self._lists = {node.get(f"{W}numId"): node for node in root.iter(f"{W}num")}
        self._levels: dict[str, tuple[str, dict[int, _Level]]] = {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._overridden: set[tuple[str, int]] = set()

    def count(self, paragraph: Any) -> tuple[int, str] | None:
        """The level and the label of the next paragraph, with the gap after it; ``None`` where it has no number.

        The label of a bullet is a dash.
        """
        list_id, number = self._place(paragraph)
        abstract, levels = self._definition(list_id)
        level = levels.get(number)
        if level is None:
            return None
        counts = self._counts[abstract]
        start = self._override(list_id, number)
        if start is not None and (list_id, number) not in self._overridden:
            self._overridden.add((list_id, number))
            counts[number] = start
        else:
            counts[number] = (
                counts[number] + 1 if number in counts else level.start if start is None else start
            )
        for deeper in [each for each in counts if each > number]:
            restart = levels[deeper].restart if deeper in levels else -1
            if restart < 0 or number < restart:
                del counts[deeper]
        if level.style == "bullet":
            return number, "- "
        label = re.sub(
            r"%(\d)", lambda match: self._written(levels, counts, int(match[1]) - 1, level), level.text
        )
        return (number, label + level.gap) if label.strip() else None

    def _written(self, levels: dict[int, _Level], counts: dict[int, int], number: int, inside: _Level) -> str:
        """The number of a level as it is written in the label of another."""
        level = levels.get(number)
        if level is None or level.style == "none":
            return ""
        style = "decimal" if inside.legal and level.style != "decimalZero" else level.style
        return list_number(counts.get(number, level.start), style)

    def _place(self, paragraph: Any) -> tuple[str, int]:
        """The list and the level of a paragraph, by its own properties or else those of its style."""
        properties = paragraph.find(f"{W}pPr")
        own = None if properties is None else properties.find(f"{W}numPr")
        style = None if properties is None else value_of(properties.find(f"{W}pStyle"))
        chain = list(self._styles.chain(style))
        numbered = [own, *(node.find(f"{W}pPr/{W}numPr") for node in chain)]
        found = [node for node in numbered if node is not None]
        list_id = next((value for node in found if (value := value_of(node.find(f"{W}numId")))), "")
        level = next((value for node in found if (value := value_of(node.find(f"{W}ilvl")))), None)
        if level is None or own is None or own.find(f"{W}ilvl") is None:
            names = [node.get(f"{W}styleId") for node in chain]
            linked = (n for n, each in self._definition(list_id)[1].items() if each.paragraphs in names)
            level = str(next(linked, level))
        return list_id, int(level) if level.isdigit() else 0

    def _definition(self, list_id: str) -> tuple[str, dict[int, _Level]]:
        """The abstract definition that a list counts with, and its levels with what the list overrides."""
        if list_id not in self._levels:
            self._levels[list_id] = "", {}  # a list that refers to itself has no levels
            node = self._lists.get(list_id)
            abstract = "" if node is None else value_of(node.find(f"{W}abstractNumId")) or ""
            base = self._abstract.get(abstract)
            levels: dict[int, _Level] = {}
            if base is not None:
                link = value_of(base.find(f"{W}numStyleLink"))
                style = self._styles.by_id.get(link) if link else None
                if style is not None and (other := value_of(style.find(f"{W}pPr/{W}numPr/{W}numId"))):
                    abstract, levels = self._definition(other)
                levels = levels | dict(_numbered_levels(base.findall(f"{W}lvl")))
            if node is not None:
                levels = levels | dict(_numbered_levels(node.findall(f"{W}lvlOverride/{W}lvl")))
            self._levels[list_id] = abstract, levels
        return self._levels[list_id]

    def _override(self, list_id: str, number: int) -> int | None:
        """Where a list says that one of its levels starts anew."""
        for override in self._lists[list_id].findall(f"{W}lvlOverride"):
            if (
                override.get(f"{W}ilvl") == str(number)
                and (start := override.find(f"{W}startOverride")) is not None
            ):
                return _integer(start, 1)
        return None


def _numbered_levels(nodes: list[Any]) -> Iterator[tuple[int, _Level]]:
    for node in nodes:
        number = node.get(f"{W}ilvl") or "0"  # some programs leave it out
        if number.isdigit():
            yield int(number), _Level(node)


def _integer(node: Any, default: int) -> int:
    value = value_of(node) or ""
    return int(value) if re.fullmatch(r"-?\d{1,9}", value) else default
