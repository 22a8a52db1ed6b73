"""The client of an embedding endpoint inside LangChain's model: vectors in the order of their texts, the kit's errors.

A vector store asks the model by itself; only here its answers and failures are the same as for the kit's own calls.
"""

from __future__ import annotations

from typing import Any

from rag_kit.concurrency.bridge import of_another_loop

from .failures import UnusableReplyError, map_model_error


class EmbeddingClient:
    """A stand-in for ``OpenAI(...).embeddings`` of a model."""

    def __init__(self, client: Any, model: Any) -> None:
        self._client, self._model = client, model

    def create(self, *, input: Any, **arguments: Any) -> Any:
        """Ask for the vectors of texts."""
        try:
            return _in_order(self._client.create(input=input, **arguments), input)
        except Exception as error:  # noqa: BLE001 - raised below, outside of this block: it holds the request
            failure = _readable(error)
        raise map_model_error(failure, model=self._model)


class AsyncEmbeddingClient(EmbeddingClient):
    """A stand-in for ``AsyncOpenAI(...).embeddings`` of a model."""

    async def create(self, *, input: Any, **arguments: Any) -> Any:
        """Ask for the vectors of texts."""
        try:
            return _in_order(await self._client.create(input=input, **arguments), input)
        except Exception as error:
            if of_another_loop(error):  # the caller may ask by the blocking client
                raise
            failure = _readable(error)
        raise map_model_error(failure, model=self._model)


def _in_order(response: Any, texts: Any) -> Any:
    """Sort the vectors of a reply by their texts' numbers, if it gives them; refuse a reply without one each."""
    numbers = [getattr(item, "index", None) for item in response.data]
    is_single = isinstance(texts, str) or isinstance(texts[0], int)  # one text, or one list of token numbers
    count = 1 if is_single else len(texts)
    is_numbered = {*numbers} != {None}
    if not is_numbered:
        numbers = list(range(len(numbers)))
    if len(numbers) != count or {*numbers} != {*range(count)}:
        raise UnusableReplyError(f"it has vectors of the texts {numbers!s:.60}, where {count} were sent")
    for item in response.data:
        if not isinstance(item.embedding, list) or not {*map(type, item.embedding)} <= {float, int}:
            raise UnusableReplyError("a vector in it is no list of numbers")
    if is_numbered:
        response.data.sort(key=lambda item: item.index)
    return response


def _readable(error: Exception) -> Exception:
    """Return an error; if the client could not read the reply's form, an ``UnusableReplyError`` in its place."""
    is_unreadable = type(error) in (ValueError, AttributeError)
    return UnusableReplyError(f"it is no list of vectors ({error})") if is_unreadable else error
