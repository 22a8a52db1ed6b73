"""Prompts by name and language: the user's folder first, then the packaged files; and checks over all of them."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import LANGUAGES, Problem, PromptFile, PromptFileError, parse_prompt
from rag_kit.prompts.front_matter import NAME

if TYPE_CHECKING:
    from rag_kit.prompts.template import PromptTemplate

SUFFIX = ".prompt"
FOLDER_VARIABLE = "RAG_KIT_PROMPTS"
_WORDING_KEYS = ("title", "description", "examples")

#: Parses once per content. The key is the content itself, so an edited file is never served stale.
_parse_cached = lru_cache(maxsize=256)(parse_prompt)


class PromptLibrary:
    """The prompts of this kit, with a user's own folder of ``NAME.LANGUAGE.prompt`` files laid over them.

    A file there replaces the packaged one of the same name and language and must have the same inputs and output
    schema, because code fills them in; other names are added. Without a folder it is that of the environment variable
    ``RAG_KIT_PROMPTS``, if it is set.

    Example:
        >>> PromptLibrary().load("answer", "zh").metadata["language"]
        'zh'
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.packaged = packaged_folder()
        named = (os.environ.get(FOLDER_VARIABLE, "").strip() or None) if folder is None else folder
        self.folder = None if named is None else Path(named).expanduser()
        if self.folder is not None and not self.folder.is_dir():
            name = FOLDER_VARIABLE if folder is None else "folder"
            raise InvalidInputError(
                f"{name} is {str(self.folder)!r}, which is no folder; name the one that holds your prompts."
            )

    def files(self) -> list[Path]:
        """Return all prompt files, packaged and own, sorted."""
        folders = [folder for folder in (self.packaged, self.folder) if folder is not None]
        return sorted(path for folder in folders for path in folder.glob(f"[!.]*{SUFFIX}"))

    def names(self) -> list[str]:
        """Return the names of all prompts, packaged and own, sorted."""
        return sorted({name for name, _ in self.entries()})

    def entries(self) -> list[tuple[str, str]]:
        """Return (name, language) of all prompts, packaged and own, sorted, without files of impossible names."""
        entries = set(map(split_name, self.files()))
        return sorted(entry for entry in entries if NAME.fullmatch(entry[0]) and entry[1] in LANGUAGES)

    def load(self, name: str, language: str = "en") -> PromptTemplate:
        """Load a prompt as a LangChain chat prompt.

        The file is read each time (it is small) and parsed when its content is new: edits show at once. Do it when
        a chain or graph is built, not inside an async node.
        """
        from rag_kit.prompts.template import PromptTemplate

        # a misnamed file would be passed over for the packaged prompt without a word
        if self.folder is not None and (problems := self.misnamed()):
            raise PromptFileError(*problems)
        return PromptTemplate.from_file(self.read(name, language))

    def read(self, name: str, language: str = "en") -> PromptFile:
        """Read a prompt file, an own one before the packaged one; InvalidInputError if it is missing or wrong."""
        if language not in LANGUAGES:
            raise InvalidInputError(f"language is {language!r}; allowed: {', '.join(LANGUAGES)}.")
        if not isinstance(name, str) or not NAME.fullmatch(name):  # it becomes part of a path
            raise InvalidInputError(f"{name!r} is no prompt name. There are: {', '.join(self.names())}.")
        own_path = _prompt_path(self.folder, name, language) if self.folder else None
        path = own_path or _prompt_path(self.packaged, name, language)
        if path is None:
            if others := ", ".join(other for entry_name, other in self.entries() if entry_name == name):
                problem = f"The prompt {name!r} does not exist in {language!r}; it exists in: {others}."
            else:
                names = self.names()
                hint = did_you_mean(name, names)
                problem = f"There is no prompt {name!r}{hint}. There are: {', '.join(names)}."
            raise InvalidInputError(problem)
        prompt = _read_file(path)
        original = self.original(name, language) if own_path else None
        if original and (problems := mismatches(prompt, original, f"the packaged prompt {name!r}")):
            raise PromptFileError(*problems)
        return prompt

    def misnamed(self) -> list[Problem]:
        """List problems of own files: a packaged name without the ending ``.prompt``, or a new prompt that is wrong."""
        problems: list[Problem] = []
        # no hidden files, and no backups that an editor names with "~"
        for path in sorted((self.folder or self.packaged).glob("[!.]*[!~]")):
            name, language = split_name(path.with_suffix(SUFFIX))
            is_prompt_name = NAME.fullmatch(name) and language in LANGUAGES
            is_packaged = is_prompt_name and _prompt_path(self.packaged, name, language)
            if is_packaged and path.suffix != SUFFIX:
                message = f"a prompt file ends in {SUFFIX}; rename or remove this one"
                problems.append(Problem(str(path), 1, message))
            elif path.suffix == SUFFIX and not is_packaged:
                try:
                    _read_file(path)
                except PromptFileError as error:
                    problems += error.problems
        return problems

    def original(self, name: str, language: str) -> PromptFile | None:
        """Return the packaged prompt that an own file must match; None if the name is new, or the file is wrong."""
        if path := _prompt_path(self.packaged, name, language):
            with suppress(PromptFileError):
                return _read_file(path)
        return None


def packaged_folder() -> Path:
    """Return the folder of rag_kit's prompts: package data in a wheel, ``prompts/`` in a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "files", here.parent.parent / "prompts"):
        if folder.is_dir():
            return folder
    raise InvalidInputError(f"The packaged prompts are not at {here / 'files'}; install rag-kit again.")


def split_name(path: Path) -> tuple[str, str]:
    """Return name and language by the file name: ``("answer", "zh")`` for ``answer.zh.prompt``."""
    name, _, language = path.name.removesuffix(SUFFIX).rpartition(".")
    return name, language


def _prompt_path(folder: Path, name: str, language: str) -> Path | None:
    """Return the path of a prompt file in a folder; None if it is not there."""
    path = folder / f"{name}.{language}{SUFFIX}"
    return path if os.path.lexists(path) else None


def _read_file(path: Path) -> PromptFile:
    """Read and parse a prompt file; a pipe is refused, since reading it would wait for ever."""
    name, language = split_name(path)
    try:
        if path.exists() and not path.is_file():
            raise PromptFileError(Problem(str(path), 1, "not a regular file; a prompt must be a text file"))
        data = path.read_bytes()
    except OSError as error:
        raise PromptFileError(Problem(str(path), 1, f"cannot be read ({error.strerror or error})")) from None
    return _parse_cached(data, name=name, language=language, file=str(path))


def mismatches(prompt: PromptFile, other: PromptFile, other_name: str) -> list[Problem]:
    """List differences of inputs and output schema, which code relies on, from another file of the same prompt."""
    problems = []
    if set(prompt.inputs) != set(other.inputs):
        inputs, other_inputs = (", ".join(sorted(file.inputs)) or "none" for file in (prompt, other))
        message = f"the inputs are {inputs}, but {other_inputs} in {other_name}; make them equal"
        problems.append(prompt.problem("input", message))
    if without_wording(prompt.schema) != without_wording(other.schema):
        message = f"output.schema differs from {other_name}; make them equal"
        problems.append(prompt.problem("output.schema", message))
    return problems


def without_wording(schema: Any) -> Any:
    """Remove titles and descriptions, which differ by language, from a schema."""

    def drop_wording(node: dict[str, Any]) -> dict[str, Any]:
        # an object under such a key is no wording, but the schema of a field that is called "title"
        kept = (key for key in node if key not in _WORDING_KEYS or isinstance(node[key], dict | bool))
        return {key: node[key] for key in kept}

    return json.loads(json.dumps(schema), object_hook=drop_wording)  # the hook gets each object


def load_prompt(name: str, *, language: str = "en", folder: Path | str | None = None) -> PromptTemplate:
    """Load a prompt file as a LangChain chat prompt.

    Args:
        name: Name of the prompt, such as ``"answer"``.
        language: ``"en"`` or ``"zh"``.
        folder: A folder whose files win over the packaged ones; None: the environment variable
            ``RAG_KIT_PROMPTS``, if it is set.

    Returns:
        A new ``PromptTemplate``.

    Raises:
        InvalidInputError: There is no such prompt or folder, or the file is wrong (file, line, what is allowed).

    Example:
        >>> prompt = load_prompt("condense", language="en")
        >>> sorted(prompt.input_variables), prompt.output_schema.__name__
        (['history', 'question'], 'Query')
    """
    return PromptLibrary(folder).load(name, language)


def prompt_from_text(text: str, *, name: str, language: str = "en") -> PromptTemplate:
    """Make a LangChain chat prompt from the whole text of a prompt file, for notebooks and edited assistants.

    Raises:
        InvalidInputError: The text is wrong (line, what is allowed), or declares another name.
    """
    from rag_kit.prompts.template import PromptTemplate

    return PromptTemplate.from_file(parse_prompt(text, name=name, language=language))


def check_library(library: PromptLibrary, language: str | None = None) -> list[Problem]:
    """List the problems of all prompts, or of those in one language, sorted by file and line."""
    if language is not None and language not in LANGUAGES:
        raise InvalidInputError(f"language is {language!r}; allowed: {', '.join(LANGUAGES)}.")
    problems = {problem for name in library.names() for problem in _check_languages(library, name)}
    if language is not None:
        problems = {problem for problem in problems if split_name(Path(problem.file))[1] == language}
    return sorted(problems.union(library.misnamed()), key=lambda each: (each.file, each.line, each.message))


def _check_languages(library: PromptLibrary, name: str) -> list[Problem]:
    """Check each language of a prompt, then the languages against each other."""
    problems: list[Problem] = []
    prompts: list[PromptFile] = []
    for language in [language for entry_name, language in library.entries() if entry_name == name]:
        try:
            prompt = library.read(name, language)
        except PromptFileError as error:
            problems += error.problems
            continue
        prompts.append(prompt)
        problems += _check_task(prompt, library.original(name, language))
    if len(prompts) == len(LANGUAGES):
        problems += _disagreements(*prompts)
    return problems


def _check_task(prompt: PromptFile, original: PromptFile | None) -> list[Problem]:
    """List the problem of a prompt without the line ``<task>NAME</task>``, by which the extractive model goes."""
    first = prompt.sections[0]
    task = f"<task>{prompt.name}</task>"
    needs_task = original is not None and "system" in (first.role, original.sections[0].role)
    if not needs_task or (first.role == "system" and task in first.text.splitlines()):
        return []
    return [Problem(prompt.file, first.line, f"there must be a system section with the line {task}")]


def _disagreements(first: PromptFile, second: PromptFile) -> list[Problem]:
    """List the differences between two languages of a prompt that are not allowed."""
    problems = mismatches(second, first, first.language)
    if first.sections[0].role != second.sections[0].role:
        message = f"only one of {first.language} and {second.language} has a system section; make them equal"
        problems.append(Problem(second.file, second.sections[0].line, message))
    if Path(first.file).parent != Path(second.file).parent:
        return problems  # who replaces one language alone gives it a version of one's own
    for key in ("version", "max_tokens"):
        value, other = getattr(second, key), getattr(first, key)
        if value != other:
            message = f"{key} is {value}, but {other} in {first.language}; make them equal"
            problems.append(second.problem(key, message))
    return problems
