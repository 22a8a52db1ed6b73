"""How files are split, as recorded in an index and beside each file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.readers.formats import UserReader, check_pattern
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.ocr import ocr_wanted
from rag_kit.indexing.splitting.api import SplitPart, Splitter, choose_splitter
from rag_kit.indexing.splitting.named import SPLITTERS, Tokenizer
from rag_kit.indexing.splitting.packing import check_sizes

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.index import DocumentIndex, Leg
    from rag_kit.indexing.sparse.index import SparseEncoder
    from rag_kit.models.late_interaction import LateInteraction

#: Goes up when readers or splitter give other chunks than before; then files are read again.
READING = 10
_OPTION_TYPES: Any = (  # names of options, the type of their values, and that in words
    ("pictures keep_duplicates strict rehash", bool | None, "True or False"),
    ("wait", float | int, "a number of seconds"),
    ("limits", ReadLimits | None, "ReadLimits(max_pages=200, ...)"),
    ("readers", Mapping | None, 'functions by pattern, as in {"*.eml": read_mail}'),
    ("represent", Iterable | None, 'names of representations, as in ["summary"]'),
)
_RECORDED = ("chunk_size", "chunk_overlap", "splitter", "keep_duplicates", "ocr", "pictures", "vision")


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """How `ingest` reads, splits, represents and writes; what is ``None`` is as recorded, else the default.

    Attributes:
        strict: Stop at the first file that cannot be read; the call is one transaction, which a kill loses whole.
        wait: Seconds to wait for another writer.
        limits: Caps for reading one file.
        readers: Readers of your own by pattern (``{"*.eml": UnstructuredEmailLoader}``), as for `register_reader`.
        ocr: Recognise text in pictures and on PDF pages without text, as for `read`. Another value than the recorded
            one reads all given files again.
        pictures: Keep the figures of pdf, docx, pptx, html and epub files in the folder of the index, each with a
            passage of its own: its caption, the text that OCR finds in it, and what ``vision`` says. Its metadata field
            ``picture`` is the name of the file below that folder. Needs the extra ``ocr``.
        vision: Chat model that describes these pictures, one that sees, or its name; ``""`` for none any more. A
            description is paid for once, and kept in the index.
        legs: Beside words and vectors, as for ``DocumentIndex.create``: ``["trigram"]``, ``["tokens"]``, ``["sparse"]``
            with ``sparse_encoder``. Others than the recorded ones are made of, or removed from, the whole index.
        sparse_encoder: Makes the sparse vectors; without it, an index that has them leaves its new texts to wait.
        token_model: Makes the vectors of tokens, in the place of ``"colbert-small"``.
        rehash: Compare the bytes of files, even where size and time are the same.
        keep_duplicates: ``True`` to take in copies of other files, ``False`` to keep one of those with the same text;
            the report lists the others. Default: one in each folder, for searches in a folder.
        chunk_size: Most characters of a chunk; default 1000. Another size splits all files again.
        chunk_overlap: Characters repeated between chunks; default 100, or half of a smaller ``chunk_size``.
        splitter: As for `split`; default ``"structure"``. Another splits all files again.
        tokenizer: What counts, for ``splitter="tokens"``.
        represent: Further texts by which each chunk is found: ``"summary"``, ``"questions"``, ``"keywords"``, ``"qa"``,
            ``"tags"``, ``"translation"``, ``"children"``, ``"situation"`` (see ``representing.kinds.kinds_of``); ``[]``
            for none. Others, or another model or prompt, split all given files again. A model's replies are kept in
            the index, and none is asked for twice.
        llm: Chat model for these, default the configured one; the embedded one makes summaries, keywords, tags by rule.
        max_concurrency: Most calls of it at a time, default 8, and most requests to an embedding endpoint, default 4.
        workers: Processes of this machine that read, split and embed (this one calls endpoints); extra ``distributed``.
        scheduler: The address of a Dask scheduler (``"tcp://host:8786"``), or a ``distributed.Client``: its workers do
            that instead, which must see the files at the same paths. What Dask sends is pickled: let the scheduler
            speak TLS, or keep it private. Either way this process writes, and the index is that of one process.

    Raises:
        InvalidInputError: A value of another kind, or both ``workers`` and ``scheduler``.

    Example:
        >>> IngestOptions(chunk_size=400, ocr=True).chunk_size
        400
    """

    strict: bool = False
    wait: float = 0.0
    limits: ReadLimits | None = None
    readers: Mapping[str, UserReader] | None = None
    ocr: bool | str | None = None
    pictures: bool | None = None
    vision: Any = None
    legs: Sequence[Leg] | None = None
    sparse_encoder: SparseEncoder | None = None
    token_model: LateInteraction | None = None
    rehash: bool = False
    keep_duplicates: bool | None = None
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    splitter: Splitter | str | None = None
    tokenizer: Tokenizer | None = None
    represent: Sequence[str] | str | None = None
    llm: Any = None
    max_concurrency: int | None = None
    workers: int | None = None
    scheduler: Any = None

    def __post_init__(self) -> None:
        for names, option_type, in_words in _OPTION_TYPES:
            for name in names.split():
                if not isinstance(value := getattr(self, name), option_type):
                    raise InvalidInputError(f"{name}={value!r} was given; it is {in_words}.")
        for pattern, reader in (self.readers or {}).items():
            check_pattern(pattern, reader)
        if self.vision and not (isinstance(self.vision, str) or hasattr(self.vision, "invoke")):
            raise InvalidInputError(f"vision is {type(self.vision).__name__}; give a chat model or its name.")
        if self.workers is not None and self.scheduler is not None:
            raise InvalidInputError("workers= starts a cluster, scheduler= names one; give one of them.")
        if self.workers is not None and (type(self.workers) is not int or self.workers < 1):
            raise InvalidInputError(f"workers={self.workers!r} is no number of processes; give 1 or more.")


@dataclass(frozen=True)
class SplitSettings:
    """The splitting settings of one ingest, and what its index records of them."""

    cut: Callable[[Document], Iterator[SplitPart]]
    chunk_size: int = 1000
    chunk_overlap: int = 100
    splitter: str = "structure"  # the name of what cuts, with its tokenizer
    keep_duplicates: bool | None = None  # copies of other files; None: those in other folders only
    ocr: bool = False
    pictures: bool = False
    vision: str = ""  # the name of the model that describes pictures
    represent: Mapping[str, Any] = field(default_factory=dict)  # empty where there are none and never were
    notes: list[str] = field(default_factory=list)  # what to tell about a change of settings

    @property
    def values(self) -> dict[str, Any]:
        """Return the settings to record in the index: sizes always, others only if they are not the default."""
        values = {name: getattr(self, name) for name in _RECORDED}
        defaults = {name for name, value in values.items() if value == getattr(SplitSettings, name)}
        omitted = defaults - {"chunk_size", "chunk_overlap"}
        return {name: value for name, value in values.items() if name not in omitted} | dict(self.represent)

    @property
    def key(self) -> str:
        """Return the key to record beside a file; a file with another key is read again."""
        return json.dumps({**self.values, "reading": READING}, sort_keys=True)


def settings_for(index: DocumentIndex, options: IngestOptions, represent: Mapping[str, Any]) -> SplitSettings:
    """Return the settings given in the options, else those recorded in the index, else the defaults; note changes."""
    recorded = index.settings
    before = {name: recorded.get(name, getattr(SplitSettings, name)) for name in _RECORDED}
    given = {name: getattr(options, name) for name in _RECORDED}
    now = before | {name: value for name, value in given.items() if value is not None}
    now["chunk_overlap"] = check_sizes(now["chunk_size"], options.chunk_overlap, before["chunk_overlap"])
    splitter, tokenizer = options.splitter, options.tokenizer
    if splitter is None:
        splitter, tokenizer = _recorded_splitter(index, str(before["splitter"]), tokenizer)
    now["vision"] = _vision_name(options, now)
    ocr_wanted(now["pictures"])  # pictures need it: raises if it is not installed
    before["ocr"], now["ocr"] = bool(before["ocr"]), ocr_wanted(now["ocr"])
    cut = choose_splitter(splitter, now["chunk_size"], now["chunk_overlap"], index.embeddings, tokenizer)
    now["splitter"] = _name_of(splitter)
    if tokenizer is not None:
        now["splitter"] += f" by {_name_of(tokenizer)}"
    changed = [name for name in _RECORDED if before[name] != now[name]]
    changes = [f"{name} changed from {before[name]!r} to {now[name]!r}" for name in changed]
    if "represent" in recorded and any(recorded.get(key) != value for key, value in represent.items()):
        changes.append("what represents chunks (kinds, model or prompts) changed")
    notes = []
    if changes and "chunk_size" in recorded:  # else no ingest wrote the index before
        notes.append(f"{' and '.join(changes)}: all given files are split again")
    return SplitSettings(**now, cut=cut, represent=represent, notes=notes)


def _recorded_splitter(index: DocumentIndex, recorded: str, tokenizer: Any) -> tuple[str, Any]:
    """Return the splitter and tokenizer that an index records; raise InvalidInputError for a user's own objects."""
    splitter, _, tokenizer_name = recorded.partition(" by ")  # "tokens by tokenizer.json"
    can_load_tokenizer = not tokenizer_name or tokenizer_name.endswith(".json")
    if splitter not in SPLITTERS or (tokenizer is None and not can_load_tokenizer):
        raise InvalidInputError(
            f"The files of the index in {index.folder} were split by {recorded}, which "
            "is not known by name: give splitter= (and tokenizer=) again, or others, by which all given files are "
            "split again."
        )
    if tokenizer is None:
        tokenizer = tokenizer_name or None
    return splitter, tokenizer


def _vision_name(options: IngestOptions, values: Mapping[str, Any]) -> str:
    """Return the name of the model that describes pictures, ``""`` for none; ``values`` are the settings so far."""
    if options.vision and not values["pictures"]:
        raise InvalidInputError("vision= describes pictures; give pictures=True (--pictures) with it.")
    if options.vision is None and values["vision"] and values["pictures"]:
        raise InvalidInputError(
            f"The pictures of this index were described by {values['vision']!r}. Give that model again (vision=, "
            "--vision-model), or vision='' (--vision-model none) to go on without descriptions."
        )
    if not options.vision or isinstance(options.vision, str):
        return str(values["vision"])  # as recorded, or as named now
    from rag_kit.models.runnables import model_name

    return model_name(options.vision) or type(options.vision).__name__


def _name_of(part: Any) -> str:
    """Return a splitter's or tokenizer's name for the record; LangChain's splitters with sizes: "Splitter(400, 0)"."""
    if isinstance(part, str | PathLike):
        return str(part)
    name = getattr(part, "__qualname__", None) or type(part).__qualname__
    size, overlap = getattr(part, "_chunk_size", None), getattr(part, "_chunk_overlap", None)
    return str(name) if size is None or overlap is None else f"{name}({size}, {overlap})"
