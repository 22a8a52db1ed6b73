"""Read e-mail: one message (eml), or a mailbox of messages (mbox)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser

from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.parts import Context, Part, Scalar, Unreadable

_FROM = re.compile(rb"(?:\A|\n\r?\n)From [^\n]*\n")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)
_HEADERS = ("From", "To", "Cc", "Date")
_PARSER = BytesParser(EmailMessage, policy=policy.default)


def read_eml(data: bytes, context: Context) -> Iterator[Part]:
    """One part: subject, sender, receivers, date, text, and the names of what is attached."""
    message = _PARSER.parsebytes(data)
    if not any(message.get(name) for name in (*_HEADERS, "Subject")):
        raise Unreadable("it has none of the headers of a letter")
    yield _letter_part(message)


def read_mbox(data: bytes, context: Context) -> Iterator[Part]:
    """One part a message, numbered from 1 in ``record``."""
    preamble, *messages = _FROM.split(data)
    if preamble or not messages:
        raise Unreadable("it does not begin with a message ('From ...')")
    for number, lines in enumerate(messages, 1):
        part = _letter_part(_PARSER.parsebytes(_QUOTED_FROM.sub(rb"\1", lines)))
        part.metadata["record"] = number
        yield part


def _letter_part(message: EmailMessage) -> Part:
    """A letter as one part: subject, headers, body and the names of what is attached."""
    subject = _header(message, "Subject")
    lines = [f"# {subject}"] if subject else []
    lines.append("\n".join(f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))))
    body = message.get_body(("plain", "html"))
    if body is not None:
        text = _body_text(body)
        html = body.get_content_type() == "text/html"
        lines.append(to_markdown(parse_html(text)) if html else text)
    attached = [name for part in message.iter_attachments() if (name := part.get_filename())]
    if attached:
        lines.append(f"Attached: {', '.join(attached)}")
    metadata: dict[str, Scalar] = {"title": subject} if subject else {}
    metadata |= {name.lower(): value for name in ("From", "To", "Date") if (value := _header(message, name))}
    return Part("\n\n".join(line.strip() for line in lines if line.strip()), metadata)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name) or "").split())[:2000]
    except (ValueError, IndexError, AttributeError):  # the library's parser of addresses fails on some
        return ""


def _body_text(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    try:
        return data.decode(part.get_content_charset() or "")
    except (LookupError, UnicodeDecodeError):
        return decode(data)
