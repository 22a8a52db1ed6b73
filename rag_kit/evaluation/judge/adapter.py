"""A judge as an LLM and as embeddings of Ragas's, whose limits, caps and cache hold; and Ragas's prompts in Chinese."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from rag_kit.concurrency.bridge import run_coroutine
from rag_kit.errors import InvalidInputError, MissingExtraError, RagKitError
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.judge.ragas_table import ROWS
from rag_kit.prompts.library import packaged_folder

_log = logging.getLogger(__name__)


def import_ragas() -> ModuleType:
    """Import ``ragas.metrics.collections``; the first time takes seconds, so call it on a thread."""
    try:
        with warnings.catch_warnings():
            # Ragas asks for tqdm's notebook bars, which nobody here draws; without ipywidgets that warns in Jupyter
            warnings.filterwarnings("ignore", message="IProgress not found")
            return import_module("ragas.metrics.collections")
    except ImportError as error:
        raise MissingExtraError("eval", "Ragas's metrics") from error


def is_ragas_metric(value: Any) -> bool:
    """Tell whether something is a metric of Ragas's, its class or a ``partial`` of it, without importing Ragas."""
    metric = value.func if isinstance(value, partial) else value
    bases = inspect.getmro(metric if isinstance(metric, type) else type(metric))
    names = [f"{base.__module__}.{base.__name__}" for base in bases]
    return "ragas.metrics.collections.base.BaseMetric" in names


def ragas_class(name: str) -> Any:
    """Return the Ragas metric class of a name; raise `InvalidInputError` if there is none."""
    cls = getattr(import_ragas(), name, None)
    if not is_ragas_metric(cls):
        raise InvalidInputError(
            f"unknown metric {name!r:.80}; allowed are {', '.join(ROWS)}, and the classes of ragas.metrics.collections"
        )
    return cls


class Calls:
    """The judge's calls for one cell: their replies, and the first failure.

    The same prompt sent again is another repetition, with a reply of its own. ``check`` takes a prompt's input and the
    reply, and returns what is wrong; such a reply is requested once more and never cached. After a failure no request
    is made: some of Ragas's metrics swallow errors and try again, so the caller has to raise `failure`.
    """

    def __init__(self, judge: Judge, check: Callable[[Any, Any], str | None] = lambda *_: None) -> None:
        self.judge = judge
        self.inputs: dict[str, Any] = {}  # of the prompts, by their texts
        self.replies: list[BaseModel] = []
        self.failure: Exception | None = None
        self.vectors: dict[str, list[float]] = {}
        self._check = check
        self._requests: Counter[str] = Counter()

    async def ask(self, prompt: str, schema: type[BaseModel]) -> Any:
        """Return the reply to a prompt of Ragas's; the first failure is kept."""
        if self.failure is not None:
            raise self.failure
        fault = partial(self._check, self.inputs.get(prompt))
        repeat = self._requests[prompt]  # 0 at the first time
        self._requests[prompt] += 1
        try:
            reply = await self.judge.complete(prompt, schema, repeat=repeat, fault=fault)
        except RagKitError as error:
            self.failure = error
            raise
        self.replies.append(reply)
        return reply

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts, in order; each distinct text is embedded once for the cell."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if missing:
            self.vectors |= dict(zip(missing, await self.judge.embed(missing), strict=True))
        return [self.vectors[text] for text in texts]


class ObservedPrompt:
    """A prompt of Ragas's that remembers its input, so that a reply can be checked against it."""

    def __init__(self, prompt: Any, calls: Calls) -> None:
        self._prompt, self._calls = prompt, calls

    def to_string(self, data: Any) -> str:
        """Return the text that Ragas sends for an input, and remember the input by this text."""
        text: str = self._prompt.to_string(data)
        self._calls.inputs[text] = data
        return text


def ragas_llm(judge: Judge | Calls | None) -> Any:
    """Wrap a judge as ``llm`` and ``embeddings`` for any class of Ragas's; prompts go out as Ragas writes them.

    Pass ``None`` for a metric that is handed to ``evaluate``: that fills in its own judge.
    """
    calls = judge if judge is None or isinstance(judge, Calls) else Calls(judge)
    return _adapter_class()(calls)  # a class made when it is first used, as Ragas is optional


@cache
def _adapter_class() -> type:
    """Make the adapter's class; its base classes are Ragas's, so Ragas is imported first."""
    import_ragas()
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM

    class RagasJudge(InstructorBaseRagasLLM, BaseRagasEmbedding):
        """An LLM and embeddings of Ragas's that are a judge."""

        def __init__(self, calls: Calls) -> None:
            super().__init__()
            self.calls = calls

        async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            return await self.calls.ask(prompt, response_model)

        def generate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            return run_coroutine(self.agenerate(prompt, response_model))

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return (await self.calls.embed([text]))[0]

        async def aembed_texts(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
            return await self.calls.embed(texts)

        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            # the vectors of columns "ahead" (ragas_table) are there already: the event loop need not wait for them
            vector = self.calls.vectors.get(text)
            return run_coroutine(self.aembed_text(text)) if vector is None else vector

    return RagasJudge


def prompts_of(metric: Any) -> dict[str, Any]:
    """Return the prompts of a metric of Ragas's by the attributes that hold them."""
    from ragas.prompt.metrics.base_prompt import BasePrompt

    return {name: value for name, value in vars(metric).items() if isinstance(value, BasePrompt)}


async def adapted_prompts(metric: Any, judge: Judge, *, by_judge: bool) -> dict[str, Any]:
    """Return a metric's prompts in Chinese: the kit's own, or translated by the judge.

    The judge translates examples as Ragas's ``adapt`` asks it; the instruction stays English. Its translations are
    replies, so its cache keeps them, as JSON, for this model, this prompt and this language. Prompts without examples
    cannot be adapted: they are left out of what is returned, and sent in English.
    """
    adapted: dict[str, Any] = {}
    for name, prompt in prompts_of(metric).items():
        translation = None if by_judge else chinese_prompt(prompt)
        if translation is not None:
            adapted[name] = translation
        elif getattr(prompt, "examples", None):
            adapted[name] = await _translate_examples(name, prompt, judge)
    return adapted


async def _translate_examples(name: str, prompt: Any, judge: Judge) -> Any:
    """Have the judge translate a prompt's examples; a reply with too few or too many translations is a wrong one."""
    from ragas.prompt.utils import get_all_strings

    count = len(get_all_strings(prompt.examples))

    def count_fault(data: Any, reply: Any) -> str | None:
        if len(reply.statements) == count:
            return None
        return (
            f"it gave {len(reply.statements)} translations of {count} texts; with Judge(language='en') the English "
            f"prompt {name!r} is sent"
        )

    translated = await prompt.adapt("chinese", ragas_llm(Calls(judge, count_fault)))
    translated.language = "chinese, translated by the judge"
    return translated


def chinese_prompt(prompt: Any) -> Any | None:
    """Return a prompt of Ragas's in Chinese; ``None`` if no file of ``prompts/ragas`` is of exactly this original."""
    record = _find_record(type(prompt).__name__, original_hash(prompt))
    if record is None:
        return None
    chinese = copy.copy(prompt)
    chinese.instruction, chinese.language = record["instruction"], "chinese"
    chinese.examples = [
        (prompt.input_model.model_validate(pair["input"]), prompt.output_model.model_validate(pair["output"]))
        for pair in record["examples"]
    ]
    return chinese


def original_hash(prompt: Any) -> str:
    """Hash a prompt's instruction and examples, which are pairs of input and output."""
    examples = [[side.model_dump(mode="json") for side in pair] for pair in getattr(prompt, "examples", ())]
    return _hash([getattr(prompt, "instruction", ""), examples])


@cache
def chinese_digest() -> str:
    """Hash all prompts in Chinese of the kit, for the record of what was sent."""
    return _hash(_records())


@cache
def _records() -> list[Any]:
    import yaml

    paths = sorted((packaged_folder() / "ragas").glob("*.zh.yaml"))
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]


@cache
def _find_record(class_name: str, original: str) -> dict[str, Any] | None:
    """Return the translation of the prompt with the hash ``original``; warn if there is only one of another version."""
    for record in _records():
        if record["original"] == original:
            return dict(record)
    if any(record["of"] == class_name for record in _records()):
        message = "%s of this version of Ragas (%s) is not what its Chinese prompt was made of: the judge translates it"
        _log.warning(message, class_name, original)
    return None


def _hash(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
