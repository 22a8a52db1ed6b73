"""Mail: every text of a message is read, whatever its parts and encodings."""

from __future__ import annotations

import base64
import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from rag_kit.concurrency.notes import use_notes
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.limits import ReadLimits


def letters(reader: Reader, folder: Path, data: bytes) -> list[str]:
    """Read a mailbox."""
    (folder / "a.mbox").write_bytes(data)
    return [document.page_content for document in reader.read(folder / "a.mbox")]


def message(**headers: str) -> EmailMessage:
    """A message without a body."""
    made = EmailMessage()
    for name, value in ({"From": "ann@example.org", "Subject": "The pump"} | headers).items():
        made[name] = value
    return made


def test_each_text_part_is_kept_in_its_place(text_of):
    """Text, picture, text, as Apple's Mail writes them; a file that is attached is named."""
    mail = message()
    mail.set_content("Please look at the picture:")
    mail.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="p.png", disposition="inline")
    mail.add_attachment("The pump must be replaced before the twelfth of April.", disposition="inline")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="offer.pdf")
    text = text_of("a.eml", mail.as_bytes())
    assert text.index("look at the picture") < text.index("twelfth of April") < text.index("Attached: ")
    assert "p.png, offer.pdf" in text


_STUB = "Your program cannot show HTML: https://mail.example.org/view/0123456789abcdef0123456789"


@pytest.mark.parametrize("plain", ["\n", " \t\n", _STUB, "The meeting moved to room 14. Bring your papers."])
def test_a_text_in_two_versions_is_read_once(text_of, plain):
    """The plain one; the HTML version where the plain one is blank, or only says that there is one."""
    mail = message()
    mail.set_content(plain)
    more = 20 if plain == _STUB else 1
    mail.add_alternative(
        f"<p>The meeting moved to room 14.</p><p>{'Bring your papers. ' * more}", subtype="html"
    )
    assert text_of("a.eml", mail.as_bytes()).count("The meeting moved to room 14.") == 1


@pytest.mark.parametrize("disposition", ["inline", "attachment"])
def test_a_forwarded_message_is_read(text_of, disposition):
    """With its own headers, below the message that it is in; also one in a forwarded one."""
    innermost = message(Subject="Deep", From="carl@example.org")
    innermost.set_content("The valve is blue.")
    inner = message(Subject="Offer", From="bert@example.org")
    inner.set_content("It costs 40 francs.")
    inner.add_attachment(innermost, disposition=disposition)
    mail = message()
    mail.set_content("See below.")
    mail.add_attachment(inner, disposition=disposition)
    text = text_of("a.eml", mail.as_bytes())
    places = [text.index(part) for part in ("See below.", "# Offer", "bert@", "40 francs", "# Deep", "blue")]
    assert places == sorted(places)


def test_a_forwarded_message_in_base64_is_read(text_of):
    """Against the rules some programs encode it like any other file."""
    head = b"Subject: x\nContent-Type: message/rfc822\n"
    inner = b"Content-Transfer-Encoding: base64\n\n" + base64.b64encode("Subject: 报价\n\n四十元。".encode())
    assert text_of("a.eml", head + inner) == "# x\n\n# 报价\n\n四十元。"
    assert text_of("a.eml", head + b"\n\nFee: 5\n\nx") == "# x\n\nFee: 5\n\nx"  # it has no headers


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "utf-8", "cp1251"])
def test_a_subject_without_declared_encoding_is_decoded(text_of, encoding):
    """Raw bytes in headers: by the charset of the body, or by their look."""
    subject = "Насос запускается при сорока" if encoding == "cp1251" else "關於水泵啟動溫度的通知"
    subject = "关于水泵启动温度的通知" if encoding == "gb18030" else subject
    for header in (
        "",
        f"Content-Type: text/plain; charset={encoding}\n",
        "Content-Type: text/plain; charset=us-ascii\n",
    ):
        data = f"From: a@example.org\nSubject: {subject}\n{header}\n{subject}。\n".encode(encoding, "ignore")
        text = text_of("a.eml", data)
        assert text.startswith(f"# {subject}\n") and text.count(subject) == 2


_GBK_SUBJECT = f"Subject: =?gb2312?B?{base64.b64encode('朱镕基的水泵'.encode('gbk')).decode()}?=\n"


def _cut_subject(charset: str, length: int) -> str:
    """A subject in encoded words of some bytes, as programs fold them; only of three and nine none is padded."""
    data = "关于水泵启动温度的通知和说明".encode(charset)
    words = (base64.b64encode(data[place : place + length]).decode() for place in range(0, len(data), length))
    return "Subject: " + "\n ".join(f"=?{charset}?B?{word}?=" for word in words) + "\n"


def test_a_short_subject_without_a_charset_has_that_of_the_text(text_of):
    """Bytes of a few Chinese characters may be well-formed UTF-8 of other letters."""
    head = "Subject: 停水通知\nContent-Type: text/plain; charset=gb2312\n\n"
    assert text_of("a.eml", (head + "三月五日停水。").encode("gbk")) == "# 停水通知\n\n三月五日停水。"


@pytest.mark.parametrize(
    ("head", "kind", "text", "encoding", "shown"),
    [
        (_GBK_SUBJECT, "plain; charset=gb2312", "镕基。", "gbk", "# 朱镕基的水泵\n\n镕基。"),
        (_cut_subject("gb2312", 9), "plain", "x", "ascii", "# 关于水泵启动温度的通知和说明\n\nx"),
        (_cut_subject("utf-8", 10), "plain", "x", "ascii", "# 关于水泵启动温度的通知和说明\n\nx"),
        ("Subject: x\n", "plain; format=Flowed", "a \nb\n> c \n> d", "ascii", "# x\n\na b\n> c \n> d"),
        ("Subject: x\n", "html", '<meta charset="koi8-r"><p>Да, бак.', "koi8-r", "# x\n\nДа, бак."),
        ("Subject: x\n", "plain; charset=iso-2022-jp", "ポンプは四", "iso-2022-jp", "# x\n\nポンプは四"),
        (
            "Subject: x\n",
            "plain; charset=wrong-8",
            "Die Übergabe erfolgt täglich um fünf Uhr.",
            "cp1252",
            "# x\n\nDie Übergabe erfolgt täglich um fünf Uhr.",
        ),
    ],
    ids=["too small", "cut in a character", "padded", "flowed", "in HTML", "of seven bits", "unknown"],
)
def test_charsets_are_read_as_they_are_meant(text_of, head, kind, text, encoding, shown):
    """Whatever the headers of a letter and of its subject declare."""
    assert text_of("a.eml", f"{head}Content-Type: text/{kind}\n\n".encode() + text.encode(encoding)) == shown


def test_lines_that_begin_with_from_do_not_cut_a_letter(tmp_path, reader):
    """A letter of a mailbox begins at a line with sender, time and year before a header."""
    box = (
        b"From a@example.org Mon Mar  2 10:00:00 2026\nFrom: a@example.org\nSubject: one\n\nHello.\n\n"
        b"From here on the road is closed.\nNote: bring boots.\n\nFrom 10:30 in 2026 on\nit is open.\n\n"
        b">From the start it rained.\n\nFrom b@example.org Tue Mar  3 11:00:00 2026\nSubject: two\n\nBye.\n"
    )
    (first, second) = letters(reader, tmp_path, box)
    assert "road is closed" in first and "it is open" in first and "\nFrom the start it rained." in first
    assert "# two" in second and "Bye." in second


def test_a_letter_without_a_blank_line_before_it_is_one(tmp_path, reader):
    """Some programs write none; a line that goes on without end does not hold the reader."""
    first = b"From a@x Mon Mar  2 10:00:00 2026\nSubject: one\n\nHi.\n"
    box = first + b"From b@x Tue Mar  3 11:00:00 2026\nSubject: two\n\nHo."
    assert letters(reader, tmp_path, box) == ["# one\n\nHi.", "# two\n\nHo."]
    with Reader(limits=ReadLimits(max_seconds=10)) as quick:
        letters(quick, tmp_path, box + b"\n\nFrom " + b"1:11" * 100_000 + b"\nA: b")


def test_letters_within_letters_do_not_hold_the_reader(tmp_path):
    """Each letter is looked through once."""
    heads = b"".join(b"From: a@x\nSubject: s%d\nContent-Type: message/rfc822\n\n" % n for n in range(400))
    (tmp_path / "a.eml").write_bytes(heads + b"From: a@x\nSubject: last\n\nBODY")
    with Reader(limits=ReadLimits(max_seconds=10)) as quick:
        (letter,) = quick.read(tmp_path / "a.eml")
    assert letter.page_content.endswith("BODY") and "# s399" in letter.page_content


def _mixed(subtype: str, *parts: str) -> bytes:
    bodies = "".join(f"--b\nContent-Type: {part}\n" for part in parts)
    return f"From: a@x\nSubject: S\nContent-Type: multipart/{subtype}; boundary=b\n\n{bodies}--b--\n".encode()


_ZONE = "BEGIN:STANDARD\nDTSTART:16010101T000000\nEND:STANDARD\n"
_TIMES = "DTSTART;TZID=Europe/Berlin:20260312T140000\nDTEND:20260312T143000Z\nDTSTART;VALUE=DATE:20260313\n"
_CALENDAR = "text/calendar\n\nBEGIN:VCALENDAR\nSUMMARY:Review\\, part 2\nLOCATION:RO\n OM 42\nEND:VCALENDAR"
_SIGNATURE = "application/pgp-signature\nContent-Disposition: attachment; filename=a.asc"
_SHOWN = ["S\n\nFrom: a@x\n\nDTSTART;TZID=Europe/Berlin:2026-03-12 14:00\nDTEND:2026-03-12 14:30Z\n"]
_PLAIN, _HTML = (f"text/{kind}; charset=utf-8\n\n" for kind in ("plain", "html"))
_FAILED = "Final-Recipient: rfc822; b@y\nStatus: 5.1.1"
_PRICES = "<table><tr><td>P<td>E<tr><td>P1<td>47</table>"


@pytest.mark.parametrize(
    ("subtype", "parts", "has"),
    [
        ("mixed", ["text/plain\n\none", _CALENDAR], ["one", "SUMMARY:Review, part 2\nLOCATION:ROOM 42\n"]),
        ("alternative", ["text/plain\n\none", _CALENDAR], ["one\n\nBEGIN:VCALENDAR\n"]),
        ("mixed", [f"text/calendar\n\n{_ZONE}{_TIMES}"], [*_SHOWN, "2026-03-13"]),
        (
            "alternative",
            [f"{_PLAIN}您的程序不能显示。", f"{_HTML}<p>请在六月五日前付七十元。"],
            ["From: a@x\n\n请在六月五日前付七十元。"],
        ),
        (
            "alternative",
            [f"{_PLAIN}Pay 70 euros.", f"{_HTML}See<img alt=Poster>"],
            ["From: a@x\n\nPay 70 euros."],
        ),
        (
            "alternative",
            [f"{_PLAIN}泵在40度时启动。", f"{_HTML}<p>泵在40度时启动。<p>仅供阅读"],
            ["a@x\n\n泵在40度时启动。"],
        ),
        ("mixed", ["text/vcard\n\nPHOTO;ENCODING=b:AAAA\n BB\nFN:Ann"], ["S\n\nFrom: a@x\n\nFN:Ann"]),
        (
            "report",
            [f"message/delivery-status\n\nReporting-MTA: mx\n\n{_FAILED}\n"],
            ["Reporting-MTA: mx", _FAILED],
        ),
        (
            "alternative",
            [f"{_PLAIN}Prices: below", f"{_HTML}Prices: below{_PRICES}"],
            ["below\n\n| P | E |", "| P1 | 47 |"],
        ),
        (
            "mixed",
            ["text/rtf\n\n{x}", "application/json\n\n{}", "text/plain\nContent-Disposition: attachment\n\nx"],
            ["Attached: text/rtf, application/json, text/plain"],
        ),
        ("mixed", ["message/partial; id=x\n\nSubject: part 2\n\nthe rest"], ["Subject: part 2\n\nthe rest"]),
        ("mixed", ["message/global-delivery-status\n\nStatus: 5.1.1\n"], ["Status: 5.1.1"]),
        ("signed", ["text/plain\n\none", f"{_SIGNATURE}\n\nxx"], ["one"]),
        ("mixed", ["text/plain\n\none", f"{_SIGNATURE}\n\nxx"], ["Attached: a.asc"]),
        (
            "encrypted",
            ["application/pgp-encrypted\n\nVersion: 1", "application/octet-stream\n\nxx"],
            ["Attached: application/pgp-encrypted, application/octet-stream"],
        ),
    ],
)
def test_each_part_is_read_or_named(text_of, subtype, parts, has):
    """Appointments, addresses, reports and tables are text; what is none is named by its kind, and noted."""
    with use_notes() as notes:
        text = text_of("a.eml", _mixed(subtype, *parts))
    assert not [each for each in has if each not in text]
    assert bool(notes.texts) == ("Attached" in has[0]) and "AAAA" not in text


def test_a_part_that_cannot_be_read_is_left_out_and_noted(text_of):
    """An HTML part without any element; the rest of the letter is read."""
    mail = message()
    mail.set_content("See below.")
    mail.add_attachment("<!-- -->", subtype="html", disposition="inline")
    with use_notes() as notes:
        assert "See below." in text_of("a.eml", mail.as_bytes())
    assert [note for note in notes.texts if "left out" in note and "text/html" in note]


def test_a_text_in_base64_that_is_cut_off_is_read_and_noted(text_of):
    """Up to its last whole letters, also behind the mark with which some programs begin a file."""
    head = b"\xef\xbb\xbfSubject: S\nContent-Transfer-Encoding: base64\n\n"
    with use_notes() as notes:
        assert text_of("a.eml", head + base64.b64encode(b"The pump starts.")[:-3]) == "# S\n\nThe pump starts"
    assert notes.texts == ["the end of a text (text/plain) left out: its Base64 is cut off"]


def test_a_letter_is_read_with_its_headers(documents_of):
    """Subject, sender and date go into text and metadata; HTML is read where there is no plain text."""
    mail = message(Subject="水泵的维修", From="Ann <ann@example.org>")
    mail.set_content("<p>请在周五之前<b>维修</b>水泵。</p><script>x()</script>", subtype="html")
    (found,) = documents_of("a.eml", mail.as_bytes())
    assert found.page_content == "# 水泵的维修\n\nFrom: Ann <ann@example.org>\n\n请在周五之前维修水泵。"
    assert (found.metadata["title"], found.metadata["from"]) == ("水泵的维修", "Ann <ann@example.org>")


def test_a_mailbox_is_read_letter_by_letter(tmp_path, reader):
    """As the standard library writes it: a line that begins with From inside a letter ends none."""
    box = mailbox.mbox(tmp_path / "a.mbox")
    for number in range(3):
        mail = message(Date="Mon, 05 Jan 2026 10:00:00 +0100")
        mail.set_content(f"The pump {number}.\n\nFrom here on it is quiet.\n")
        box.add(mail)
    box.close()
    found = reader.read(tmp_path / "a.mbox")
    assert [doc.metadata["record"] for doc in found] == [1, 2, 3]
    assert all("\nFrom here on" in doc.page_content for doc in found)
