"""Mail: every text of a message is read, whatever its parts and encodings."""

from __future__ import annotations

import base64
import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import ReadError
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.limits import ReadLimits


def text_of(reader: Reader, folder: Path, data: bytes, name: str = "a.eml") -> str:
    """Read a message."""
    (folder / name).write_bytes(data)
    return "\n----\n".join(document.page_content for document in reader.read(folder / name))


def message(**headers: str) -> EmailMessage:
    """A message without a body."""
    made = EmailMessage()
    for name, value in ({"From": "ann@example.org", "Subject": "The pump"} | headers).items():
        made[name] = value
    return made


def test_each_text_part_is_kept_in_its_place(tmp_path, reader):
    """Text, picture, text, as Apple's Mail writes them; a file that is attached is named."""
    mail = message()
    mail.set_content("Please look at the picture:")
    mail.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="p.png", disposition="inline")
    mail.add_attachment("The pump must be replaced before the twelfth of April.", disposition="inline")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="offer.pdf")
    text = text_of(reader, tmp_path, mail.as_bytes())
    assert text.index("look at the picture") < text.index("twelfth of April") < text.index("Attached: ")
    assert "p.png, offer.pdf" in text


@pytest.mark.parametrize(
    "plain",
    [
        "\n",
        " \t\n",
        "Your program cannot show HTML: https://mail.example.org/view/0123456789abcdef0123456789",
    ],
)
def test_a_blank_or_stub_text_does_not_hide_the_html(tmp_path, reader, plain):
    """The HTML version is read where the plain one is blank, or only says that there is one."""
    mail = message()
    mail.set_content(plain)
    mail.add_alternative(
        f"<p>The meeting moved to room 14.</p><p>{'Bring your papers. ' * 20}</p>", subtype="html"
    )
    assert "The meeting moved to room 14." in text_of(reader, tmp_path, mail.as_bytes())


def test_a_plain_version_that_says_it_all_is_read_once(tmp_path, reader):
    """The plain one of two versions of a text is read."""
    mail = message()
    mail.set_content("The meeting moved to room 14. Bring your papers.")
    mail.add_alternative("<p>The meeting moved to room 14. Bring <b>your</b> papers.</p>", subtype="html")
    assert text_of(reader, tmp_path, mail.as_bytes()).count("room 14") == 1


@pytest.mark.parametrize("disposition", ["inline", "attachment"])
def test_a_forwarded_message_is_read(tmp_path, reader, disposition):
    """With its own headers, below the message that it is in; also one in a forwarded one."""
    innermost = message(Subject="Deep", From="carl@example.org")
    innermost.set_content("The valve is blue.")
    inner = message(Subject="Offer", From="bert@example.org")
    inner.set_content("It costs 40 francs.")
    inner.add_attachment(innermost, disposition=disposition)
    mail = message()
    mail.set_content("See below.")
    mail.add_attachment(inner, disposition=disposition)
    text = text_of(reader, tmp_path, mail.as_bytes())
    places = [text.index(part) for part in ("See below.", "# Offer", "bert@", "40 francs", "# Deep", "blue")]
    assert places == sorted(places)


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "utf-8", "cp1251"])
def test_a_subject_without_declared_encoding_is_decoded(tmp_path, reader, encoding):
    """Raw bytes in headers: by the charset of the body, or by their look."""
    subject = "Насос запускается при сорока" if encoding == "cp1251" else "關於水泵啟動溫度的通知"
    subject = "关于水泵启动温度的通知" if encoding == "gb18030" else subject
    for header in (
        "",
        f"Content-Type: text/plain; charset={encoding}\n",
        "Content-Type: text/plain; charset=us-ascii\n",
    ):
        data = f"From: a@example.org\nSubject: {subject}\n{header}\n{subject}。\n".encode(encoding, "ignore")
        text = text_of(reader, tmp_path, data)
        assert text.startswith(f"# {subject}\n") and text.count(subject) == 2


def test_a_charset_that_is_too_small_is_widened(tmp_path, reader):
    """Declared as GB2312 and written in GBK, in the subject and in the body."""
    word = base64.b64encode("朱镕基的水泵".encode("gbk")).decode()
    head = f"From: a@example.org\nSubject: =?gb2312?B?{word}?=\nContent-Type: text/plain; charset=gb2312\n\n"
    assert text_of(reader, tmp_path, head.encode() + "镕基说：四十度。".encode("gbk")).count("镕基") == 2


def test_a_subject_that_is_cut_within_a_character_is_whole(tmp_path, reader):
    """Encoded words of a fixed number of bytes, as some programs fold them."""
    data = "关于水泵启动温度的通知和说明".encode("gbk")
    words = [base64.b64encode(data[place : place + 9]).decode() for place in range(0, len(data), 9)]
    subject = "\n ".join(f"=?gb2312?B?{word}?=" for word in words)
    text = text_of(reader, tmp_path, f"From: a@example.org\nSubject: {subject}\n\nx\n".encode())
    assert text.startswith("# 关于水泵启动温度的通知和说明\n")


def test_a_charset_in_the_html_itself_is_believed(tmp_path, reader):
    """It is found where the header of the part names none."""
    head = b"From: a@example.org\nSubject: x\nContent-Type: text/html\n\n"
    page = '<meta charset="koi8-r"><p>Да, бак.'.encode("koi8-r")
    assert "Да, бак." in text_of(reader, tmp_path, head + page)


def test_seven_bit_charsets_are_believed(tmp_path, reader):
    """ISO-2022-JP has no byte beyond ASCII that would show it."""
    head = b"From: a@example.org\nSubject: x\nContent-Type: text/plain; charset=iso-2022-jp\n\n"
    assert "ポンプは四十度" in text_of(reader, tmp_path, head + "ポンプは四十度で".encode("iso-2022-jp"))


def test_lines_that_begin_with_from_do_not_cut_a_letter(tmp_path, reader):
    """A letter of a mailbox begins at a line with sender, time and year before a header."""
    box = (
        b"From a@example.org Mon Mar  2 10:00:00 2026\nFrom: a@example.org\nSubject: one\n\nHello.\n\n"
        b"From here on the road is closed.\nNote: bring boots.\n\nFrom 10:30 in 2026 on\nit is open.\n\n"
        b">From the start it rained.\n\nFrom b@example.org Tue Mar  3 11:00:00 2026\nSubject: two\n\nBye.\n"
    )
    (first, second) = text_of(reader, tmp_path, box, "a.mbox").split("\n----\n")
    assert "road is closed" in first and "it is open" in first and "\nFrom the start it rained." in first
    assert "# two" in second and "Bye." in second


def test_a_letter_without_a_blank_line_before_it_is_one(tmp_path, reader):
    """Some programs write none; a line that goes on without end does not hold the reader."""
    first = b"From a@x Mon Mar  2 10:00:00 2026\nSubject: one\n\nHi.\n"
    box = first + b"From b@x Tue Mar  3 11:00:00 2026\nSubject: two\n\nHo."
    assert text_of(reader, tmp_path, box, "a.mbox") == "# one\n\nHi.\n----\n# two\n\nHo."
    with Reader(limits=ReadLimits(max_seconds=10)) as quick:
        text_of(quick, tmp_path, box + b"\n\nFrom " + b"1:11" * 100_000 + b"\nA: b", "b.mbox")


def test_letters_within_letters_do_not_hold_the_reader(tmp_path):
    """Each letter is looked through once."""
    heads = b"".join(b"From: a@x\nSubject: s%d\nContent-Type: message/rfc822\n\n" % n for n in range(400))
    with Reader(limits=ReadLimits(max_seconds=10)) as quick:
        text = text_of(quick, tmp_path, heads + b"From: a@x\nSubject: last\n\nBODY")
    assert text.endswith("BODY") and "# s399" in text


def _mixed(subtype: str, *parts: str) -> bytes:
    bodies = "".join(f"--b\nContent-Type: {part}\n" for part in parts)
    return f"From: a@x\nSubject: S\nContent-Type: multipart/{subtype}; boundary=b\n\n{bodies}--b--\n".encode()


_CALENDAR = "text/calendar\n\nBEGIN:VCALENDAR\nSUMMARY:Review\\, part 2\nLOCATION:RO\n OM 42\nEND:VCALENDAR"
_SIGNATURE = "application/pgp-signature\nContent-Disposition: attachment; filename=a.asc"


@pytest.mark.parametrize(
    ("subtype", "parts", "has"),
    [
        ("mixed", ["text/plain\n\none", _CALENDAR], ["one", "SUMMARY:Review, part 2\nLOCATION:ROOM 42\n"]),
        ("alternative", ["text/plain\n\none", _CALENDAR], ["one\n\nBEGIN:VCALENDAR\n"]),
        ("mixed", ["text/vcard\n\nPHOTO;ENCODING=b:AAAA\n BB\nFN:Ann"], ["S\n\nFrom: a@x\n\nFN:Ann"]),
        (
            "report",
            [
                "message/delivery-status\n\nReporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; b@y\nStatus: 5.1.1\n"
            ],
            ["Reporting-MTA: dns; mx", "Final-Recipient: rfc822; b@y\nStatus: 5.1.1"],
        ),
        (
            "alternative",
            [
                "text/plain\n\nPrices: below",
                "text/html\n\nPrices: below<table><tr><td>P<td>E<tr><td>P1<td>47</table>",
            ],
            ["Prices: below\n\n| P | E |", "| P1 | 47 |"],
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
def test_each_part_is_read_or_named(tmp_path, reader, subtype, parts, has):
    """Appointments, addresses, reports and tables are text; what is none is named by its kind, and noted."""
    with use_notes() as notes:
        text = text_of(reader, tmp_path, _mixed(subtype, *parts))
    assert not [each for each in has if each not in text]
    assert bool(notes.texts) == ("Attached" in has[0]) and "AAAA" not in text


def test_a_part_that_cannot_be_read_is_left_out_and_noted(tmp_path, reader):
    """An HTML part without any element; the rest of the letter is read."""
    mail = message()
    mail.set_content("See below.")
    mail.add_attachment("<!-- -->", subtype="html", disposition="inline")
    with use_notes() as notes:
        assert "See below." in text_of(reader, tmp_path, mail.as_bytes())
    assert [note for note in notes.texts if "left out" in note and "text/html" in note]


def test_what_is_no_letter_is_refused(tmp_path, reader):
    """A file without headers and a mailbox without a first line are refused."""
    with pytest.raises(ReadError, match="headers of a letter"):
        text_of(reader, tmp_path, b"no headers at all")
    with pytest.raises(ReadError, match="does not begin with a message"):
        text_of(reader, tmp_path, b"no mailbox", "a.mbox")


def test_a_letter_is_read_with_its_headers(tmp_path, reader):
    """Subject, sender and date go into text and metadata; HTML is read where there is no plain text."""
    mail = message(Subject="水泵的维修", From="Ann <ann@example.org>")
    mail.set_content("<p>请在周五之前<b>维修</b>水泵。</p><script>x()</script>", subtype="html")
    (tmp_path / "a.eml").write_bytes(mail.as_bytes())
    (found,) = reader.read(tmp_path / "a.eml")
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


def test_a_damaged_letter_is_read(tmp_path, reader):
    """An encoding that nobody knows is guessed."""
    data = b"Content-Type: text/plain; charset=wrong-8\nSubject: Pump\nDate: \xff\n\ncaf\xe9 \xff\xfe"
    assert text_of(reader, tmp_path, data).startswith("# Pump\n\n") and "caf" in text_of(
        reader, tmp_path, data
    )
