"""Turns an error of PostgreSQL into an error of the kit that says what to do."""

from __future__ import annotations

import psycopg

from rag_kit.errors import DocumentIndexError, IndexFormatError, InvalidInputError, RagKitError
from rag_kit.indexing.postgres.location import Location

_NOTHING = "Nothing of this write was changed, and what was written before stays"
_VECTOR = (
    "An index needs pgvector 0.8 or newer: install it on the server, and let an administrator of the database run "
    "CREATE EXTENSION vector."
)
#: By the beginning of SQLSTATE.
_ADVICE = {
    "53": f"{_NOTHING}: make room on the server, or lower its load, then run the same again.",
    "25006": "The server takes no writes now (a standby, or default_transaction_read_only). Write to the primary.",
    "28": "Check user and password (PGPASSWORD, ~/.pgpass) and the server's pg_hba.conf.",
    "3D000": "Make the database (createdb), or name another one.",
    "42501": "The role needs rights on the schema: its owner grants them, or open the index as its owner.",
    "0A000": _VECTOR,
    "58P": _VECTOR,
    "58": f"{_NOTHING}: check the disk of the server.",
    "57": f"{_NOTHING}, unless its end was just being committed: run the same again.",
}


#: SQLSTATE by words of what a server says that lets nobody in; libpq does not give its number.
_REFUSALS = {'role "': "28000", "pg_hba": "28000", "password": "28000", 'database "': "3D000"}


def explanation(error: psycopg.Error, location: Location) -> RagKitError:
    """The error to raise in its place: one line, in which no password stands."""
    text = " ".join(location.without_secrets(str(error)).split())
    state = error.sqlstate or next((number for words, number in _REFUSALS.items() if words in text), "")
    if 'extension "vector"' in text:
        state = "0A000"
    if isinstance(error, psycopg.DataError) or state.startswith(("22", "54")):
        return InvalidInputError(f"{location} can neither hold nor look for what was given ({text}).")
    if isinstance(error, psycopg.ProgrammingError) and not state:
        return InvalidInputError(f"{location} is no URL that psycopg takes ({text}).")
    for key, advice in _ADVICE.items():
        if state.startswith(key):
            return DocumentIndexError(f"{location}: {text}. {advice}")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return DocumentIndexError(
            f"{location} cannot be reached ({text}). Start the server, or check host and port; then run the same "
            "again: what was written is kept."
        )
    return IndexFormatError(f"{location} is not what rag_kit wrote, or damaged ({text}).")
