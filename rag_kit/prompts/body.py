"""The body of a prompt file: role markers, variables, and everything that is not allowed there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

ROLES = ("system", "user", "model")
MAX_SECTIONS = 64

_TOKEN = re.compile(r"\{\{\{.*?(?:\}\}\}|\n|\Z)|\{\{.*?(?:\}\}|\n|\Z)")
_ROLE = re.compile(r"""\{\{\s*role\s+(?:"([^"{}]*)"|'([^'{}]*)')\s*\}\}""")
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ALLOWED = 'allowed in double braces: {{role "system"}}, {{role "user"}}, {{role "model"}} and {{variable}}'
_LITERAL = ". For literal braces put a blank between them: { {"

Role = Literal["system", "user", "model"]
Report = Callable[[int, str], None]


class Piece(NamedTuple):
    """A stretch of literal text, or a variable to be filled in."""

    kind: Literal["text", "variable"]
    value: str
    line: int


@dataclass(frozen=True)
class Section:
    """One message of the prompt: its role and its pieces, in order."""

    role: Role
    pieces: tuple[Piece, ...]
    line: int

    @property
    def text(self) -> str:
        """The section as it stands in the file."""
        return "".join(p.value if p.kind == "text" else "{{" + p.value + "}}" for p in self.pieces)


def parse_body(body: str, first_line: int, report: Report) -> list[Section]:
    """Split the body of a prompt file at its role markers.

    Args:
        body: The text after the front matter.
        first_line: Line number of its first line within the file, from 1.
        report: Called with (line, message) for each thing that is wrong.

    Returns:
        The sections in order; to be used only when nothing was reported.
    """
    if not body.strip():
        report(first_line, "the body is missing; after the second '---' write {{role \"user\"}} and the text")
        return []
    found: list[tuple[Role, int, list[Piece]]] = []
    stray = False
    position, line = 0, first_line

    def add(piece: Piece) -> None:
        nonlocal stray
        if found:
            found[-1][2].append(piece)
        elif not stray and (piece.kind == "variable" or piece.value.strip()):
            stray = True
            at = piece.line + len(piece.value) - len(piece.value.lstrip("\n"))
            report(at, 'text before the first role; start the body with {{role "system"}} or {{role "user"}}')

    for token in _TOKEN.finditer(body):
        if token.start() > position:
            add(Piece("text", body[position : token.start()], line))
        line = first_line + body.count("\n", 0, token.start())
        mark, position = token[0], token.end()
        role, variable = _ROLE.fullmatch(mark), _VARIABLE.fullmatch(mark)
        if role:
            kind = role[1] if role[1] is not None else role[2]
            if kind not in ROLES:
                hint = '; write {{role "model"}}' if kind in ("assistant", "ai") else ""
                report(line, f"unknown role {kind!r}{hint}; allowed: {', '.join(ROLES)}")
                kind = "user"  # go on, so that the other problems are found in the same run
            found.append((cast(Role, kind), line, []))
        elif variable and variable[1] != "role":
            add(Piece("variable", variable[1], line))
        else:
            report(line, _token_problem(mark))
        line = first_line + body.count("\n", 0, position)
    if position < len(body):
        add(Piece("text", body[position:], line))
    if not found:
        if not stray:
            report(first_line, 'no role in the body; start it with {{role "system"}} or {{role "user"}}')
        return []
    sections = [Section(role, _trimmed(pieces), at) for role, at, pieces in found]
    _check_order(sections, report)
    return sections


def _token_problem(mark: str) -> str:
    """What to say about double braces that are neither a role nor a variable."""
    shown = mark.strip().replace("\n", " ")
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    if mark.startswith("{{{"):
        return f"{shown} is not supported: three braces; {_ALLOWED}"
    if not mark.endswith("}}"):
        return f"{shown} is not closed on its line; {_ALLOWED}{_LITERAL}"
    if mark.startswith(("{{#", "{{/", "{{^", "{{>", "{{!", "{{else", "{{~")):
        return (
            f"{shown} is not supported: blocks, partials and comments of dotprompt are left out; {_ALLOWED}"
        )
    return f"{shown} is not supported; {_ALLOWED}{_LITERAL}"


def _trimmed(pieces: list[Piece]) -> tuple[Piece, ...]:
    """The pieces without blank text at both ends."""
    result = list(pieces)
    if result and result[0].kind == "text":
        result[0] = result[0]._replace(value=result[0].value.lstrip())
    if result and result[-1].kind == "text":
        result[-1] = result[-1]._replace(value=result[-1].value.rstrip())
    return tuple(p for p in result if p.value)


def _check_order(sections: list[Section], report: Report) -> None:
    """System at most once and first, nothing empty, the user has the last word."""
    if len(sections) > MAX_SECTIONS:
        report(sections[MAX_SECTIONS].line, f"{len(sections)} sections; at most {MAX_SECTIONS} are allowed")
    for index, section in enumerate(sections):
        if not section.pieces:
            report(
                section.line, f"the {section.role} section is empty; write its text or remove the role line"
            )
        if section.role == "system" and index:
            report(section.line, "the system section must come first, and only once")
    if sections[-1].role != "user":
        report(
            sections[-1].line,
            f"the last section is {sections[-1].role!r}; it must be 'user', which is answered",
        )
