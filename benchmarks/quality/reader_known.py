"""Known content of files that readers are compared on."""

from __future__ import annotations

from dataclasses import dataclass

Rows = list[list[str]]


@dataclass(frozen=True)
class Block:
    """A piece of a document that a reader should give whole.

    Attributes:
        kind: ``heading``, ``text``, ``item`` (of a list), ``pair`` (key and value), ``code``, ``formula``, ``notes`` or
            ``table``.
        text: The text; of a pair ``"key: value"``, of code with line breaks and indents, of a formula in one line.
        level: Of a heading from 1, of a list's item from 0.
        rows: Cells of a table by row, the header first; a merged cell stands in each place that it covers.
    """

    kind: str
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def markdown(self) -> str:
        """The block as markdown."""
        if self.kind == "heading":
            return f"{'#' * self.level} {self.text}"
        if self.kind == "item":
            return f"{'  ' * self.level}- {self.text}"
        if self.kind == "code":
            return f"```\n{self.text}\n```"
        if self.kind == "table":
            lines = ["| " + " | ".join(row) + " |" for row in self.rows]
            return "\n".join([lines[0], "|" + " --- |" * len(self.rows[0]), *lines[1:]])
        return self.text


@dataclass(frozen=True)
class KnownFile:
    """Known content of one file.

    Attributes:
        name: The file's name in the folder.
        blocks: Its content in the order in which people read it.
        furniture: Texts that are in the file and no content: running heads, page numbers, menus, banners.
    """

    name: str
    blocks: tuple[Block, ...]
    furniture: tuple[str, ...] = ()

    @property
    def headings(self) -> list[tuple[int, str]]:
        """Level and text of each heading."""
        return [(block.level, block.text) for block in self.blocks if block.kind == "heading"]

    @property
    def tables(self) -> list[Rows]:
        """Each table's cells by row."""
        return [[list(row) for row in block.rows] for block in self.blocks if block.kind == "table"]

    @property
    def texts(self) -> list[str]:
        """The text of each block that is no table, in reading order."""
        return [block.text for block in self.blocks if block.kind != "table"]

    @property
    def markdown(self) -> str:
        """All of it as markdown, to compare a reader's text with."""
        return "\n\n".join(block.markdown for block in self.blocks)


def heading(text: str, level: int = 1) -> Block:
    return Block("heading", text, level)


def text(words: str, kind: str = "text", level: int = 0) -> Block:
    return Block(kind, words, level)


def table(rows: Rows) -> Block:
    return Block("table", rows=tuple(tuple(row) for row in rows))
