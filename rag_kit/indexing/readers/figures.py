"""Pictures inside documents: decoded under caps, made small, each with its caption and the text that is in it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pypdfium2.raw as raw

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.ocr import picture_text, to_rgb
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Unreadable, leave_out, open_regular
from rag_kit.indexing.readers.pdf_lines import Line

_MAX_COUNT = 300  # pictures of a file
_MAX_TRIED = 3_000  # with icons, repeated and damaged ones, which are decoded to be known
_MAX_FILE_BYTES = 100 * 2**20  # of all pictures of a file, as they are kept
_MAX_SIDE = 2_000  # pixels of a picture that is kept; larger ones are made smaller
_MAX_BYTES = 5 * 2**20  # of a picture that is kept
_MAX_PIXELS = 50_000_000  # of a picture as it is in the file
_MIN_SIDE = 48  # pixels; smaller pictures are icons, bullets and rules
_FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP")
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|abb(?:ildung|\.)?|chart|photo|plate|图|圖|照片|插图)\s*[\d\u4e00-\u9fffA-Z]", re.I
)
NOT_INSIDE = "not in the file"  # but elsewhere, or missing
_NEAR = 4  # sizes of type between a picture and its caption
_WHOLE_PAGE = 0.85  # of a page: a picture that covers it is the scan, or the background
_MIN_SIDE_ON_PAGE = 30  # points
_DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,", re.I)


class Figures:
    """The pictures of one file, each kept once; none where they are not wanted."""

    def __init__(self, context: Context) -> None:
        self._wanted = context.pictures
        self._seen: set[bytes] = set()
        self._bytes = self._count = self._tried = 0
        self._full = False
        self._left_out: Counter[str] = Counter()  # how many pictures, by reason

    def pass_over(self, reason: str) -> None:
        """Count a picture that is left out; `finish` writes one note for all with this reason."""
        if self._wanted:
            self._left_out[reason] += 1

    def finish(self) -> None:
        """Write a note for each reason for which pictures of the file were left out."""
        for reason, count in self._left_out.items():
            write_note(f"{count} picture{'s' * (count > 1)}{LEFT_OUT}{reason}")

    def parts(self, where: str, image: Callable[[], Any], caption: str, **metadata: Any) -> Iterator[Part]:
        """Yield the part of a picture (which ``image()`` loads as bytes, or of Pillow), or write a note why not."""
        if not self._wanted or self._full:
            return
        self._tried += 1
        self._full = self._count >= _MAX_COUNT or self._tried > _MAX_TRIED or self._bytes > _MAX_FILE_BYTES
        if self._full:
            most = f"{_MAX_COUNT} pictures of 100 MB, {_MAX_TRIED} with icons and repeated ones"
            write_note(f"{where} and later ones{LEFT_OUT}a file may have {most}")
            return
        kept, text = None, ""
        with leave_out(where):
            kept = self._keep(image())
        if kept is None:
            return
        large, data = kept
        with leave_out(f"text in {where}"):
            text = picture_text(large)
        if text:
            metadata["ocr"] = True
        yield Part("\n\n".join(filter(None, [" ".join(caption.split()), text])), metadata, data)

    def _keep(self, given: Any) -> tuple[Any, bytes] | None:
        """Return a picture in RGB, and the file of a small copy; None for an icon, or a picture seen before."""
        from PIL import Image

        image = Image.open(io.BytesIO(given), formats=_FORMATS) if isinstance(given, bytes) else given
        if min(image.size) < _MIN_SIDE:
            self.pass_over(f"smaller than {_MIN_SIDE} pixels")
            return None
        if image.width * image.height > _MAX_PIXELS:
            raise Unreadable(f"it has {image.width} by {image.height} pixels, more than {_MAX_PIXELS}")
        large = to_rgb(image)
        small = large.copy()
        small.thumbnail((_MAX_SIDE, _MAX_SIDE))
        digest = hashlib.sha256(b"%d " % small.width + small.tobytes()).digest()  # bytes alone tell no shape
        if digest in self._seen:
            return None
        self._seen.add(digest)
        data = _encoded(small, "JPEG" if image.format == "JPEG" else "PNG")
        if len(data) > _MAX_BYTES // 2:
            data = _encoded(small, "JPEG")
        if len(data) > _MAX_BYTES:
            raise Unreadable(f"it takes {len(data)} bytes, more than the {_MAX_BYTES} that are kept")
        self._bytes += len(data)
        self._count += 1
        return large, data


def _encoded(image: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"quality": 90} if kind == "JPEG" else {}))
    return buffer.getvalue()


def is_scan(page: Any) -> bool:
    """Tell whether a PDF page is a scan: its pictures, which may be pieces of one, cover most of it."""
    width, height = page.get_size()
    bounds = (picture.get_bounds() for picture in _images(page))
    covered = sum((right - left) * (top - bottom) for left, bottom, right, top in bounds)
    return bool(covered > _WHOLE_PAGE * width * height)


def _images(page: Any) -> Iterator[Any]:
    return iter(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3))


def pdf_figures(page: Any, lines: Sequence[Line], figures: Figures, where: str) -> list[Part]:
    """Return the parts of the pictures on a PDF page, without one that lies behind the text of the whole page."""
    page_width, page_height = page.get_size()
    parts: list[Part] = []
    for number, picture in enumerate(_images(page), 1):
        box = left, bottom, right, top = picture.get_bounds()
        width, height = right - left, top - bottom
        if min(width, height) < _MIN_SIDE_ON_PAGE:
            figures.pass_over(f"smaller than {_MIN_SIDE_ON_PAGE} points")
            continue
        if lines and width * height > _WHOLE_PAGE * page_width * page_height:
            continue
        caption = "" if page.get_rotation() else _caption(lines, box)
        parts += figures.parts(f"{where}, picture {number}", partial(_render, picture), caption)
    return parts


def _render(picture: Any) -> Any:
    with closing(picture.get_bitmap(render=True)) as bitmap:
        return bitmap.to_pil().copy()


def _caption(lines: Sequence[Line], box: tuple[float, float, float, float]) -> str:
    """Return the caption below or above a picture's box: a line such as "Fig. 1", and up to three lines below that."""
    left, bottom, right, top = box
    for index, line in enumerate(lines):
        gaps = bottom - line.bottom, line.bottom - top  # below and above the box
        is_beside = line.right <= left or right <= line.left
        is_near = any(0 <= gap <= _NEAR * line.size for gap in gaps)
        if is_beside or not is_near or not _CAPTION.match(line.text):
            continue
        texts, last = [line.text], line
        for after in lines[index + 1 : index + 4]:
            is_level = abs(after.left - line.left) <= line.size
            if not is_level or not 0 < last.bottom - after.bottom < 1.5 * line.size:
                break
            texts, last = [*texts, after.text], after
        return " ".join(texts)
    return ""


def html_figures(
    tree: Any, figures: Figures, load: Callable[[str], bytes], metadata: dict[str, Any], prefix: str = ""
) -> Iterator[Part]:
    """Yield the parts of the pictures of an HTML tree: in ``data:`` addresses, or read by ``load(path)``."""
    for number, node in enumerate(tree.iter("img"), 1):
        # srcset="small.png 1x, large.png 2x" gives several sizes: the first is taken
        source = (node.get("src") or (node.get("srcset") or "").strip().partition(" ")[0]).strip()
        if not source or any("hidden" in each.attrib for each in (node, *node.iterancestors())):
            continue
        if re.match(r"(?!data:)\w[\w+.-]*:|//", source, re.I):  # https:... or //host/...
            figures.pass_over("on other machines")
            continue
        figure = next(node.iterancestors("figure"), None)
        captions = () if figure is None else figure.iter("figcaption")
        caption = " ".join("".join(each.itertext()) for each in captions)
        caption = caption or node.get("alt") or node.get("title") or ""
        where = f"{prefix}picture {number} ({source[:60]})"
        yield from figures.parts(where, partial(_source_bytes, source, load), caption, **metadata)


def _source_bytes(source: str, load: Callable[[str], bytes]) -> bytes:
    """Return the bytes of a picture: decoded from its ``data:`` address, or loaded by its path."""
    if match := _DATA_URI.match(source):
        try:
            return base64.b64decode(unquote(source[match.end() :]))
        except binascii.Error as error:
            raise Unreadable(f"its data are damaged ({error})") from error
    path = re.split("[#?]", source, maxsplit=1)[0]
    return load(unquote(path))


def file_beside(folder: str, name: str, max_bytes: int) -> bytes:
    """Read a file in a folder or below it; raises `Unreadable` for one elsewhere, links resolved."""
    path = Path(os.path.realpath(os.path.join(folder, name)))
    if not path.is_relative_to(os.path.realpath(folder)):
        raise Unreadable("it lies outside of the folder of the page")
    with open_regular(path, max_bytes) as file:
        return file.read(max_bytes)
