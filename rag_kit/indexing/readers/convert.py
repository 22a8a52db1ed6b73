"""One file to parts, by the reader of its format."""

from __future__ import annotations

import importlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from rag_kit.indexing.readers.formats import KINDS, check_content
from rag_kit.indexing.readers.parts import Context, Part, Unreadable, over_limit

_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_bytes(path: str | Path, most: int) -> bytes:
    """The bytes of a regular file; anything else (a pipe, a device) is never waited for.

    Raises:
        Unreadable: Not a regular file, gone, not allowed, or larger than ``most``.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable("it is no regular file but a folder, pipe, socket or device", "Leave it out")
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:
            data = stream.read(most + 1)
    except FileNotFoundError as error:
        raise Unreadable("there is no such file", "Check the path") from error
    except (OSError, ValueError) as error:  # not allowed, a broken disk, a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise Unreadable(
            f"it cannot be opened ({reason})", "Check the path, its rights and the disk"
        ) from error
    if len(data) > most:
        raise over_limit(f"it has over {most} bytes", "max_bytes", most)
    return data


def convert(path: str | Path, kind: str, context: Context) -> Iterator[Part]:
    """All parts of a file that have text.

    Raises:
        Unreadable: See each converter; also when no text comes out at all.
    """
    data = read_bytes(path, context.limits.max_bytes)
    check_content(data, kind)
    module, _, name = KINDS[kind].reader.partition(":")
    converter: Callable[[bytes, Context], Iterator[Part]] = getattr(
        importlib.import_module(f"rag_kit.indexing.readers.{module}"), name
    )
    characters = 0
    for part in converter(data, context):
        part.text = clean(part.text)
        if part.text.strip():
            characters += len(part.text)
            context.check(characters, "characters of text", "max_characters")
            part.metadata = {
                key: clean(value) if isinstance(value, str) else value
                for key, value in part.metadata.items()
                if value != ""
            }
            yield part
    if not characters:
        raise Unreadable("no text found in it", "Remove it, or check that it is the right file")


def clean(text: str) -> str:
    """Text that every store and encoder takes: no lone surrogates, no control characters but tab and newline."""
    return _CONTROLS.sub(" ", _SURROGATES.sub("\ufffd", text))
