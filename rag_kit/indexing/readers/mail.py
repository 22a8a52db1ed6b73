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
from itertools import islice
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.encodings import codec_of, decode
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Scalar, Unreadable, leave_out

# "From ann@example.org Mon Mar  2 10:00:00 2026": a time of day, a year, and a header on the next line; a line of text
# that begins with "From " has not all of these
_FROM = re.compile(rb"^From ([^\n]*)\n(?=[\x21-\x39\x3b-\x7e]+:|>From )", re.M)
_TIME, _YEAR = re.compile(rb"\d:\d\d"), re.compile(rb"\d{4}")  # apart, for a long line takes linear time so
_DATED = re.compile(rb"\S+ +[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d")  # as programs write it
_FIRST_FROM = re.compile(rb"\AFrom [^\n]*\n")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)
_PARTS = 20  # of a letter that are asked for its charset; letters may hold many others
_HEADERS = ("From", "To", "Cc", "Date")
_CHARSET = re.compile(r"(?<==\?)[\w.:-]+(?=(?:\*[\w-]*)?\?[bqBQ]\?)")
# styles, and what another version says in a form that is read
_SKIPPED = frozenset(f"text/{name}" for name in ("css", "enriched", "rtf", "watch-html", "x-amp-html"))
_LETTERS = ("message/rfc822", "message/global")  # forwarded ones
_CARDS = ("text/calendar", "text/vcard", "text/x-vcard")  # appointments and addresses, as lines of NAME:value
# "=?utf-8?B?5L2g?= =?utf-8?B?5aW9?=": two encoded words of a header, cut perhaps in the middle of a character
_TWO_WORDS = re.compile(r"(=\?([\w.:-]+)\?([bBqQ])\?)([^?\s]*)\?=\s+=\?\2\?\3\?([^?\s]*)")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_LINK = re.compile(r"://\S+")
# what a calendar does not show: alarms, and when a time zone changes
_NOT_SHOWN = re.compile(r"(?m)^BEGIN:(STANDARD|DAYLIGHT|VALARM)\n(?:(?!BEGIN:|END:).*\n)*END:\1\n?")
_DAY = re.compile(r"(?m)^(DT(?:START|END)\b[^:\n]*:\d{4})(\d\d)(\d\d)")  # DTSTART:20260302
_HOUR = re.compile(r"(?m)(?<=-\d\d)T(\d\d)(\d\d)\d\d(?=Z?$)")  # T093000Z behind such a day
_GOES_ON = re.compile(r"(?m)^(?!>|-- $)(.*) \n(?!>|-- $|\n)")  # a flowed line; no quotation, no signature
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
    others = (match for match in _FROM.finditer(data) if match.start() and _begins_letter(match, data))
    from_lines = [first, *others]
    ends = [*(line.start() for line in from_lines[1:]), len(data)]
    for number, (from_line, end) in enumerate(zip(from_lines, ends, strict=True), 1):
        with leave_out(f"message {number}"):
            letter = _QUOTED_FROM.sub(rb"\1", data[from_line.end() : end])  # ">From " is written for "From "
            part = _letter_part(_PARSER.parsebytes(letter))
            part.metadata["record"] = number
            yield part


def _begins_letter(match: re.Match[bytes], data: bytes) -> bool:
    """Tell whether a "From " line begins a letter: it has a time and a year, and a blank line before or a full date."""
    time = _TIME.search(match[1])
    is_below_blank = data.endswith((b"\n\n", b"\n\r\n"), 0, match.start())
    is_sure = is_below_blank or _DATED.match(match[1])
    return bool(is_sure and time and _YEAR.search(match[1], time.end()))


def _letter_part(message: EmailMessage) -> Part:
    headers = _headers(message)
    fields = {"title": "Subject", "from": "From", "to": "To", "date": "Date"}
    metadata: dict[str, Scalar] = {key: headers[name] for key, name in fields.items() if name in headers}
    return Part(_letter_text(message, headers), metadata)


def _headers(message: Message) -> dict[str, str]:
    """Return the decoded headers of a letter by name, without those that are empty."""
    return {name: value for name in ("Subject", *_HEADERS) if (value := _header(message, name))}


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
    is_attached = part.get_content_disposition() == "attachment"
    if kind == "multipart/alternative" and has_parts:
        yield from _best_version(part, attached)
    elif has_parts and (kind in _LETTERS or kind.startswith("multipart/")):
        for inner in part.get_payload():
            inner_kind = inner.get_content_type()
            if kind == "multipart/signed" and inner_kind.endswith("-signature"):
                continue
            with leave_out(f"a part of the message ({inner_kind})"):
                if kind in _LETTERS:
                    yield _forwarded_text(inner, part)
                else:
                    yield from list(_texts(inner, attached))  # all of it, or nothing
    elif has_parts:  # a report on whether a letter was delivered or read, or a piece of one
        for inner in part.get_payload():
            yield "\n".join(f"{name}: {' '.join(str(value).split())}" for name, value in inner.items())
            yield from _texts(inner, attached)
    elif kind.startswith(("text/", "multipart/")) and not is_attached and kind not in _SKIPPED:
        yield _body_text(part, kind)  # also of a multipart without boundary, which is one text
    elif name := part.get_filename():
        attached.append(name)
    elif not part.get("Content-ID"):  # a part with one is a picture in the HTML
        attached.append(kind)


def _forwarded_text(letter: Any, part: Any) -> str:
    """Write a letter that a part of a message holds; before it is decoded it has no headers."""
    coding = str(part["Content-Transfer-Encoding"]).strip().lower()
    if coding in ("base64", "quoted-printable") and not letter.keys():  # encoded as files are
        letter["Content-Transfer-Encoding"] = coding
        letter = _PARSER.parsebytes(letter.get_payload(decode=True))
    return _letter_text(letter, _headers(letter))


def _body_text(part: Any, kind: str) -> str:
    """Return the text of a part: HTML as markdown, cards and flowed lines unfolded, all else as it is."""
    data = part.get_payload(decode=True)
    if InvalidBase64LengthDefect in map(type, part.defects):  # then it is not decoded
        digits = re.sub(rb"[^A-Za-z0-9+/]+", b"", data)
        data = b64decode(digits[: len(digits) // 4 * 4])
        write_note(f"the end of a text ({kind}){LEFT_OUT}its Base64 is cut off")
    is_html = kind == "text/html"
    text = decode(data, markup=is_html, declared=_charset(part)) if isinstance(data, bytes) else ""
    if kind in _CARDS:
        text = _card_text(text)
    if str(part.get_param("format")).lower() == "flowed":  # lines that end with a blank go on in the next
        keeps_blank = str(part.get_param("delsp")).lower() != "yes"
        text = _GOES_ON.sub(r"\1 " if keeps_blank else r"\1", text)
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
    texts_by_kind = {"text/plain": plain, **dict.fromkeys(_CARDS, cards)}
    for version in part.iter_parts():
        kind = version.get_content_type()
        with leave_out(f"a version of the message ({kind})"):
            if kind not in _SKIPPED:
                texts_by_kind.get(kind, rich).extend(_texts(version, attached))
    plain_words, rich_words = (_WORD.findall(_LINK.sub("", "\n".join(texts))) for texts in (plain, rich))
    new_words = set(rich_words) - set(plain_words)
    is_longer = len(rich_words) > len(plain_words) and 2 * len(new_words) > len(set(rich_words))
    table_rows = re.findall(r"(?m)^\| .*", "\n".join(rich))
    has_new_table = not new_words.isdisjoint(_WORD.findall("\n".join(table_rows)))
    yield from rich if is_longer or has_new_table else plain
    yield from cards


def _header(message: Message, name: str) -> str:
    """Decode a header; bytes without a declared encoding are decoded like the body, or by a guess."""
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    try:
        data = str(raw).encode("utf-8", "surrogateescape")
        # in =?gb2312?B?...?= put the larger codec (gb18030) that such bytes are often really in
        text = _CHARSET.sub(lambda match: codec_of(match[0]), decode(data, declared=_charset(message)))
        while _TWO_WORDS.search(text):  # again, since the second word of a pair may be the first of the next
            text = _TWO_WORDS.sub(_join_words, text)
        return " ".join(str(policy.default.header_factory(name, text)).split())[:2000]
    # the library's parser of addresses fails on some
    except (ValueError, IndexError, AttributeError, Unreadable):
        return ""


def _join_words(match: re.Match[str]) -> str:
    """Write two encoded words of a header as one, without the end of the second (``?=``), which follows the match."""
    start, _, coding, first, second = match.groups()
    if coding in "bB":  # Base64 may be padded at the end of each word, or lack its padding
        with suppress(ValueError):  # of damaged Base64, which stays as it is
            return start + b64encode(b64decode(f"{first}==") + b64decode(f"{second}==")).decode("ascii")
    return start + first + second


def _charset(message: Any) -> str:
    """Return the first charset but ASCII that a letter or a part of it declares, else ""."""
    names = (str(part.get_content_charset() or "") for part in islice(message.walk(), _PARTS))
    return next((name for name in names if name.removeprefix("us-") not in ("", "ascii")), "")
