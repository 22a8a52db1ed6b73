"""Reading files into documents: one converter a format, run in a separate, limited process.

The names below load LangChain only when used; the reader process itself imports none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.indexing.readers.api import Reader, aread, read
    from rag_kit.indexing.readers.formats import supported_suffixes
    from rag_kit.indexing.readers.limits import ReadLimits
    from rag_kit.indexing.readers.registry import register_reader

__all__ = ["ReadLimits", "Reader", "aread", "read", "register_reader", "supported_suffixes"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "ReadLimits": ".limits",
        "Reader": ".api",
        "aread": ".api",
        "read": ".api",
        "register_reader": ".registry",
        "supported_suffixes": ".formats",
    },
)
