"""Text recognition (OCR) by rapidocr: pictures, and pages of a PDF that have no text.

Its models (PP-OCR, in the wheel) run by onnxruntime inside the reader process, under that process's caps.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice, pairwise
from math import dist
from typing import Any, NamedTuple, cast

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.indexing.readers.ocr_layout import MAX_SIDE, STRIP, Box, Picture, long_side, read_sheet
from rag_kit.indexing.readers.parts import Context, Part, read_table
from rag_kit.indexing.readers.pdf_layout import Layout
from rag_kit.indexing.readers.pdf_lines import Sheet
from rag_kit.indexing.readers.pdf_tables import with_tables

_DPI = 200
_MAX_AREA = 24_000_000  # pixels of a strip
_LONGEST = 50  # long sides of a strip by short ones; longer ones hold no lines of text
_FIND_SIDE = 1_600  # pixels of the picture in which lines are looked for
_SEEK = 300  # pixels before the end of a piece of a strip, where it is cut between lines
_SHORT_SIDE = 736  # pixels to which the finder enlarges the short side of a picture
_NARROW = 4  # long sides by short ones; white makes narrower pictures wider: long sides are enlarged, too
_MIN_SCORE = 0.5  # of a line; below it the model has guessed
_THREADS = 2  # for each of the three models, which run one after the other
_VOTES = 12  # lines that are looked at for whether they are upside down
_BORDER = 32  # white pixels around a picture: text at its very edge is not found
_TALL = 1.5  # height of a line by its width where it runs upwards or downwards
_LANGUAGES = frozenset(read_table("ocr_languages.txt")["languages"].split())  # that the model reads


class Reading(NamedTuple):
    """The lines recognised in a picture, in pixels of ``picture``: the given one, turned upright and made smaller."""

    boxes: list[Box]
    picture: Picture
    turn: int  # degrees against the clock by which the given picture was turned
    scale: float  # pixels of ``picture`` to one of the given picture

    def to_given(self, x: float, y: float) -> tuple[float, float]:
        """Convert a point of ``picture`` to the pixels of the given picture: turn it back, and undo the scale."""
        height, width = self.picture.shape[:2]
        turned_back = {0: (x, y), 90: (height - y, x), 180: (width - x, height - y), 270: (y, width - x)}
        x, y = turned_back[self.turn]
        return x / self.scale, y / self.scale


def ocr_wanted(ocr: bool | str | None) -> bool:
    """Tell whether a user's ``ocr`` (True, or languages such as ``"eng+chi_sim"``) switches OCR on; check its value."""
    if isinstance(ocr, str) and ocr:
        if unknown := [name for name in ocr.split("+") if name not in _LANGUAGES]:
            raise InvalidInputError(
                f"ocr={ocr!r}: {unknown[0]!r} is no language that is recognised. Give True (one model reads them all), "
                f"or some of {', '.join(sorted(_LANGUAGES))} with + between them."
            )
    elif not isinstance(ocr, bool | str | None):
        raise InvalidInputError(f"ocr must be True, False or languages such as 'eng+chi_sim', not {ocr!r}.")
    if ocr and (find_spec("rapidocr") is None or find_spec("onnxruntime") is None):
        raise MissingExtraError("ocr", "Recognising text in pictures")
    return bool(ocr)


def read_picture(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part with the text of a picture, or one for each page of a TIFF."""
    from PIL import Image, ImageSequence

    _engine()  # the models are loaded first, since the picture may take all memory
    image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "TIFF", "BMP", "WEBP"))
    count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
    context.check(count, "pages", "max_pages")
    for number, frame in enumerate(islice(ImageSequence.Iterator(image), count), 1):
        pages = {"page": number, "pages": count} if count > 1 else {}
        yield Part(picture_text(frame), {**pages, "ocr": True})


def picture_text(image: Any) -> str:
    """Recognise the text in a picture (of Pillow) as markdown, with tables and columns as on a PDF page."""
    reading = recognise(to_rgb(image))
    points = 842 / long_side(reading.picture)  # of a pixel, if the picture is as long as a page of A4
    sheet = read_sheet(reading.boxes, reading.picture, points)
    sheet.lines = with_tables(sheet.lines, sheet.rules)
    return Layout([sheet.lines]).page_text(sheet.lines)


def to_rgb(image: Any) -> Any:
    """Return a picture in RGB: turned as its camera says, transparent parts white, 16 bits a pixel made 8."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith(("I", "F")):
        upright = _to_8_bits(upright)
    if upright.has_transparency_data:
        upright = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright)
    return upright.convert("RGB")


def _to_8_bits(image: Any) -> Any:
    """Return a grey picture with its darkest pixel as 0 and its lightest as 255; Pillow would cut it off at 255."""
    if image.mode.startswith("I;"):
        image = image.convert("I")  # `point` takes no order of bytes, as in "I;16B"
    darkest, lightest = cast("tuple[float, float]", image.getextrema())
    factor = 255 / ((lightest - darkest) or 1)
    grey = image.point(lambda value: (value - darkest) * factor).convert("L")
    transparent = grey.info.pop("transparency", None)  # the one value of pixels that are transparent
    if transparent is not None and darkest <= transparent <= lightest:
        grey.info["transparency"] = int((transparent - darkest) * factor)
    return grey


def recognise_page(page: Any) -> Sheet | None:
    """Recognise the lines and rules of a PDF page, in points of the page as shown; None without text."""
    reading = recognise(page_picture(page)[0])
    if not reading.boxes:
        return None
    width, height = page.get_size()
    return read_sheet(reading.boxes, reading.picture, max(width, height) / max(reading.picture.shape[:2]))


def page_picture(page: Any) -> tuple[Any, Callable[[float, float], tuple[float, float]]]:
    """Draw a PDF page as a picture; return it, and a function from a pixel of it to a point of the page."""
    width, height = (max(1.0, side * _DPI / 72) for side in page.get_size())  # 72 points are an inch
    bitmap = page.render(scale=_DPI / 72 * _scale_down(width, height))
    to_page = bitmap.get_posconv(page).to_page
    return bitmap.to_pil().convert("RGB"), lambda x, y: to_page(round(x), round(y))


def _scale_down(width: float, height: float) -> float:
    """Return the factor, at most 1, that makes a picture small enough; a long strip, read in pieces, stays larger."""
    short, long = sorted((width, height))
    if STRIP * short < long <= _LONGEST * short:
        return float(min(1.0, MAX_SIDE / short, (_MAX_AREA / (width * height)) ** 0.5))
    return min(1.0, MAX_SIDE / long)


def recognise(image: Any) -> Reading:
    """Find the lines of text in a picture (of Pillow), also one on its side or upside down, and read them."""
    import numpy as np

    engine = _engine()
    scale = _scale_down(*image.size)
    if scale < 1:
        size = [max(1, round(side * scale)) for side in image.size]
        image = image.resize(size, resample=3, reducing_gap=2.0)
    picture = np.ascontiguousarray(np.asarray(image)[:, :, ::-1])  # OpenCV has colours as BGR, not RGB
    lines, corners = _find_lines(engine, picture)
    if not lines:
        return Reading([], picture, 0, scale)
    if turn := _needed_turn(engine, lines, corners):
        picture = np.ascontiguousarray(np.rot90(picture, turn // 90))
        lines, corners = _find_lines(engine, picture)
    answer = engine.recognize_txt(lines)
    found = zip(answer.txts, answer.scores, corners, strict=True)
    boxes = [Box(text, box) for text, score, box in found if text.strip() and score >= _MIN_SCORE]
    return Reading(boxes, picture, turn, scale)


@lru_cache(maxsize=1)
def _engine() -> Any:
    """Load the models, once in a process; it takes about a second and a half."""
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(_THREADS)
    threads = "EngineConfig.onnxruntime.{}_op_num_threads"
    options = {"Global.log_level": "critical", "Global.use_vertical_padding": False}
    return RapidOCR(params={**options, threads.format("intra"): _THREADS, threads.format("inter"): 1})


def _find_lines(engine: Any, picture: Picture) -> tuple[list[Any], list[Any]]:
    """Find the lines of text in a picture; return a picture of each, and its corners. A long strip is cut first."""
    wide = picture.shape[1] > MAX_SIDE
    if not wide and picture.shape[0] <= MAX_SIDE:
        return _find_in_piece(engine, picture)
    lines, corners = list[Any](), list[Any]()
    for start, end in pairwise(_cuts(picture, wide=wide)):
        piece = picture[:, start:end] if wide else picture[start:end]
        right, down = (start, 0) if wide else (0, start)
        piece_lines, piece_corners = _find_in_piece(engine, piece)
        lines += piece_lines
        corners += [[(x + right, y + down) for x, y in box] for box in piece_corners]
    return lines, corners


def _cuts(picture: Picture, *, wide: bool) -> list[int]:
    """Choose where to cut a strip: between lines of text, at rows (columns if it is wide) of about equal pixels."""
    import cv2
    import numpy as np

    green = picture[:, :, 1]  # as good as grey
    neighbours = (green[1:], green[:-1]) if wide else (green[:, 1:], green[:, :-1])
    changes = cv2.absdiff(*neighbours).sum(axis=0 if wide else 1, dtype=np.int64)  # few between lines of text
    cuts = [0]
    while len(changes) - cuts[-1] > _FIND_SIDE:
        first = cuts[-1] + _FIND_SIDE - _SEEK
        candidates = changes[first : first + _SEEK]
        calmest = np.flatnonzero(candidates <= candidates.min() + 1)
        cuts.append(first + int(calmest[len(calmest) // 2]))  # the middle one
    return [*cuts, len(changes)]


def _find_in_piece(engine: Any, picture: Picture) -> tuple[list[Any], list[Any]]:
    """Find the lines of text in a picture of usual size; return a picture of each, and its four corners in pixels."""
    import cv2
    import numpy as np
    from rapidocr.main import RapidOCRError

    height, width = picture.shape[:2]
    min_side = (max(height, width) + 2 * _BORDER) // _NARROW
    # the white below and at the right: a border, or as much as makes a narrow picture wide enough
    below, right = (max(_BORDER, min_side - side - _BORDER) for side in (height, width))
    framed = np.pad(picture, ((_BORDER, below), (_BORDER, right), (0, 0)), constant_values=255)
    scale = min(1.0, max(_FIND_SIDE / max(framed.shape), _SHORT_SIDE / min(framed.shape[:2])))
    small = cv2.resize(framed, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    try:
        _, answer = engine.detect_and_crop(small, {})
    except RapidOCRError:  # raised where it finds no line
        return [], []
    corners = answer.boxes / np.float32(scale)
    return engine.crop_text_regions(framed, corners), (corners - _BORDER).tolist()


def _needed_turn(engine: Any, lines: Sequence[Any], corners: Sequence[Any]) -> int:
    """Return the degrees against the clock by which a picture must be turned so that its lines run to the right."""
    # the pictures of lines that run upwards or downwards are turned against the clock already
    sizes = [(dist(box[0], box[1]), dist(box[0], box[3])) for box in corners]  # width and height
    weights = [max(size) - min(size) for size in sizes]  # a single character, which is square, has no say
    are_tall = [height >= _TALL * width for width, height in sizes]
    tall_weight = sum(weight for weight, is_tall in zip(weights, are_tall, strict=True) if is_tall)
    is_mostly_tall = 2 * tall_weight > sum(weights)
    voters = [n for n, is_tall in enumerate(are_tall) if is_tall == is_mostly_tall]
    longest = sorted(voters, key=lambda n: -weights[n])[:_VOTES]
    # the model sees a picture that is four times as long as high, to which it would squeeze a longer one
    beginnings = [lines[n][:, : 4 * lines[n].shape[0]] for n in longest]
    _, answer = engine.cls_and_rotate(beginnings)
    # the lines vote, each by the score of its answer
    upside_down = sum(score if label == "180" else -score for label, score in answer.cls_res)
    return 90 * is_mostly_tall + 180 * bool(upside_down > 0)
