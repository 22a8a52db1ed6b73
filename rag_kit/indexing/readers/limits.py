"""Limits on reading one file."""

from __future__ import annotations

from dataclasses import dataclass

from rag_kit.errors import InvalidInputError

_SMALLEST_MEMORY = 256 * 2**20


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Caps for reading one file; a file that needs more is refused with a `ReadError`, never cut short.

    Attributes:
        max_seconds: Wall-clock seconds for one file; the reader process is killed after that.
        max_memory: Bytes of address space of the reader process (at least 256 MiB; POSIX only).
        max_bytes: Bytes of the file itself.
        max_unpacked: Bytes that a zipped file (docx, pptx, xlsx, epub) may unpack to.
        max_pages: Pages of a PDF, slides of a pptx, chapters of an epub.
        max_characters: Characters of text that come out.
        max_chunks: Chunks that `ingest` cuts the text into; each costs about 2 kB of memory beside its text.

    Raises:
        InvalidInputError: A cap is not a positive number, or the memory cap is too small to start Python.

    Example:
        >>> ReadLimits(max_pages=20).max_pages
        20
    """

    max_seconds: float = 120.0
    max_memory: int = 2 * 2**30
    max_bytes: int = 200 * 2**20
    max_unpacked: int = 500 * 2**20
    max_pages: int = 5_000
    max_characters: int = 50_000_000
    max_chunks: int = 200_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidInputError(f"ReadLimits.{name} must be a number above 0, not {value!r}.")
        if self.max_memory < _SMALLEST_MEMORY:
            raise InvalidInputError(
                f"ReadLimits.max_memory must be at least {_SMALLEST_MEMORY} bytes (256 MiB), not {self.max_memory}."
            )
