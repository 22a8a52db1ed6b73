"""Where prompt files lie, and reading one safely."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import MAX_BYTES

SUFFIX = ".prompt"
VARIABLE = "RAG_KIT_PROMPTS"
MAX_FILES = 1_000


def packaged_folder() -> Path:
    """The folder of the prompts that come with rag_kit: package data in a wheel, ``prompts/`` in a checkout.

    Raises:
        InvalidInputError: Neither is there; the installation is incomplete.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "files", here.parent.parent / "prompts"):
        if folder.is_dir():
            return folder
    raise InvalidInputError(f"The packaged prompts are not at {here / 'files'}; install rag-kit again.")


def override_folder(folder: Path | str | None) -> Path | None:
    """The user's own folder: the argument, else the environment variable ``RAG_KIT_PROMPTS``, else None.

    Args:
        folder: The argument, or None to ask the environment.

    Raises:
        InvalidInputError: The folder does not exist.
    """
    source = "folder"
    if folder is None:
        given = os.environ.get(VARIABLE, "").strip()
        if not given:
            return None
        folder, source = given, VARIABLE
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise InvalidInputError(
            f"{source} is {str(path)!r}, which is no folder; name the folder that holds your prompts."
        )
    return path


def prompt_files(folder: Path) -> list[Path]:
    """Every ``*.prompt`` file directly in a folder, sorted by name.

    Raises:
        InvalidInputError: There are more than MAX_FILES.
    """
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                found.append(folder / entry.name)
                if len(found) > MAX_FILES:
                    raise InvalidInputError(
                        f"{folder} holds more than {MAX_FILES} prompt files; name another folder."
                    )
    return sorted(found)


def split_name(path: Path) -> tuple[str, str]:
    """Name and language by the file name; ``("answer", "zh")`` for ``answer.zh.prompt``."""
    name, _, language = path.name.removesuffix(SUFFIX).rpartition(".")
    return name, language


def find(folder: Path, name: str, language: str) -> Path | None:
    """The file of a prompt in a folder, or None.

    Args:
        folder: The folder to look into.
        name: A name that was checked (no path parts).
        language: One of the known languages.
    """
    path = folder / f"{name}.{language}{SUFFIX}"
    return path if path.is_symlink() or path.exists() else None


def read_bytes(path: Path, folder: Path) -> bytes:
    """Read a prompt file, at most one byte more than is allowed.

    Args:
        path: The file.
        folder: The folder it must stay in.

    Raises:
        InvalidInputError: It is a link that leaves the folder, no regular file, or not readable.
    """
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise InvalidInputError(f"a link that leads out of {folder}; put the file itself there")
        if not stat.S_ISREG(real.stat().st_mode):  # opening a pipe would wait for ever
            raise InvalidInputError("not a regular file; a prompt must be a text file")
        with real.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except InvalidInputError:
        raise
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"cannot be read ({reason})") from error
