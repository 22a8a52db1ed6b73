"""Places of indexes, a folder or what a URL names, and their stores; that of a URL is imported when one is given."""

from __future__ import annotations

import re
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from rag_kit.indexing.document_index.folder_store import FolderStore
from rag_kit.indexing.document_index.store import RemoteLocation, Store
from rag_kit.indexing.files import as_path

Place: TypeAlias = str | PathLike[str] | RemoteLocation

# Found anywhere, as in quotes: taken for a folder, it would be made under a name that shows its password.
_SETTING = r"\b(host|user|dbname)\s*=.*\s\w+\s*="  # of libpq's other form
_LIKE_URL = re.compile(rf"\w://|(?<![a-z])postgres(ql)?:|:\S+@[\w.-]+:\d|password\s*=|{_SETTING}", re.I)
_URL_MODULE = "rag_kit.indexing.postgres.location"  # imported when a URL is given


def location_of(place: Place) -> Path | RemoteLocation:
    """Return a folder, or the location that a URL names; raises InvalidInputError for what is neither.

    Example:
        >>> location_of("folder/index") == Path("folder/index")
        True
        >>> print(location_of("postgresql://ann:secret@db.local/docs?index=handbook&tenant=a"))
        postgresql://ann@db.local/docs?index=handbook&tenant=a
    """
    if isinstance(place, RemoteLocation):
        return place
    if _LIKE_URL.search(str(place)):
        location: RemoteLocation = import_module(_URL_MODULE).location_of(str(place))
        return location
    return as_path(place, "folder")


def store_of(place: Place) -> tuple[type[Store], Path | RemoteLocation]:
    """Return the class of the store at a place, and its location."""
    location = location_of(place)
    if isinstance(location, Path):
        return FolderStore, location
    module, _, name = location.store.partition(":")
    return getattr(import_module(module), name), location
