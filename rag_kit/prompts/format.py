"""Reading one prompt file: front matter, roles, placeholders. No LangChain here.

The format is a strict subset of dotprompt (https://google.github.io/dotprompt): YAML front matter between ``---``
lines, then sections that start with ``{{role "system"}}``, ``{{role "user"}}`` or ``{{role "model"}}`` and hold text
with ``{{variable}}``. They are split from the file alone; values come later and are never parsed: none opens a role.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.prompts.front_matter import NAME, FrontMatter, Lines, Report, parse_front_matter

LANGUAGES = ("en", "zh")
ROLES = ("system", "user", "model")
MAX_BYTES = 64 * 1024
DEFAULT_MAX_TOKENS = 4_096
"""Most tokens of a reply where a prompt does not say ``max_tokens``."""
VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
"""A variable in the text of a section; group 1 is its name."""
# the front matter: two lines "---" and the YAML between them (group 1)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# anything in double or triple braces; if they are not closed, up to the end of the line
_BRACES = re.compile(r"\{\{\{?.*?(?:\}\}|\n|\Z)")
# {{role "system"}} or {{role 'system'}}; group 2 is the role
_ROLE = re.compile(r"""\{\{\s*role\s+(["'])([^"'{}\n]*)\1\s*\}\}""")
_ALLOWED_BRACES = (
    'allowed in double braces: {{role "system"}}, {{role "user"}}, {{role "model"}} and {{variable}}; blocks, partials '
    "and comments of dotprompt are left out. For literal braces put a blank between them: { {"
)


@dataclass(frozen=True)
class Problem:
    """Something wrong in a prompt file, as ``prompts/answer.en.prompt:3: version is 0``."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class PromptFileError(InvalidInputError):
    """A prompt file is wrong; the message has a line for each of its `problems`."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True)
class PromptSection:
    """One message of the prompt: its role, and its text with ``{{variables}}``."""

    role: str
    text: str
    line: int


@dataclass(frozen=True)
class PromptFile:
    """A prompt file that was read and checked."""

    file: str
    name: str
    language: str
    description: str
    version: str
    inputs: dict[str, str]
    max_tokens: int
    schema: str | dict[str, Any] | None
    sections: tuple[PromptSection, ...]
    hash: str
    lines: dict[str, int]

    def problem(self, key: str, message: str) -> Problem:
        """Make a problem with a key of the front matter, at its line, or at that of the key above it."""
        line = self.lines.get(key) or self.lines.get(key.partition(".")[0], 1)
        return Problem(self.file, line, message)


def parse_prompt(data: str | bytes, *, name: str, language: str, file: str | None = None) -> PromptFile:
    """Read the content of a prompt file with a name and language; PromptFileError lists its problems.

    ``file`` is its path, for messages.
    """
    file_name = f"{name}.{language}.prompt"
    file = file or file_name
    problems: list[Problem] = []

    def report(line: int, message: str) -> None:
        problems.append(Problem(file, line, message))

    if not NAME.fullmatch(name) or language not in LANGUAGES:
        rule = "NAME.LANGUAGE.prompt with NAME of lower-case letters, digits and _ (a letter first, up to 64)"
        rule += f" and LANGUAGE one of {', '.join(LANGUAGES)}"
        report(1, f"the file name {file_name!r} does not fit; allowed: {rule}")
    text = _decode(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data, report)
    head = _FRONT_MATTER.match(text)
    if head is None:
        report(1, "the file must begin with the front matter, between two lines '---'")
    if problems or head is None:
        raise PromptFileError(*problems[:1])  # the others may follow from it
    front, lines = parse_front_matter(head[1], 2, report)  # it begins in line 2, after the first "---"
    if front is not None and front.name != name:
        report(lines["name"], f"name is {front.name!r}, but the file name says {name!r}; make them equal")
    body_line = text.count("\n", 0, head.end()) + 1
    sections = _sections(text[head.end() :], body_line, report)
    _check_variables(text, head.end(), front, lines, report)
    if problems or front is None:
        raise PromptFileError(*sorted(problems, key=lambda problem: problem.line))
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]
    max_tokens = front.max_tokens or DEFAULT_MAX_TOKENS
    return PromptFile(
        file, name, language, front.description, front.version, front.input, max_tokens, front.output_schema,
        tuple(sections), digest, lines,
    )  # fmt: skip


def _decode(data: bytes, report: Report) -> str:
    """Return the text of a file with plain line ends; "" if it is too long or no UTF-8."""
    try:
        if len(data) <= MAX_BYTES:
            return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        report(1, f"the file has {len(data)} bytes; at most {MAX_BYTES} are allowed")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        report(line, f"byte {error.start} is not UTF-8; save the file as UTF-8")
    return ""


def _sections(body: str, first_line: int, report: Report) -> list[PromptSection]:
    """Split the body into sections at its role markers; report unknown roles, a wrong order and empty sections."""
    markers = list(_ROLE.finditer(body))
    before = body[: markers[0].start()] if markers else body
    if before.strip() or not markers:
        # at the line of the text that should not be there, if there is one
        line = first_line + before.count("\n", 0, before.index(before.strip()))
        report(line, 'the body must begin with a role: {{role "system"}} or {{role "user"}}')
    sections: list[PromptSection] = []
    ends = [*(marker.start() for marker in markers[1:]), len(body)]
    for marker, end in zip(markers, ends, strict=False):
        role, line = marker[2], first_line + body.count("\n", 0, marker.start())
        text = VARIABLE.sub(r"{{\1}}", body[marker.end() : end].strip())  # {{ name }} becomes {{name}}
        if role not in ROLES:
            report(line, f"unknown role {role!r}; allowed: {', '.join(ROLES)}")
        if not text:
            report(line, f"the {role} section is empty; write its text or remove the role line")
        if role == "system" and sections:
            report(line, "the system section must come first, and only once")
        sections.append(PromptSection(role, text, line))
    if sections and sections[-1].role in ("system", "model"):
        report(sections[-1].line, f"the last section is {sections[-1].role!r}; it must be 'user'")
    return sections


def _check_variables(text: str, start: int, front: FrontMatter | None, lines: Lines, report: Report) -> None:
    """Report braces after ``start`` that hold no declared variable, and declared inputs that no braces hold.

    Without ``front`` matter it is not known what is declared, and the form of the braces alone is checked.
    """
    used: set[str] = set()
    for braces in _BRACES.finditer(text, start):
        line = text.count("\n", 0, braces.start()) + 1
        variable = VARIABLE.fullmatch(braces[0])
        if variable is None:
            if not _ROLE.fullmatch(braces[0]):
                report(line, f"{braces[0].strip()[:60]} is not supported; {_ALLOWED_BRACES}")
            continue
        name = variable[1]
        if front is not None and name not in front.input and name not in used:
            allowed = f"declared under input: {', '.join(front.input) or 'none'}"
            report(line, f"unknown variable {braces[0]}{did_you_mean(name, front.input)}; {allowed}")
        used.add(name)
    for name in set() if front is None else front.input.keys() - used:
        line = lines.get(f"input.{name}", lines.get("input", 2))
        report(line, f"the input {name!r} is declared but the body has no {{{{{name}}}}}; use or remove it")
