"""Read e-mail: one message (eml), or a mailbox of messages (mbox)."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from email import policy
from email.errors import InvalidBase64LengthDefect
from email.message import EmailMessage, Message
from email.parser import BytesParser
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.encodings import codec_of, decode
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Scalar, Unreadable, leave_out

# "From ann@example.org Mon Mar  2 10:00:00 2026": a time of day, a year, and a header on the next line; a line of text
# that begins with "From " has not all of these
_FROM = re.compile(rb"^From ([^\n]*)\n(?=[\x21-\x39\x3b-\x7e]+:|>From )", re.M)
_TIME, _YEAR = re.compile(rb"\d:\d\d"), re.compile(rb"\d{4}")
_DATED = re.compile(rb"\S+ +[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d")  # as programs write it
_FIRST_FROM = re.compile(rb"\AFrom [^\n]*\n")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)
_HEADERS = ("From", "To", "Cc", "Date")
_CHARSET = re.compile(r"(?<==\?)[\w.:-]+(?=(?:\*[\w-]*)?\?[bqBQ]\?)")
# styles, and what another version says in a form that is read
_OTHER_TEXTS = frozenset(f"text/{name}" for name in ("css", "enriched", "rtf", "watch-html", "x-amp-html"))
_LETTERS = ("message/rfc822", "message/global")  # forwarded ones
_CARDS = ("text/calendar", "text/vcard", "text/x-vcard")  # appointments and addresses, as lines of NAME:value
# where one encoded word of a header goes on in the next, which may be in the middle of a character
_WORD_GOES_ON = re.compile(r"(=\?([\w.:-]+)\?([bBqQ])\?)([^?\s]*)\?=\s+=\?\2\?\3\?([^?\s]*)")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_LINK = re.compile(r"://\S+")
# what a calendar does not show: alarms, and when a time zone changes; the date and the time of an appointment
_NOT_SHOWN = re.compile(r"(?m)^BEGIN:(STANDARD|DAYLIGHT|VALARM)\n(?:(?!BEGIN:|END:).*\n)*END:\1\n?")
_DAY = re.compile(r"(?m)^(DT(?:START|END)\b[^:\n]*:\d{4})(\d\d)(\d\d)")
_HOUR = re.compile(r"(?m)(?<=-\d\d)T(\d\d)(\d\d)\d\d(?=Z?$)")
_PARSER = BytesParser(EmailMessage, policy=policy.default)


def read_eml(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part: subject, sender, receivers, date, all texts, and the names of attachments."""
    message = _PARSER.parsebytes(data.removeprefix(BOM_UTF8))
    if not any(message.get(name) for name in (*_HEADERS, "Subject")):
        raise Unreadable("it has none of the headers of a letter")
    yield _letter_part(message)


def read_mbox(data: bytes, context: Context) -> Iterator[Part]:
    """Yield a part for each message, numbered from 1 in ``record``."""
    if not (first := _FIRST_FROM.match(data)):
        raise Unreadable("it does not begin with a message ('From ...')")
    later = (match for match in _FROM.finditer(data) if match.start() and _begins_letter(match, data))
    starts = [first, *later]
    ends = [*(match.start() for match in starts[1:]), len(data)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        with leave_out(f"message {number}"):  # where ">From " begins a line of text, it quotes "From "
            part = _letter_part(_PARSER.parsebytes(_QUOTED_FROM.sub(rb"\1", data[start.end() : end])))
            part.metadata["record"] = number
            yield part


def _begins_letter(match: re.Match[bytes], data: bytes) -> bool:
    """Tell whether a "From " line begins a letter: it has a time and a year, and a blank line before or a full date."""
    time = _TIME.search(match[1])
    is_apart = data.endswith((b"\n\n", b"\n\r\n"), 0, match.start()) or _DATED.match(match[1])
    return bool(is_apart and time and _YEAR.search(match[1], time.end()))


def _letter_part(message: EmailMessage) -> Part:
    headers = _headers(message)
    fields = {"title": "Subject", "from": "From", "to": "To", "date": "Date"}
    metadata: dict[str, Scalar] = {key: headers[name] for key, name in fields.items() if name in headers}
    return Part(_letter_text(message, headers), metadata)


def _headers(message: Message) -> dict[str, str]:
    """Return the decoded headers of a letter by name, without those that are empty."""
    headers = {name: _header(message, name) for name in ("Subject", *_HEADERS)}
    return {name: value for name, value in headers.items() if value}


def _letter_text(message: EmailMessage, headers: dict[str, str]) -> str:
    """Write a letter: subject, headers, its texts in order, and the names of attachments."""
    blocks = [f"# {headers['Subject']}"] if "Subject" in headers else []
    blocks.append("\n".join(f"{name}: {headers[name]}" for name in _HEADERS if name in headers))
    attached: list[str] = []
    blocks += _texts(message, attached)
    if attached:
        blocks.append(f"Attached: {', '.join(attached)}")
        write_note(f"attached files{LEFT_OUT}only their names are read")
    return "\n\n".join(block.strip() for block in blocks if block.strip())


def _texts(part: Any, attached: list[str]) -> Iterator[str]:
    """Yield the texts of a message or a part of it, also of forwarded letters; add names of files to ``attached``."""
    kind, has_parts = part.get_content_type(), part.is_multipart()
    is_letter, is_attached = kind in _LETTERS, part.get_content_disposition() == "attachment"
    if kind == "multipart/alternative" and has_parts:
        yield from _best_version(part, attached)
    elif has_parts and (is_letter or kind.startswith("multipart/")):
        for inner in part.get_payload():
            if kind == "multipart/signed" and inner.get_content_type().endswith("-signature"):
                continue
            with leave_out(f"a part of the message ({inner.get_content_type()})"):
                if is_letter:
                    coding = str(part["Content-Transfer-Encoding"]).strip().lower()
                    if coding in ("base64", "quoted-printable") and not inner.keys():  # as files are encoded
                        inner["Content-Transfer-Encoding"] = coding
                        inner = _PARSER.parsebytes(inner.get_payload(decode=True))
                    yield _letter_text(inner, _headers(inner))
                else:
                    yield from list(_texts(inner, attached))  # all of it, or nothing
    elif has_parts:  # a report on whether a letter was delivered or read, or a piece of one
        for inner in part.get_payload():
            yield "\n".join(f"{name}: {' '.join(str(value).split())}" for name, value in inner.items())
            yield from _texts(inner, attached)
    elif kind.startswith(("text/", "multipart/")) and not is_attached and kind not in _OTHER_TEXTS:
        yield _body_text(part, kind)  # also of a multipart without boundary, which is one text
    elif name := part.get_filename():
        attached.append(name)
    elif not part.get("Content-ID"):  # a part with one is a picture in the HTML
        attached.append(kind)


def _body_text(part: Any, kind: str) -> str:
    """Return the text of a part: HTML as markdown, cards and flowed lines unfolded, all else as it is."""
    data = part.get_payload(decode=True)
    if InvalidBase64LengthDefect in map(type, part.defects):  # then it is not decoded
        letters = re.sub(rb"[^A-Za-z0-9+/]+", b"", data)
        data = b64decode(letters[: len(letters) // 4 * 4])
        write_note(f"the end of a text ({kind}){LEFT_OUT}its Base64 is cut off")
    is_html = kind == "text/html"
    text = decode(data, markup=is_html, declared=_charset(part)) if isinstance(data, bytes) else ""
    text = _card_text(text) if kind in _CARDS else text
    if str(part.get_param("format")).lower() == "flowed":  # a blank ends lines that go on
        glue = "" if str(part.get_param("delsp")).lower() == "yes" else " "
        text = re.sub(r"(?m)^(?!>|-- $)(.*) \n(?!>|-- $|\n)", rf"\1{glue}", text)
    return to_markdown(parse_html(text)) if is_html and text.strip() else text


def _card_text(text: str) -> str:
    """Return the lines of an appointment or address, unfolded, without pictures, alarms and changes of time zones."""
    lines = re.sub(r"\n[ \t]", "", text).split("\n")  # a blank begins a line that was folded
    text = "\n".join(line for line in lines if "ENCODING=B" not in line.partition(":")[0].upper())
    text = _HOUR.sub(r" \1:\2", _DAY.sub(r"\1-\2-\3", _NOT_SHOWN.sub("", text)))
    return text.replace("\\n", "\n").replace("\\,", ",").replace("\\;", ";")


def _best_version(part: Any, attached: list[str]) -> Iterator[str]:
    """Yield the plain version, or the HTML if that is longer and half of its words, or a table, are new; then cards."""
    plain, rich, cards = list[str](), list[str](), list[str]()
    for version in part.iter_parts():
        kind = version.get_content_type()
        with leave_out(f"a version of the message ({kind})"):
            if kind not in _OTHER_TEXTS:
                texts = plain if kind == "text/plain" else cards if kind in _CARDS else rich
                texts.extend(_texts(version, attached))
    words, plain_words = (_WORD.findall(_LINK.sub("", "\n".join(each))) for each in (rich, plain))
    lacking = {*words} - {*plain_words}
    is_fuller = len(words) > len(plain_words) and 2 * len(lacking) > len({*words})
    table_words = _WORD.findall("\n".join(re.findall(r"(?m)^\| .*", "\n".join(rich))))
    yield from rich if is_fuller or not lacking.isdisjoint(table_words) else plain
    yield from cards


def _header(message: Message, name: str) -> str:
    """Decode a header; bytes without a declared encoding are decoded like the body, or by a guess."""
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    try:
        data = str(raw).encode("utf-8", "surrogateescape")
        # in =?gb2312?B?...?= put the larger codec (gb18030) that such bytes are often really in
        text = _CHARSET.sub(lambda match: codec_of(match[0]), decode(data, declared=_charset(message)))
        while (joined := _WORD_GOES_ON.sub(_join_words, text)) != text:  # one match may hide the next
            text = joined
        return " ".join(str(policy.default.header_factory(name, text)).split())[:2000]
    # the library's parser of addresses fails on some
    except (ValueError, IndexError, AttributeError, Unreadable):
        return ""


def _join_words(match: re.Match[str]) -> str:
    """Write two encoded words of a header as one; Base64 may be padded at the end of each, or lack its padding."""
    start, _, coding, *pieces = match.groups()
    with suppress(ValueError):  # of damaged Base64, which stays as it is
        if coding in "bB":
            pieces = [b64encode(b"".join(b64decode(f"{piece}==") for piece in pieces)).decode("ascii")]
    return start + "".join(pieces)


def _charset(message: Any) -> str:
    """Return the first charset but ASCII that a letter or a part of it declares, else ""."""
    names = (str(part.get_content_charset() or "") for part in _own_parts(message))
    return next((name for name in names if name.removeprefix("us-") not in ("", "ascii")), "")


def _own_parts(message: Any) -> Iterator[Any]:
    """Yield a letter and its parts, without those of letters inside it."""
    yield message
    if message.is_multipart() and message.get_content_maintype() == "multipart":
        for part in message.get_payload():
            yield from _own_parts(part)
