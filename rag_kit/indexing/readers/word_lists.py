"""The numbers that Word shows before the paragraphs of its lists and numbered headings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, TypeAlias

from rag_kit.indexing.readers.numbers import list_number, whole_number

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
#: The id of the abstract definition of a list, by which it is counted, and its levels by number.
_Definition: TypeAlias = "tuple[str, dict[int, _Level]]"
_BASED_ON_STEPS = 10  # styles that a style builds on, one on the other


def value_of(node: Any) -> str | None:
    """Return the attribute ``w:val`` of an element; ``None`` where there is no element."""
    return None if node is None else node.get(f"{W}val")


class Styles:
    """The styles of a Word document, by id, with the styles that they are based on."""

    def __init__(self, root: Any) -> None:
        nodes = [] if root is None else list(root.iter(f"{W}style"))
        self.by_id = {node.get(f"{W}styleId"): node for node in nodes}
        plain = (n for n in nodes if n.get(f"{W}type") == "paragraph" and n.get(f"{W}default") == "1")
        self._default = next(plain, None)  # the style of plain paragraphs: the first that is marked so

    def chain(self, style_id: str | None) -> Iterator[Any]:
        """Yield a style and the styles that it is based on, nearest first; without an id, the default style's."""
        node = self.by_id.get(style_id) if style_id else self._default
        for _ in range(_BASED_ON_STEPS):
            if node is None:
                return
            yield node
            node = self.by_id.get(value_of(node.find(f"{W}basedOn")))


class _Level:
    """A level of a list: how its numbers are written, and where they begin."""

    def __init__(self, node: Any) -> None:
        formats = [value_of(each) or "decimal" for each in node.iter(f"{W}numFmt")]
        legal = node.find(f"{W}isLgl")
        self.start = whole_number(value_of(node.find(f"{W}start")), 1)
        self.override: int | None = None  # a start that its list gives, which holds once
        self.style = formats[-1] if formats else "decimal"  # the last is a fallback that all programs know
        self.text = value_of(node.find(f"{W}lvlText")) or ""  # such as "%1.%2" for 3.1
        self.legal = legal is not None and value_of(legal) not in ("0", "false")  # higher levels in digits
        self.gap = "" if value_of(node.find(f"{W}suff")) == "nothing" else " "  # after the label
        # the last level, from 1, after which it begins anew: 0 for never, -1 for all levels above itself
        self.restart = whole_number(value_of(node.find(f"{W}lvlRestart")), -1)
        self.paragraph_style = value_of(node.find(f"{W}pStyle"))  # whose paragraphs have this level

    def next_number(self, last: int | None) -> int:
        """Return the number of the next paragraph at this level; ``last`` is None where the level begins anew."""
        if self.override is not None:
            self.start, self.override = self.override, None
            return self.start
        return self.start if last is None else last + 1


class Lists:
    """Counts the numbered paragraphs of a document, in order.

    As in Word, lists of one abstract definition go on counting together, over tables and other paragraphs, until one
    of them overrides where it starts; a level begins anew after a higher one.
    """

    def __init__(self, root: Any, styles: Styles) -> None:  # the root of numbering.xml
        self._styles = styles
        self._abstract = {node.get(f"{W}abstractNumId"): node for node in root.iter(f"{W}abstractNum")}
        self._lists = {node.get(f"{W}numId"): node for node in root.iter(f"{W}num")}
        self._definitions: dict[str, _Definition] = {}  # by list id
        # definition -> level -> last number
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)

    def count(self, paragraph: Any) -> tuple[int, str] | None:
        """Count the next paragraph; return its level and its label with the gap after it, ``None`` without a number."""
        list_id, depth = self._find_level(paragraph)
        abstract_id, levels = self._definition(list_id)
        if depth not in levels:
            return None
        level, counts = levels[depth], self._counts[abstract_id]
        counts[depth] = level.next_number(counts.get(depth))
        # deeper levels begin anew, unless they do so only after a level further up
        for deeper in [each for each in counts if each > depth]:
            restart = levels[deeper].restart if deeper in levels else -1
            if restart < 0 or depth < restart:
                del counts[deeper]
        if level.style == "bullet":
            return depth, "- "
        # in "%1.%2", put the number of each level in its place; they count from 1
        label = re.sub(r"%(\d)", lambda match: _number(levels, counts, int(match[1]) - 1, level), level.text)
        return (depth, label + level.gap) if label.strip() else None

    def _find_level(self, paragraph: Any) -> tuple[str, int]:
        """Return the list id and the level of a paragraph: by its own properties, else by those of its styles."""
        own = paragraph.find(f"{W}pPr/{W}numPr")
        styles = list(self._styles.chain(value_of(paragraph.find(f"{W}pPr/{W}pStyle"))))  # nearest first
        numberings = [own, *(style.find(f"{W}pPr/{W}numPr") for style in styles)]
        list_id, level = _first_value(numberings, "numId"), _first_value(numberings, "ilvl")
        if own is None or own.find(f"{W}ilvl") is None:  # a level that is linked to a style comes first
            levels = self._definition(list_id)[1]
            depth_of_style = {linked.paragraph_style: depth for depth, linked in levels.items()}
            for style in styles:
                if (style_id := style.get(f"{W}styleId")) and style_id in depth_of_style:
                    return list_id, depth_of_style[style_id]
                if style.find(f"{W}pPr/{W}numPr/{W}ilvl") is not None:
                    break  # `level` is this one
        return list_id, whole_number(level, 0)

    def _definition(self, list_id: str) -> _Definition:
        """Return the id of a list's abstract definition, and its levels by number with the changes of the list."""
        if list_id in self._definitions:
            return self._definitions[list_id]
        self._definitions[list_id] = ("", {})  # a list that refers to itself gets this
        node = self._lists.get(list_id)
        abstract_id = "" if node is None else value_of(node.find(f"{W}abstractNumId")) or ""
        base = self._abstract.get(abstract_id)
        if node is None or base is None:
            return self._definitions[list_id]
        levels: dict[int, _Level] = {}
        style = self._styles.by_id.get(value_of(base.find(f"{W}numStyleLink")))  # may lead to another list
        if style is not None and (linked_list := value_of(style.find(f"{W}pPr/{W}numPr/{W}numId"))):
            abstract_id, linked_levels = self._definition(linked_list)
            levels |= {number: copy(level) for number, level in linked_levels.items()}
        # some programs leave the number out of the only level
        levels |= {whole_number(level.get(f"{W}ilvl"), 0): _Level(level) for level in base.findall(f"{W}lvl")}
        for override in node.findall(f"{W}lvlOverride"):
            number, start = whole_number(override.get(f"{W}ilvl"), 0), override.find(f"{W}startOverride")
            if (changed := override.find(f"{W}lvl")) is not None:
                levels[number] = _Level(changed)
            if start is not None and number in levels:
                levels[number].override = whole_number(value_of(start), 1)
        self._definitions[list_id] = (abstract_id, levels)
        return self._definitions[list_id]


def _first_value(nodes: Iterable[Any], name: str) -> str:
    """Return the first value that a child of this name has in the nodes, else ""; nodes may be ``None``."""
    values = [value_of(node.find(W + name)) for node in nodes if node is not None]
    return next((value for value in values if value), "")


def _number(levels: dict[int, _Level], counts: dict[int, int], depth: int, labelled: _Level) -> str:
    """Write the last number of a level, for the label of the same or a deeper one (``labelled``): 3 for %1 in 3.1."""
    level = levels.get(depth)
    if level is None or level.style == "none":
        return ""
    style = "decimal" if labelled.legal and level.style != "decimalZero" else level.style
    return list_number(counts.get(depth, level.start), style)
