"""Text recognition (OCR) by tesseract: pictures, and pages of a PDF that have no text.

The binding `tesserocr` runs it inside the reader process, under that process's caps; no program is started.
"""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError
from rag_kit.indexing.readers.parts import Context, Part

_DATA = (
    "/usr/share/tesseract-ocr/*/tessdata",  # Debian
    "/usr/share/tessdata",
    "/usr/share/tesseract/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)
_DPI = 300
_PAGE_PIXELS = 40_000_000  # an A2 page at 300 dpi; larger pages are rendered less finely
_MAX_SIDE = 32_000  # pixels; tesseract's own bound is 32,767
_CJK = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_WRAP = "\x1f"  # where a line was wrapped
_WRAPPED = 0.7  # a line shorter than this share of its block's longest is the last of a paragraph


def ocr_languages(ocr: str) -> str:
    """Tesseract's languages (``"eng+chi_sim"``), checked to be there, in the order in which it reads best."""
    if not isinstance(ocr, str) or not re.fullmatch(r"\w+(\+\w+)*", ocr):
        raise InvalidInputError(
            f"ocr must name tesseract's languages, as in 'eng' or 'eng+chi_sim', not {ocr!r}."
        )
    if find_spec("tesserocr") is None:
        raise MissingExtraError("ocr", "Recognising text in pictures")
    # the first language decides on the spaces between words: Chinese and Japanese have none
    names = sorted(dict.fromkeys(ocr.split("+")), key=lambda name: not name.startswith(("chi", "jpn")))
    _data_folder("+".join(names))
    return "+".join(names)


def _data_folder(languages: str) -> str:
    """The folder with tesseract's data for all of these languages; raises ConfigurationError if there is none."""
    prefix = os.environ.get("TESSDATA_PREFIX")
    names = languages.split("+")
    folders = [prefix] if prefix else [path for pattern in _DATA for path in sorted(glob.glob(pattern))]
    for folder in folders:
        if all(os.path.exists(f"{folder}/{name}.traineddata") for name in names):
            return folder
    packages = " ".join(f"tesseract-ocr-{name.replace('_', '-')}" for name in names)
    raise ConfigurationError(
        f"Tesseract's data for {languages} was not found: on Debian run apt-get install {packages}; elsewhere put the "
        ".traineddata files into a folder and name it with TESSDATA_PREFIX."
    )


def read_picture(data: bytes, context: Context) -> Iterator[Part]:
    """One part a picture; a TIFF may hold several, its pages."""
    from PIL import Image, ImageOps, ImageSequence

    _engine(context.ocr)  # before the picture, which may take all memory
    image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "TIFF", "BMP", "WEBP"))
    count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
    context.check(count, "pages", "max_pages")
    for number, frame in enumerate(ImageSequence.Iterator(image), 1):
        upright = ImageOps.exif_transpose(frame)
        if upright.has_transparency_data:  # on paper
            upright = upright.convert("RGBA")
            upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright)
        place = {"page": number, "pages": count} if count > 1 else {}
        yield Part(_recognise_text(upright.convert("L"), context.ocr), {**place, "ocr": True})
        if number == count:
            return


def recognise_page(page: Any, context: Context) -> str:
    """The text in the picture of a PDF page."""
    width, height = page.get_size()
    scale = min(_DPI / 72, (_PAGE_PIXELS / max(width * height, 1)) ** 0.5, _MAX_SIDE / max(width, height, 1))
    return _recognise_text(page.render(scale=scale, grayscale=True).to_pil(), context.ocr)


@lru_cache(maxsize=1)
def _engine(languages: str) -> Any:
    from tesserocr import PSM, PyTessBaseAPI

    # with the data `osd` it turns pages that lie on their side or head, without it does not
    return PyTessBaseAPI(path=f"{_data_folder(languages)}/", lang=languages, psm=PSM.AUTO_OSD)


def _recognise_text(image: Any, languages: str) -> str:
    """The text in a picture, its wrapped lines joined, paragraphs apart."""
    engine = _engine(languages)
    try:
        engine.SetImage(image)
        # that in a picture's metadata is often wrong, and lines would break up
        engine.SetSourceResolution(_DPI)
        text = str(engine.GetUTF8Text()).strip()
    finally:
        engine.Clear()
    text = "\n\n".join(_join_wrapped(block.split("\n")) for block in re.split(r"\n\s*\n", text))
    return re.sub(r"(?<=[\w,])\n\n(?=[a-z])", " ", text)  # a blank line in the middle of a sentence


def _join_wrapped(lines: list[str]) -> str:
    """A block of lines as paragraphs: a line that was wrapped goes on in the next one.

    Example:
        >>> _join_wrapped(["The lake is very deep and cold in win-", "ter, and the boats lie", "on the shore."])
        'The lake is very deep and cold in winter, and the boats lie\\non the shore.'
    """
    full = _WRAPPED * max(map(len, lines))
    text = "".join(line.strip() + ("\n" if len(line) < full else _WRAP) for line in lines)
    text = re.sub(f"(?<=\\w)-{_WRAP}(?=[a-z])|(?<=[{_CJK}]){_WRAP}(?=[{_CJK}])", "", text)
    return text.replace(_WRAP, " ").strip()
