"""What reading one file may cost."""

from __future__ import annotations

from dataclasses import dataclass

from rag_kit.errors import InvalidInputError

_SMALLEST_MEMORY = 256 * 2**20


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Caps for reading one file; a file that needs more is refused with a `ReadError`, never cut short.

    Raises:
        InvalidInputError: A cap is not a positive number, or the memory cap is too small to start Python.
    """

    max_seconds: float = 120.0  # on the clock; the reader process is killed after that
    max_memory: int = 2 * 2**30  # bytes of address space of the reader process (at least 256 MiB; POSIX only)
    max_bytes: int = 200 * 2**20  # of the file itself
    max_unpacked: int = 500 * 2**20  # bytes that a zipped file (docx, pptx, xlsx, epub) may unpack to
    max_pages: int = 5_000  # of a PDF, slides of a pptx, chapters of an epub
    max_characters: int = 50_000_000  # of text that come out
    max_chunks: int = (
        200_000  # that `ingest` cuts the text into; each costs about 2 kB of memory beside its text
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidInputError(f"ReadLimits.{name} must be a number above 0, not {value!r}.")
        if self.max_memory < _SMALLEST_MEMORY:
            raise InvalidInputError(
                f"ReadLimits.max_memory must be at least {_SMALLEST_MEMORY} bytes (256 MiB), not {self.max_memory}."
            )
