"""Where an index is: a folder, or a schema of a PostgreSQL database, named by a URL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rag_kit.errors import InvalidInputError

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.I)
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,59}")
_NEARLY = re.compile(r"\s*postgres(ql)?:|.*\bpassword\s*=", re.I)
_SECRET = ("password", "sslpassword", "oauth_client_secret")
_USAGE = "Write postgresql://USER@HOST:PORT/DATABASE?index=NAME&tenant=NAME"


@dataclass(frozen=True)
class Location:
    """An index in a database.

    Attributes:
        url: Names it without a password; as its text in messages.
        conninfo: What psycopg connects by; may hold a password, so never to be shown.
        index: The schema.
        tenant: Whose rows.
    """

    url: str
    conninfo: str = field(repr=False, compare=False)
    index: str = "rag_kit"
    tenant: str = ""

    def __str__(self) -> str:
        return self.url

    def __reduce__(self) -> tuple[Any, ...]:
        return location_of, (self.url,)  # without the password, which libpq finds in PGPASSWORD or ~/.pgpass

    @property
    def name(self) -> str:
        """The index alone."""
        return self.index

    def without_secrets(self, text: str) -> str:
        """A text, such as an error of the server's, in which no password of the URL stands."""
        for secret in re.findall(r"://[^/?@]*?:([^/?@]+)@|[?&][^=&]*(?:word|secret)=([^&]+)", self.conninfo):
            for value in filter(None, secret):
                text = text.replace(value, "***").replace(unquote(value), "***")
        return text


def location_of(given: str | PathLike[str] | Location) -> Path | Location:
    """A folder, or a location where the text is a URL.

    Raises:
        InvalidInputError: It is a URL of something else, or one that cannot be read.

    Example:
        >>> print(location_of("postgresql://ann:secret@db.local/docs?index=handbook&tenant=a"))
        postgresql://ann@db.local/docs?index=handbook&tenant=a
        >>> location_of("folder/index") == Path("folder/index")
        True
    """
    if isinstance(given, Location):
        return given
    if not isinstance(given, str) or (scheme := _SCHEME.match(given)) is None:
        if isinstance(given, str) and _NEARLY.match(given):  # a folder of this name would show the password
            raise InvalidInputError(
                f"What was given is neither a folder nor the URL of a database. {_USAGE}."
            )
        return Path(given)
    if scheme[1].lower() not in ("postgresql", "postgres"):
        raise InvalidInputError(f"There is no index at {scheme[0]} URLs: name a folder. {_USAGE}.")
    rest, _, query = given[scheme.end() :].partition("?")
    host, slash, database = rest.partition("/")
    user, at, server = host.rpartition("@")
    # what is not percent-encoded would be cut in the middle of a password, and its end be shown
    if "@" in user + database or (not at and re.search(r":\D", re.sub(r"\[.*?\]", "", server))):
        raise InvalidInputError(
            "In the URL of an index, write @ : / ? # % in a user, password or database as %40 %3A %2F %3F %23 %25. "
            f"{_USAGE}."
        )
    own, kept, shown = dict[str, str](), list[str](), list[str]()
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidInputError(
                f"The URL of an index has a part after ? that is not NAME=VALUE. {_USAGE}."
            )
        key = unquote(key)  # as libpq does
        if key in ("index", "tenant"):
            try:
                if own.setdefault(key, text := unquote(value, errors="strict")) != text:
                    raise InvalidInputError(f"The URL of an index has two values of {key}=. {_USAGE}.")
            except UnicodeDecodeError:  # replaced, two tenants would be one
                raise InvalidInputError(f"{part[:80]} is no UTF-8. {_USAGE}.") from None
            shown.append(part)
            continue
        kept.append(part)
        if key not in _SECRET:
            shown.append(part)
    own = {"index": "rag_kit", "tenant": "", **own}
    if not _NAME.fullmatch(own["index"]) or own["index"].startswith("pg_"):
        raise InvalidInputError(
            f"index={own['index'][:80]!r} cannot be the name of an index: it has small letters a-z, digits and _, at "
            "most 60, does not begin with a digit, nor with pg_."
        )
    if "\0" in own["tenant"]:
        raise InvalidInputError("tenant= must not hold NUL.")
    base = f"postgresql://{user.partition(':')[0]}{at}{server}{slash}{database}"
    conninfo = f"postgresql://{host}{slash}{database}"
    return Location(
        base + ("?" + "&".join(shown) if shown else ""),
        conninfo + ("?" + "&".join(kept) if kept else ""),
        own["index"],
        own["tenant"],
    )
