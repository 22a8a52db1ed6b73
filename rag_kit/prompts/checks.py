"""Checks over all prompt files: both languages there, in agreement, and written in their language."""

from __future__ import annotations

import re
from pathlib import Path

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import folders
from rag_kit.prompts.format import LANGUAGES, Problem, PromptFile, file_name_rule
from rag_kit.prompts.front_matter import NAME
from rag_kit.prompts.json_schema import without_wording
from rag_kit.prompts.library import PromptLibrary, listed
from rag_kit.prompts.rendering import TAG

MIN_CHINESE = 0.6
"""At least this share of the letters of a Chinese body must be Chinese."""
MAX_CHINESE = 0.3
"""At most this share of the letters of an English body may be Chinese."""

_TASK = re.compile(r"^<task>(.*?)</task>\s*$", re.MULTILINE)
_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# Not prose in either language: variables, code, quoted ASCII words (field names), URLs, citations.
_NO_PROSE = re.compile(r"\{\{.*?\}\}|`[^`\n]*`|\"[ -!#-~]*\"|https?://\S+|\[\d+\]")


def check_library(library: PromptLibrary, language: str | None = None) -> list[Problem]:
    """Check every prompt that a library can load.

    Args:
        library: The library.
        language: Report on this language alone; None: on all.

    Returns:
        The problems, sorted by file and line, each once.

    Raises:
        InvalidInputError: `language` is not known.
    """
    if language is not None and language not in LANGUAGES:
        raise InvalidInputError(f"language is {language!r}; allowed: {', '.join(LANGUAGES)}.")
    found: list[tuple[str | None, Problem]] = []  # the language that a problem belongs to, None: any
    for folder in filter(None, (library.packaged, library.folder)):
        for path in folders.prompt_files(folder):
            name, tongue = folders.split_name(path)
            if not NAME.fullmatch(name) or tongue not in LANGUAGES:
                found.append((None, Problem(str(path), 1, file_name_rule(path.name))))
    for name in library.names():
        found += _check_name(library, name)
    problems = {problem for tongue, problem in found if language in (None, tongue) or tongue is None}
    return sorted(problems, key=lambda p: (p.file, p.line, p.message))


def _check_name(library: PromptLibrary, name: str) -> list[tuple[str | None, Problem]]:
    """Each language of one prompt by itself, then the languages against each other."""
    found: list[tuple[str | None, Problem]] = []
    good: dict[str, PromptFile] = {}
    there = [tongue for known, tongue in library.entries() if known == name]
    packaged = any(folders.find(library.packaged, name, tongue) for tongue in LANGUAGES)
    for tongue in LANGUAGES:
        if tongue not in there:
            if packaged:  # a prompt of one's own may exist in one language
                file = library.packaged / f"{name}.{tongue}{folders.SUFFIX}"
                found.append(
                    (tongue, Problem(str(file), 1, f"the file is missing; {name!r} exists in {there[0]}"))
                )
            continue
        parsed, problems = library.inspect(name, tongue)
        found += [(tongue, problem) for problem in problems]
        if parsed is not None:
            good[tongue] = parsed
            original = library.original(name, tongue)
            found += [(tongue, problem) for problem in check_text(parsed, original)]
    if len(good) == len(LANGUAGES):
        first, *others = good.values()
        for other in others:
            found += [(other.language, problem) for problem in _disagreements(first, other)]
    return found


def check_text(prompt: PromptFile, original: PromptFile | None = None) -> list[Problem]:
    """Check what a file that can be loaded may still have wrong.

    Args:
        prompt: The parsed file.
        original: The packaged prompt that it replaces, if any.

    Returns:
        Problems with the task line and with the language of the body.
    """
    problems = []
    task = _task_problem(prompt, original)
    if task is not None:
        problems.append(task)
    share = chinese_share("\n".join(section.text for section in prompt.sections))
    line = prompt.sections[0].line
    if share is not None and prompt.language == "zh" and share < MIN_CHINESE:
        message = f"only {share:.0%} of the letters of the body are Chinese; at least {MIN_CHINESE:.0%} are asked of zh"
        problems.append(Problem(prompt.file, line, message))
    if share is not None and prompt.language == "en" and share > MAX_CHINESE:
        message = (
            f"{share:.0%} of the letters of the body are Chinese; at most {MAX_CHINESE:.0%} are allowed in en"
        )
        problems.append(Problem(prompt.file, line, message))
    return problems


def _task_problem(prompt: PromptFile, original: PromptFile | None) -> Problem | None:
    """The line ``<task>NAME</task>``, by which the extractive model knows what is asked of it."""
    expected = f"<task>{prompt.name}</task>"
    system = next((section for section in prompt.sections if section.role == "system"), None)
    needs_system = original is not None and any(section.role == "system" for section in original.sections)
    if system is None:
        if not needs_system:  # added to another prompt, which has the task line
            return None
        message = f"the system section is missing; it must start with the line {expected}"
        return Problem(prompt.file, prompt.sections[0].line, message)
    tasks = list(_TASK.finditer(system.text))
    if len(tasks) == 1 and tasks[0][1] == prompt.name:
        return None
    if not tasks:
        if original is None:  # only the packaged tasks are known to the extractive model
            return None
        return Problem(prompt.file, system.line, f"the system section needs a line {expected}")
    wrong = next((task for task in tasks if task[1] != prompt.name), tasks[-1])
    line = system.line + 1 + system.text.count("\n", 0, wrong.start())
    return Problem(prompt.file, line, f"{wrong[0].strip()} must be {expected}, once")


def _disagreements(first: PromptFile, second: PromptFile) -> list[Problem]:
    """What differs between two languages of a prompt and must not."""
    problems = []
    if set(first.inputs) != set(second.inputs):
        message = f"the inputs are {listed(second.inputs)}, but in {first.language} {listed(first.inputs)}"
        problems.append(second.problem("input", f"{message}; make them equal"))
    if without_wording(first.schema) != without_wording(second.schema):
        message = f"output.schema differs from that of {first.language} ({Path(first.file).name})"
        problems.append(second.problem("output.schema", f"{message}; make them equal"))
    first_role, role = first.sections[0].role, second.sections[0].role
    if first_role != role:
        message = f"the first section is {role!r}, but {first_role!r} in {first.language}; make them equal"
        problems.append(Problem(second.file, second.sections[0].line, message))
    # Who replaces one language alone gives it a version of one's own.
    if Path(first.file).parent == Path(second.file).parent and first.version != second.version:
        message = f"version is {second.version}, but {first.version} in {first.language}; make them equal"
        problems.append(second.problem("version", message))
    return problems


def chinese_share(text: str) -> float | None:
    """Share of Chinese characters among the letters of the prose in a prompt body.

    Args:
        text: The body; variables, tags, code, quoted ASCII words, JSON keys and citations are left out first.

    Returns:
        From 0 to 1; None when there is no prose.

    Example:
        >>> chinese_share('<question>{{question}}</question> 请把 JSON 写入字段 "query"。')
        0.6
    """
    prose = _NO_PROSE.sub(" ", re.sub(r"<task>.*?</task>", " ", text))
    prose = TAG.sub(" ", prose)
    chinese = len(_CJK.findall(prose))
    letters = sum(map(str.isalpha, prose))
    return chinese / letters if letters else None
