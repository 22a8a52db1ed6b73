"""Checks over all prompt files: both languages there, and in agreement."""

from __future__ import annotations

from pathlib import Path

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import LANGUAGES, Problem, PromptFile, file_name_rule
from rag_kit.prompts.front_matter import NAME
from rag_kit.prompts.library import SUFFIX, PromptLibrary, mismatches, split_name


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
    found = {problem for name in library.names() for problem in _check_name(library, name)}
    if language is not None:
        found = {problem for problem in found if split_name(Path(problem.file))[1] == language}
    for path in library.files():
        name, tongue = split_name(path)
        if not NAME.fullmatch(name) or tongue not in LANGUAGES:
            found.add(Problem(str(path), 1, file_name_rule(path.name)))
    return sorted(found, key=lambda p: (p.file, p.line, p.message))


def _check_name(library: PromptLibrary, name: str) -> list[Problem]:
    """Each language of one prompt by itself, then the languages against each other."""
    found: list[Problem] = []
    good: list[PromptFile] = []
    there = [tongue for known, tongue in library.entries() if known == name]
    for tongue in LANGUAGES:
        original = library.original(name, tongue)
        if tongue in there:
            parsed, problems = library.inspect(name, tongue)
            found += problems
            if parsed is not None:
                good.append(parsed)
                found += _check_task(parsed, original)
        elif original is not None:  # a prompt of one's own may exist in one language
            file = library.packaged / f"{name}.{tongue}{SUFFIX}"
            found.append(Problem(str(file), 1, f"the file is missing; {name!r} exists in {there[0]}"))
    if len(good) == len(LANGUAGES):
        found += _disagreements(*good)
    return found


def _check_task(prompt: PromptFile, original: PromptFile | None) -> list[Problem]:
    """The task line, by which the extractive model knows what is asked of it."""
    first = prompt.sections[0]
    task = f"<task>{prompt.name}</task>"
    wanted = original is not None and "system" in (first.role, original.sections[0].role)
    if not wanted or (first.role == "system" and task in first.text.splitlines()):
        return []
    return [Problem(prompt.file, first.line, f"there must be a system section with the line {task}")]


def _disagreements(first: PromptFile, second: PromptFile) -> list[Problem]:
    """What differs between two languages of a prompt and must not."""
    problems = mismatches(second, first, first.language)
    if first.sections[0].role != second.sections[0].role:
        message = f"only one of {first.language} and {second.language} has a system section; make them equal"
        problems.append(Problem(second.file, second.sections[0].line, message))
    # Who replaces one language alone gives it a version of one's own.
    if Path(first.file).parent == Path(second.file).parent and first.version != second.version:
        message = f"version is {second.version}, but {first.version} in {first.language}; make them equal"
        problems.append(second.problem("version", message))
    return problems
