"""Pictures of documents: kept beside the index with a passage each, described by a model that sees, and removed."""

from __future__ import annotations

import base64
import io
import os
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pptx import Presentation
from support import documents as make

from rag_kit.cli.main import main
from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.readers import figures, pdf
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import Context
from rag_kit.indexing.readers.pdf_lines import Line, Sheet
from rag_kit.indexing.readers.process import convert
from rag_kit.prompts import load_prompt

pytest.importorskip("rapidocr", reason="rapidocr, of the extra `ocr`, is not installed")
from PIL import Image, ImageDraw, ImageFont


def drawing(words: str = "Pump KX-4471", shade: int = 255) -> bytes:
    """A PNG of a few words in a frame."""
    image = Image.new("RGB", (460, 160), (shade, shade, 255))
    draw = ImageDraw.Draw(image)
    draw.rectangle((5, 5, 455, 155), outline="black", width=3)
    draw.text((60, 55), words, fill="black", font=ImageFont.load_default(44))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


class Seeing(BaseChatModel):
    """A chat model that answers with what it was given of a picture."""

    asked: list[Any] = []
    broken: bool = False

    @property
    def _llm_type(self) -> str:
        return "seeing"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self.broken:
            raise ConnectionError("nobody answers")
        text, picture = messages[-1].content
        self.asked.append((text["text"], picture))
        size = Image.open(io.BytesIO(base64.b64decode(picture["base64"]))).size
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(f"A blue plate of {size[0]} pixels."))]
        )


def write_docx(path: Path) -> None:
    """A caption below, a description, the same picture again, and a broken one."""
    drawing_xml = (
        '<w:p><w:r><w:drawing><wp:inline xmlns:wp="urn:wp"><wp:docPr id="1" name="p" descr="{}"/>'
        '<a:blip xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="{}" r:embed="{}"/>'
        "</wp:inline></w:drawing></w:r></w:p>"
    )
    caption = '<w:p><w:pPr><w:pStyle w:val="Caption"/></w:pPr><w:r><w:t>Figure 1: The plate</w:t></w:r></w:p>'
    body = (
        "<w:p><w:r><w:t>Another manual.</w:t></w:r></w:p>"
        + drawing_xml.format("", make.R, "p1") + caption
        + drawing_xml.format("the plate again", make.R, "p1")
        + drawing_xml.format("a broken one", make.R, "p2")
    )  # fmt: skip
    relations = "".join(
        f'<Relationship Id="{name}" Type="{make.R}/image" Target="media/{name}.png"/>'
        for name in ("p1", "p2")
    )
    pictures = {"word/media/p1.png": drawing(), "word/media/p2.png": b"\x89PNG broken"}
    path.write_bytes(make.docx(body, extra=pictures, relations=relations))


def write_pptx(path: Path) -> None:
    """A slide with a picture that has a description."""
    import pptx

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "The plate"
    picture = slide.shapes.add_picture(io.BytesIO(drawing()), 0, 0)
    picture._element.nvPicPr.cNvPr.set("descr", "Figure 1: The plate")
    deck.save(str(path))


def write_html(path: Path) -> None:
    """A picture beside the page, one inside of it, one elsewhere, one on another machine."""
    (path.parent / "page files").mkdir()
    (path.parent / "page files" / "plate.png").write_bytes(drawing())
    (path.parent.parent / "secret.png").write_bytes(drawing("SECRET"))
    inside = base64.b64encode(drawing("Valve 7", 200)).decode()
    path.write_text(
        '<h1>Manual</h1><p>The manual.</p><figure><img src="page%20files/plate.png"><figcaption>Figure 1: The plate'
        f'</figcaption></figure><img src="data:image/png;base64,{inside}" alt="The valve">'
        '<img src="../secret.png"><img src="https://example.org/x.png">'
    )


def write_epub(path: Path) -> None:
    """A chapter with a figure."""
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "META-INF/container.xml",
            '<container><rootfiles><rootfile full-path="OPS/a.opf"/></rootfiles></container>',
        )
        book.writestr("OPS/a.opf", '<package><metadata><title>Manual</title></metadata><manifest>'
                      '<item id="c" href="text/c.xhtml"/>'
                      '</manifest><spine><itemref idref="c"/></spine></package>')  # fmt: skip
        book.writestr("OPS/text/c.xhtml", '<html><body><p>The manual.</p><figure><img src="../plate.png"/><figcaption>'
                      "Figure 1: The plate</figcaption></figure></body></html>")  # fmt: skip
        book.writestr("OPS/plate.png", drawing())


def write_pdf(path: Path) -> None:
    """A page with text, a picture, and its caption below."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), pagesize=(595, 842))
    canvas.setFont("Helvetica", 12)
    canvas.drawString(72, 780, "The manual.")
    canvas.drawImage(ImageReader(io.BytesIO(drawing())), 72, 500, 230, 80)
    canvas.drawString(72, 484, "Figure 1: The plate")
    canvas.save()


def passages(index: Path) -> list[Document]:
    """The passages of pictures."""
    with DocumentIndex.open(index) as opened:
        return [one for one in opened.get(opened.ids()) if "picture" in one.metadata]


def kept(index: Path) -> list[str]:
    """Names of the kept pictures, below the folder of the index."""
    return sorted(path.relative_to(index).as_posix() for path in (index / "pictures").glob("*"))


@pytest.mark.parametrize("write", [write_docx, write_pptx, write_html, write_epub, write_pdf])
def test_pictures_of_documents_are_passages(tmp_path, write):
    """Caption and recognised text are the passage; the picture is beside the index, for its owner alone."""
    path = tmp_path / "docs" / f"manual.{write.__name__.removeprefix('write_')}"
    path.parent.mkdir()
    write(path)
    report = ingest(path, tmp_path / "index", options=IngestOptions(pictures=True))
    found = passages(tmp_path / "index")
    (plate,) = [one for one in found if "KX-4471" in one.page_content]
    assert "Figure 1: The plate" in plate.page_content
    assert plate.metadata["source"] == path.name and plate.metadata["picture"] in kept(tmp_path / "index")
    file = tmp_path / "index" / plate.metadata["picture"]
    assert Image.open(file).size == (460, 160) and file.stat().st_mode & 0o777 == 0o600
    assert not any("SECRET" in one.page_content for one in found)
    assert f"pictures kept: {path.name}: {len(found)}" in report.notes
    remarks = " ".join(note for _, note in report.remarks)
    if write is write_docx:
        assert "picture 3 (word/media/p2.png) left out" in remarks and len(found) == 1
    if write is write_html:
        assert "secret.png) left out: it lies outside" in remarks and len(found) == 2
    plain = ingest(path, tmp_path / "plain")
    assert plain.added == 1 and not (tmp_path / "plain" / "pictures").exists()


def test_a_model_that_sees_describes_each_picture_once(tmp_path):
    """The description is part of the passage and is kept; a failure gives a note, and the next ingest asks again."""
    (tmp_path / "docs").mkdir()
    write_pdf(tmp_path / "docs" / "a.pdf")
    model = Seeing(broken=True)
    options = IngestOptions(pictures=True, vision=model)
    report = ingest(tmp_path / "docs", tmp_path / "index", options=options)
    assert report.added == 1 and any("description of pictures/" in note for _, note in report.remarks)
    model.broken = False
    assert ingest(tmp_path / "docs", tmp_path / "index", options=options).updated == 1
    (passage,) = passages(tmp_path / "index")
    assert "KX-4471" in passage.page_content and "A blue plate of 460 pixels." in passage.page_content
    (text, picture), = model.asked  # fmt: skip
    assert "Figure 1: The plate" in text and picture["mime_type"] == "image/png"
    os.utime(tmp_path / "docs" / "a.pdf", (1, 1))
    write_docx(tmp_path / "docs" / "b.docx")
    assert ingest(tmp_path / "docs", tmp_path / "index", options=options).added == 1
    paid = len(model.asked)  # drawn from a PDF, the picture may be another
    write_pptx(tmp_path / "docs" / "c.pptx")
    assert ingest(tmp_path / "docs", tmp_path / "index", options=options).added == 1
    assert len(model.asked) == paid <= 2  # the same picture in a document of another title
    assert all("A blue plate of 460 pixels." in one.page_content for one in passages(tmp_path / "index"))
    with pytest.raises(InvalidInputError, match=r"described by.*--vision-model"):
        ingest(tmp_path / "docs", tmp_path / "index")


def test_a_description_has_the_limit_and_the_name_of_its_prompt(tmp_path):
    """The model is asked for no more tokens than the prompt's file says, and traces show which prompt it was."""
    seen = []

    class Limited(Seeing):
        max_tokens: int | None = None

        def _generate(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
        ) -> ChatResult:
            seen.append((self.max_tokens, run_manager.metadata))
            return super()._generate(messages, stop, **kwargs)

    (tmp_path / "docs").mkdir()
    write_pdf(tmp_path / "docs" / "a.pdf")
    options = IngestOptions(pictures=True, vision=Limited())
    ingest(tmp_path / "docs", tmp_path / "index", options=options)
    ((limit, metadata),) = seen
    assert limit == load_prompt("describe_picture").max_tokens == 1024
    assert (metadata["prompt_name"], metadata["prompt_language"]) == ("describe_picture", "en")


def test_pictures_leave_with_their_last_document(tmp_path):
    """Two documents share one; what a killed run left goes too."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    write_pdf(docs / "a.pdf")
    write_docx(docs / "b.docx")
    ingest(docs, index, options=IngestOptions(pictures=True))
    assert len(passages(index)) == 2
    names = kept(index)
    (index / "pictures" / ".picture-abc.tmp").write_bytes(b"half")
    (docs / "a.pdf").unlink()
    ingest(docs, index, prune=True)
    assert len(kept(index)) == 1 and set(kept(index)) <= set(names)
    with DocumentIndex.open(index, mode="w") as opened:
        opened.delete_sources(list(opened.sources()))
    assert kept(index) == []


def test_a_dry_run_keeps_no_picture_and_the_command_has_the_options(tmp_path, capsys):
    """`--pictures` is remembered by the index, `--no-pictures` reads the files again without them."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    write_pdf(docs / "a.pdf")
    command = ["ingest", str(docs), "--index", str(index), "--embedding-model", "none", "--quiet"]
    assert main([*command, "--pictures", "--dry-run"]) == 0 and not (index / "pictures").exists()
    assert main([*command, "--pictures"]) == 0 and len(kept(index)) == 1
    assert main(["retrieve", "KX-4471", "--index", str(index), "--embedding-model", "none"]) == 0
    assert kept(index)[0] in capsys.readouterr().out
    assert main([*command, "--no-pictures"]) == 0
    assert kept(index) == [] and passages(index) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pictures": "yes"}, "True or False"),
        ({"vision": Seeing()}, "pictures=True"),
        ({"pictures": True, "vision": 3}, "chat model"),
        ({"pictures": True, "workers": 2}, "one process"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path, options, message):
    """With what to do."""
    (tmp_path / "a.txt").write_text("The manual.")
    with pytest.raises(InvalidInputError, match=message):
        ingest(tmp_path / "a.txt", tmp_path / "index", options=IngestOptions(**options))


def icon() -> bytes:
    """A PNG of 16 pixels."""
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16)).save(buffer, "PNG")
    return buffer.getvalue()


def write_broken(path: Path) -> None:
    """A page with an icon, damaged data, and a picture of many pixels."""
    huge = bytearray(drawing())
    huge[16:24] = (9_000).to_bytes(4, "big") * 2  # width and height
    huge[29:33] = zlib.crc32(bytes(huge[12:29])).to_bytes(4, "big")
    sources = [base64.b64encode(data).decode() for data in (bytes(huge), icon())]
    images = "".join(f'<img src="data:image/png;base64,{source}">' for source in (*sources, "AAA", "AAAA"))
    path.write_text(f"<p>The manual.</p>{images}")


def test_pictures_have_bounds_and_the_text_is_read_all_the_same(tmp_path):
    """On pixels; what is left out is named, icons by their number."""
    write_broken(tmp_path / "a.html")
    report = ingest(tmp_path / "a.html", tmp_path / "index", options=IngestOptions(pictures=True))
    remarks = [note for _, note in report.remarks]
    assert report.added == 1 and passages(tmp_path / "index") == []
    assert "picture 1" in remarks[0] and "9000 by 9000 pixels" in remarks[0]
    assert "picture 3" in remarks[1] and "data are damaged" in remarks[1]
    assert remarks[-1].startswith("1 picture left out: smaller than 48 pixels")
    assert not any("picture 2 " in note for note in remarks)


def test_pictures_of_several_sizes_are_read_and_those_elsewhere_counted(tmp_path, monkeypatch):
    """The first address of ``srcset`` counts where ``src`` is not there."""
    monkeypatch.setattr(figures, "picture_text", lambda image: "words")
    (tmp_path / "a.png").write_bytes(drawing())
    path = tmp_path / "a.html"
    path.write_text(
        '<p>x</p><img srcset="a.png 1x, b.png 2x"><img srcset="//x.org/c.png 1x"><img src="https://x.org/d">'
    )
    with use_notes() as notes:
        parts = list(convert(path, "html", Context(ReadLimits(), pictures=True, folder=str(tmp_path))))
    assert [part.text for part in parts if part.picture] == ["words"]
    assert notes.texts == ["2 pictures left out: on other machines"]


def write_pptx(path: Path) -> None:
    """A slide with a picture."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Another manual."
    slide.shapes.add_picture(io.BytesIO(drawing()), 0, 0)
    deck.save(str(path))


@pytest.mark.parametrize(
    ("kind", "write", "count"), [("docx", write_docx, "2 pictures"), ("pptx", write_pptx, "1 picture")]
)
@pytest.mark.parametrize("lost", ["part", "relationship"])
def test_pictures_that_are_not_in_the_file_are_counted(tmp_path, kind, write, count, lost):
    """The part that they lie in is missing, or they name none; the text is read."""
    write(tmp_path / "whole")
    relation = rb'<Relationship [^>]*media/\w*1\.png"/>'

    def lose(name: str, part: bytes) -> bytes | None:
        if lost == "part":
            return None if name.endswith("1.png") else part
        return re.sub(relation, b"", part) if name.endswith(".xml.rels") else part

    path = make.put(tmp_path, "a", make.edited((tmp_path / "whole").read_bytes(), lose))
    with use_notes() as notes:
        text, *others = convert(path, kind, Context(ReadLimits(), pictures=True))
    assert "Another manual." in text.text and not others
    assert notes.texts[-1] == f"{count} left out: not in the file"
    assert "0x" not in notes.texts[0]  # as in "<_io.BytesIO object at 0x7f>"


@pytest.mark.parametrize("recognised", [False, True])
def test_a_pdf_page_without_text_keeps_its_pictures(tmp_path, monkeypatch, recognised):
    """Also one that covers it, but where the page was recognised: then it is the page itself."""
    monkeypatch.setattr(figures, "picture_text", lambda image: "words")
    sheet = Sheet([Line("words", 10, 60, 700, 700, 12, 0.8)], []) if recognised else None
    monkeypatch.setattr(pdf, "recognise_page", lambda page: sheet)
    Image.open(io.BytesIO(drawing())).save(tmp_path / "a.pdf")
    context = Context(ReadLimits(), ocr=True, pictures=True)
    parts = list(convert(tmp_path / "a.pdf", "pdf", context))
    assert [(part.text, bool(part.picture)) for part in parts] == [("words", not recognised)]


@pytest.mark.parametrize(("bound", "full"), [({"_MAX_COUNT": 2}, 6), ({"_MAX_TRIED": 3}, 4)])
def test_icons_and_repeated_pictures_use_up_none_of_those_that_are_kept(monkeypatch, bound, full):
    """But they are not tried for ever; one note says where the bound is. A picture is kept where OCR fails."""
    monkeypatch.setattr(figures, "picture_text", lambda image: 1 / 0)
    for name, value in bound.items():
        monkeypatch.setattr(figures, name, value)
    several = figures.Figures(Context(ReadLimits(), pictures=True))
    given = [icon(), drawing("A"), drawing("A"), icon(), drawing("B"), drawing("C"), drawing("D")]
    with use_notes() as notes:
        parts = [
            part.text
            for n, data in enumerate(given, 1)
            for part in several.parts(f"picture {n}", lambda data=data: data, f"{n}")
        ]
    assert parts == [str(n) for n in (2, 5) if n < full]
    left_out = [note.partition(" left out")[0] for note in notes.texts]
    assert left_out == [*(f"text in picture {n}" for n in parts), f"picture {full} and later ones"]


def test_a_field_of_the_same_name_is_left_alone(tmp_path):
    """A reader of the user's that does not name a kept picture works as before."""
    (tmp_path / "a.eml").write_text("x")
    (tmp_path / "secret.txt").write_text("secret")
    reader = {"*.eml": lambda path: Document("The manual.", metadata={"picture": "../secret.txt"})}
    model = Seeing()
    options = IngestOptions(pictures=True, vision=model, readers=reader)
    assert ingest(tmp_path / "a.eml", tmp_path / "index", options=options).added == 1
    assert model.asked == []
    (passage,) = passages(tmp_path / "index")
    assert passage.page_content == "The manual."


@pytest.mark.parametrize("link", [False, True])
def test_files_of_a_user_in_a_folder_of_that_name_stay(tmp_path, link):
    """A folder with own files in ``pictures`` is no new index; files put there later are left alone."""
    index, photos = tmp_path / "index", tmp_path / "photos"
    for folder in (index, photos):
        folder.mkdir()
    (index / "pictures").symlink_to(photos) if link else (index / "pictures").mkdir()
    (index / "pictures" / "holiday.jpg").write_bytes(b"mine")
    (tmp_path / "a.txt").write_text("The pump starts.", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="holds other files"):
        ingest(tmp_path / "a.txt", index)
    assert (index / "pictures" / "holiday.jpg").read_bytes() == b"mine"
    ingest(tmp_path / "a.txt", tmp_path / "other")
    (tmp_path / "other" / "pictures").mkdir()
    (tmp_path / "other" / "pictures" / "holiday.jpg").write_bytes(b"mine")
    ingest(tmp_path / "a.txt", tmp_path / "other", prune=True)
    assert (tmp_path / "other" / "pictures" / "holiday.jpg").read_bytes() == b"mine"
