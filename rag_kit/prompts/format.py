"""Reading one prompt file: front matter, roles, placeholders. No LangChain here.

The format is a strict subset of dotprompt (https://google.github.io/dotprompt): YAML front matter between ``---``
lines, then sections that start with ``{{role "system"}}``, ``{{role "user"}}`` or ``{{role "model"}}`` and hold
text with ``{{variable}}``. Sections are split here, once, from the file alone. Values come later and are never
parsed, so no value can open a role.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.body import Report, Section, parse_body
from rag_kit.prompts.front_matter import NAME, FrontMatter, parse_front_matter

LANGUAGES = ("en", "zh")
MAX_BYTES = 64 * 1024
MAX_FRONT_MATTER = 16 * 1024


@dataclass(frozen=True)
class Problem:
    """Something wrong in a prompt file: where, and what is allowed.

    Example:
        >>> print(Problem("prompts/answer.en.prompt", 3, "version is 0"))
        prompts/answer.en.prompt:3: version is 0
    """

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True)
class PromptFile:
    """A prompt file that was read and found right."""

    file: str
    name: str
    language: str
    description: str
    version: str
    inputs: dict[str, str]
    schema: str | dict[str, Any] | None
    sections: tuple[Section, ...]
    hash: str
    lines: dict[str, int]

    @property
    def variables(self) -> list[str]:
        """The variables of the body, each once, in order of appearance."""
        return list(dict.fromkeys(p.value for s in self.sections for p in s.pieces if p.kind == "variable"))

    def line_of(self, key: str) -> int:
        """Line of a key (``"output.schema"``); where it is absent, of the key above it, else 1."""
        while key not in self.lines and "." in key:
            key = key.rpartition(".")[0]
        return self.lines.get(key, 1)

    def problem(self, key: str, message: str) -> Problem:
        """Something wrong with a key of the front matter, at its line."""
        return Problem(self.file, self.line_of(key), message)


def parse_prompt(text: str, *, name: str, language: str, file: str | Path | None = None) -> PromptFile:
    """Read the text of a prompt file.

    Args:
        text: The whole text: front matter and body.
        name: The name that the front matter must declare.
        language: ``"en"`` or ``"zh"``.
        file: Where the text comes from, for messages; default ``<name>.<language>.prompt``.

    Returns:
        The parsed file.

    Raises:
        InvalidInputError: The text is wrong; one ``file:line: message`` for each problem, with what is allowed.

    Example:
        >>> text = '''---
        ... name: greet
        ... description: Greets a guest.
        ... version: 1
        ... input:
        ...   guest: Who is greeted.
        ... ---
        ... {{role "user"}}
        ... Greet {{guest}}.
        ... '''
        >>> parse_prompt(text, name="greet", language="en").variables
        ['guest']
    """
    where = str(file) if file is not None else f"{name}.{language}.prompt"
    parsed, problems = inspect_prompt(text.encode("utf-8", "surrogatepass"), name, language, where)
    if parsed is None:
        raise InvalidInputError("\n".join(map(str, problems)))
    return parsed


def inspect_prompt(
    data: bytes, name: str, language: str, file: str
) -> tuple[PromptFile | None, list[Problem]]:
    """Read the bytes of a prompt file and list everything that is wrong with it.

    Args:
        data: The file's content.
        name: The name by the file name.
        language: The language by the file name.
        file: The file, for messages.

    Returns:
        The parsed file and no problems, or None and at least one problem.
    """
    problems: list[Problem] = []

    def report(line: int, message: str) -> None:
        problems.append(Problem(file, line, message))

    if not NAME.fullmatch(name) or language not in LANGUAGES:
        report(1, file_name_rule(f"{name}.{language}.prompt"))
        return None, problems
    if len(data) > MAX_BYTES:
        report(1, f"the file has {len(data)} bytes; at most {MAX_BYTES} are allowed")
        return None, problems
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        report(line, f"byte {error.start} is not UTF-8; save the file as UTF-8")
        return None, problems
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front_text, body, body_line = _split(text, report)
    if front_text is None:
        return None, problems
    front = parse_front_matter(front_text, 2, report)
    if front is not None and front.name != name and NAME.fullmatch(front.name):
        report(
            front.lines.get("name", 2),
            f"name is {front.name!r}, but the file name says {name!r}; make them equal",
        )
    sections = parse_body(body, body_line, report)
    if front is not None:
        _compare(front, sections, report)
    if problems or front is None:
        return None, sorted(problems, key=lambda p: p.line)
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]
    parsed = PromptFile(
        file=file,
        name=name,
        language=language,
        description=front.description,
        version=front.version,
        inputs=front.inputs,
        schema=front.schema,
        sections=tuple(sections),
        hash=digest,
        lines=front.lines,
    )
    return parsed, []


def file_name_rule(found: str) -> str:
    """The message for a file whose name does not fit."""
    return (
        f"the file name {found!r} does not fit; allowed: NAME.LANGUAGE.prompt with NAME of lower-case "
        f"letters, digits and _ (a letter first, up to 64) and LANGUAGE one of {', '.join(LANGUAGES)}"
    )


def _split(text: str, report: Report) -> tuple[str | None, str, int]:
    """Front matter, body, and the line number at which the body starts."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        report(1, "the first line must be '---', which opens the front matter")
        return None, "", 1
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            front = "\n".join(lines[1:index])
            if len(front) > MAX_FRONT_MATTER:
                report(
                    2, f"the front matter has {len(front)} characters; at most {MAX_FRONT_MATTER} are allowed"
                )
                return None, "", 1
            return front, "\n".join(lines[index + 1 :]), index + 2
    report(1, "the front matter is not closed; a second line '---' must follow it")
    return None, "", 1


def _compare(front: FrontMatter, sections: list[Section], report: Report) -> None:
    """Every variable of the body is declared, and every declared input used."""
    used: set[str] = set()
    for piece in (p for s in sections for p in s.pieces if p.kind == "variable"):
        if piece.value not in front.inputs and piece.value not in used:
            close = difflib.get_close_matches(piece.value, front.inputs, n=1)
            hint = f" (did you mean {{{{{close[0]}}}}}?)" if close else ""
            declared = ", ".join(front.inputs) or "none"
            report(
                piece.line, f"unknown variable {{{{{piece.value}}}}}{hint}; declared under input: {declared}"
            )
        used.add(piece.value)
    if not sections:
        return
    for name in front.inputs:
        if name not in used:
            line = front.lines.get(f"input.{name}", front.lines.get(f"input.schema.{name}", 2))
            report(
                line,
                f"the input {name!r} is declared but the body has no {{{{{name}}}}}; use it or remove it",
            )
