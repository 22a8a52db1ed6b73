"""Finding prompts by name and language: the user's folder first, then the packaged files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.prompts import folders
from rag_kit.prompts.format import LANGUAGES, Problem, PromptFile, inspect_prompt, parse_prompt
from rag_kit.prompts.front_matter import NAME
from rag_kit.prompts.json_schema import without_wording

if TYPE_CHECKING:
    from rag_kit.prompts.template import PromptTemplate


@lru_cache(maxsize=256)
def _parsed(
    data: bytes, name: str, language: str, file: str
) -> tuple[PromptFile | None, tuple[Problem, ...]]:
    """Parse once per content. The key is the content itself, so an edited file is never served stale."""
    parsed, problems = inspect_prompt(data, name, language, file)
    return parsed, tuple(problems)


class PromptLibrary:
    """The prompts of this kit, with a user's own folder laid over them.

    Args:
        folder: A folder with ``NAME.LANGUAGE.prompt`` files. A file there replaces the packaged one of the same
            name and language and must have the same inputs and output schema, because code fills them in;
            other names are added. None: the environment variable ``RAG_KIT_PROMPTS``, if it is set.

    Raises:
        InvalidInputError: The folder does not exist.

    Example:
        >>> library = PromptLibrary()
        >>> "answer" in library.names()
        True
        >>> library.load("answer", "zh").metadata["language"]
        'zh'
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.packaged = folders.packaged_folder()
        self.folder = folders.override_folder(folder)

    def __repr__(self) -> str:
        return f"PromptLibrary(folder={str(self.folder)!r})" if self.folder else "PromptLibrary()"

    def names(self) -> list[str]:
        """Names of all prompts, packaged and own, sorted."""
        return sorted({name for name, _ in self.entries()})

    def entries(self) -> list[tuple[str, str]]:
        """(name, language) of all prompts, packaged and own, sorted; files with impossible names left out."""
        found = set()
        for folder in (self.packaged, self.folder):
            for path in folders.prompt_files(folder) if folder is not None else []:
                name, language = folders.split_name(path)
                if NAME.fullmatch(name) and language in LANGUAGES:
                    found.add((name, language))
        return sorted(found)

    def load(self, name: str, language: str = "en") -> PromptTemplate:
        """Load a prompt as a LangChain chat prompt.

        The file is read each time (it is small) and parsed when its content is new: edits show at once. Do it when
        a chain or graph is built, not inside an async node.

        Args:
            name: Name of the prompt, such as ``"answer"``.
            language: ``"en"`` or ``"zh"``.

        Returns:
            A new template.

        Raises:
            InvalidInputError: There is no such prompt, or its file is wrong.
        """
        from rag_kit.prompts.template import PromptTemplate

        return PromptTemplate.from_file(self.read(name, language))

    def read(self, name: str, language: str = "en") -> PromptFile:
        """Read a prompt without making a LangChain object of it.

        Args:
            name: Name of the prompt.
            language: ``"en"`` or ``"zh"``.

        Returns:
            The parsed file.

        Raises:
            InvalidInputError: There is no such prompt, or its file is wrong.
        """
        parsed, problems = self.inspect(name, language)
        if parsed is None:
            raise InvalidInputError("\n".join(map(str, problems)))
        return parsed

    def inspect(self, name: str, language: str) -> tuple[PromptFile | None, list[Problem]]:
        """Read a prompt and list all that is wrong with its file.

        Args:
            name: Name of the prompt.
            language: ``"en"`` or ``"zh"``.

        Returns:
            The parsed file and no problems, or None and at least one.

        Raises:
            InvalidInputError: There is no such prompt.
        """
        self._check_asked(name, language)
        packaged = folders.find(self.packaged, name, language)
        own = folders.find(self.folder, name, language) if self.folder is not None else None
        if own is None or self.folder is None:
            if packaged is None:
                raise InvalidInputError(self._unknown(name, language))
            return _read(packaged, self.packaged)
        parsed, problems = _read(own, self.folder)
        if parsed is None:
            return None, problems
        original = self.original(name, language)
        problems = override_problems(parsed, original) if original is not None else []
        return (None, problems) if problems else (parsed, [])

    def original(self, name: str, language: str) -> PromptFile | None:
        """The packaged prompt that an own file of this name must fit; None if the name is new."""
        for tongue in (language, *LANGUAGES):
            path = folders.find(self.packaged, name, tongue)
            if path is not None:
                return _read(path, self.packaged)[0]
        return None

    def _check_asked(self, name: str, language: str) -> None:
        """Name and language become part of a path: only plain ones pass."""
        if not isinstance(language, str) or language not in LANGUAGES:
            hint = (
                " ('auto' must be resolved first: rag_kit.text.detect_language)" if language == "auto" else ""
            )
            raise InvalidInputError(f"language is {language!r}; allowed: {', '.join(LANGUAGES)}{hint}.")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InvalidInputError(
                f"{name!r} is no prompt name; allowed: lower-case letters, digits and _, a letter first. "
                f"There are: {', '.join(self.names())}."
            )

    def _unknown(self, name: str, language: str) -> str:
        names = self.names()
        if name in names:
            there = [tongue for known, tongue in self.entries() if known == name]
            return f"The prompt {name!r} does not exist in {language!r}; it exists in: {', '.join(there)}."
        return f"There is no prompt {name!r}{did_you_mean(name, names)}. There are: {', '.join(names)}."


def _read(path: Path, folder: Path) -> tuple[PromptFile | None, list[Problem]]:
    name, language = folders.split_name(path)
    try:
        data = folders.read_bytes(path, folder)
    except InvalidInputError as error:
        return None, [Problem(str(path), 1, str(error))]
    parsed, problems = _parsed(data, name, language, str(path))
    return parsed, list(problems)


def override_problems(own: PromptFile, original: PromptFile) -> list[Problem]:
    """What keeps an own file from replacing a packaged prompt.

    Args:
        own: The user's file.
        original: The packaged prompt of the same name.

    Returns:
        Problems with inputs and output schema, which code relies on; empty when it fits.
    """
    problems = []
    if set(own.inputs) != set(original.inputs):
        message = (
            f"the inputs are {listed(own.inputs)}, but the packaged prompt {own.name!r} has "
            f"{listed(original.inputs)}, which the code fills in; use exactly these"
        )
        problems.append(own.problem("input", message))
    if without_wording(own.schema) != without_wording(original.schema):
        message = (
            f"output.schema is {_schema_name(own.schema)}, but the packaged prompt {own.name!r} has "
            f"{_schema_name(original.schema)}, which the code reads; use the same"
        )
        problems.append(own.problem("output.schema", message))
    return problems


def listed(names: dict[str, str]) -> str:
    """Names of inputs for a message, sorted."""
    return ", ".join(sorted(names)) or "none"


def _schema_name(schema: object) -> str:
    return (
        "absent" if schema is None else repr(schema) if isinstance(schema, str) else "an inline JSON schema"
    )


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
    """Make a LangChain chat prompt from the text of a prompt file, for notebooks and edited assistants.

    Args:
        text: The whole text: front matter and body.
        name: The name that the front matter declares.
        language: ``"en"`` or ``"zh"``.

    Returns:
        A new ``PromptTemplate``.

    Raises:
        InvalidInputError: The text is wrong (line, what is allowed).
    """
    from rag_kit.prompts.template import PromptTemplate

    return PromptTemplate.from_file(parse_prompt(text, name=name, language=language))
