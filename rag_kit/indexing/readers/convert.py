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

_PICTURE = "ocr:read_picture"
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_bytes(path: str | Path, most: int) -> bytes:
    """The bytes of a regular file; anything else (a pipe, a device) is never waited for.

    Raises:
        Unreadable: Not a regular file, gone, not allowed, or larger than ``most``.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        before = os.stat(path)
        if stat.S_ISDIR(before.st_mode):
            raise Unreadable("it is a folder", "Name a file; iter_files lists those of a folder")
        if not stat.S_ISREG(before.st_mode):
            raise Unreadable("it is no regular file but a pipe, socket or device", "Leave it out")
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("it is no regular file but a pipe, socket or device", "Leave it out")
            if status.st_size > most:
                raise over_limit(f"it has {status.st_size} bytes", "max_bytes", most)
            data = stream.read(most + 1)
    except FileNotFoundError as error:
        raise Unreadable("there is no such file", "Check the path") from error
    except PermissionError as error:
        raise Unreadable("reading it is not permitted", "Give yourself the right to read it") from error
    except OSError as error:
        raise Unreadable(
            f"it cannot be opened ({error.strerror or error})", "Check the disk and the path"
        ) from error
    except ValueError as error:  # a null character in the name
        raise Unreadable("its name is not allowed in a file system", "Check the path") from error
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
    module, _, name = (KINDS[kind].reader if kind in KINDS else _PICTURE).partition(":")
    converter: Callable[[bytes, Context], Iterator[Part]] = getattr(
        importlib.import_module(f"rag_kit.indexing.readers.{module}"), name
    )
    characters = 0
    found = False
    for part in converter(data, context):
        part.text = clean(part.text)
        if not part.text.strip():
            continue
        characters += len(part.text)
        if characters > context.limits.max_characters:
            raise over_limit(
                f"it gives over {characters} characters of text",
                "max_characters",
                context.limits.max_characters,
            )
        found = True
        part.metadata = {
            key: clean(value) if isinstance(value, str) else value for key, value in part.metadata.items()
        }
        yield part
    if not found:
        raise Unreadable("no text found in it", "Remove it, or check that it is the right file")


def clean(text: str) -> str:
    """Text that every store and encoder takes: no lone surrogates, no control characters but tab and newline."""
    return _CONTROLS.sub(" ", _SURROGATES.sub("\ufffd", text))
