"""Further texts by which a passage is found: summaries, questions, keywords, translations..."""

from __future__ import annotations

from rag_kit.indexing.representing.kinds import REPRESENTATION, TAG_PREFIX, TEXT, Kind, kinds_of
from rag_kit.indexing.representing.representer import Represented, Representer

__all__ = ["REPRESENTATION", "TAG_PREFIX", "TEXT", "Kind", "Represented", "Representer", "kinds_of"]
