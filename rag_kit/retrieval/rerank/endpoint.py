"""Reranking by a model behind HTTP: the ``/rerank`` route of Jina, Cohere, vLLM, Xinference and TEI."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import httpx2
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough
from pydantic import SecretStr

from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.models.calls import ask_within
from rag_kit.models.http import with_http_clients
from rag_kit.models.model_call import ModelCall
from rag_kit.models.providers import with_url
from rag_kit.retrieval.call import Call, Job, failures_or_raise
from rag_kit.retrieval.fields import check_count
from rag_kit.retrieval.rerank.base import Ranking, Reranker, by_scores, check_scores

_DIALECTS = {"common": ("documents", 100), "tei": ("texts", 32)}  # field of the passages, most in a request


class EndpointReranker(Reranker):
    """Score each passage by a reranking model at an HTTP endpoint.

    More passages than ``batch_size`` go in several requests at the same time. Each request counts as a model call
    (``max_calls``) and is repeated after a rate limit, a server error or a broken connection. A passage that got no
    score stays in its place, and the notes say so; a reply that numbers passages wrongly is not used at all.

    Args:
        base_url: Address to which ``/rerank`` is added: ``https://api.jina.ai/v1``, ``https://api.cohere.com/v2``,
            ``http://127.0.0.1:8000/v1`` (vLLM, Xinference), ``http://127.0.0.1:8080`` (TEI).
        model: Name of the model; TEI serves one and needs none.
        api_key: Sent as a bearer token; ``None`` for an endpoint that checks no key.
        dialect: ``"common"``, or ``"tei"`` for Text Embeddings Inference.
        batch_size: Most passages in a request; ``None`` for 100 (one search in Cohere's bill), 32 with TEI (its limit).
        timeout: Seconds for one request.
        depth: See ``Reranker``.

    Raises:
        ConfigurationError: ``base_url`` is not an http(s) address, or holds a password.
        InvalidInputError: Another argument is not allowed.

    Example:
        >>> EndpointReranker("http://127.0.0.1:8000/v1", model="bge-reranker-v2-m3", depth=50).url
        'http://127.0.0.1:8000/v1/rerank'
    """

    name = "endpoint"

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        dialect: str = "common",
        batch_size: int | None = None,
        timeout: float = 60,
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        if dialect not in _DIALECTS:
            allowed = ", ".join(map(repr, _DIALECTS))
            raise InvalidInputError(f"dialect={dialect!r} was given; allowed: {allowed}.")
        passages_field, max_batch = _DIALECTS[dialect]
        # for an empty address `with_url` would use the environment's; as "''" or "None" it is refused
        address = with_url({"base_url": base_url or repr(base_url)})["base_url"]
        self.url = f"{address.rstrip('/')}/rerank"
        self.batch_size = check_count("batch_size", max_batch if batch_size is None else batch_size)
        self.timeout = timeout
        body: dict[str, Any] = {"model": model} if model else {}
        if dialect == "tei":
            body["truncate"] = True
        self._endpoint = _Endpoint(self.url, passages_field, body, api_key)

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        texts = [doc.page_content for doc in documents]
        batches = [texts[start : start + self.batch_size] for start in range(0, len(texts), self.batch_size)]
        outcomes = await call.side_by_side([self._scoring_job(query, batch, call) for batch in batches])
        for outcome in failures_or_raise(outcomes, call):
            call.note_failure(outcome.name, outcome.error)
        scores: list[float | None] = []
        for batch, outcome in zip(batches, outcomes, strict=True):
            scores += [None] * len(batch) if outcome.value is None else outcome.value
        if None in scores and call.limits.on_error == "raise":
            raise ModelOutputError(
                f"rerank:{self.name} gave no score for {scores.count(None)} of {len(scores)} passages."
            )
        return by_scores(scores)

    def _scoring_job(self, query: str, texts: list[str], call: Call) -> Job:
        # without a prompt: query and passages are sent as they are
        endpoint, prompt = self._endpoint, RunnablePassthrough[Any]()
        model_call = ModelCall(endpoint, prompt, {}, call.child("model"), timeout=self.timeout)
        logic = partial(_scores, query_and_texts=[query, *texts])
        return Job(f"rerank:{self.name}", partial(model_call.run, logic), partial(model_call.arun, logic))


async def _scores(call: ModelCall, query_and_texts: list[Any]) -> list[float | None]:
    """Ask for the score of each text for the query, the first of the list; return ``None`` for a text without one."""
    reply = await ask_within(call, query_and_texts)
    rows = reply.get("results") if isinstance(reply, dict) else reply
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ModelOutputError(
            "The rerank endpoint's reply holds no list of results. Check base_url and dialect."
        )
    count = len(query_and_texts) - 1
    scores: dict[int, Any] = {}
    for row in rows:
        position = row.get("index")
        if type(position) is not int or not 0 <= position < count or position in scores:
            raise ModelOutputError(
                f"The rerank endpoint's reply numbers a passage {position!r:.40}; {count} were sent, numbered from 0, "
                "and each may come once."
            )
        scores[position] = row.get("relevance_score", row.get("score"))
    return check_scores([scores.get(position) for position in range(count)], count)


class _Endpoint(Runnable[list[str], Any]):
    """A POST request as a runnable: takes the query and the passages, returns the parsed JSON of the reply."""

    def __init__(self, url: str, passages_field: str, body: dict[str, Any], key: str | None) -> None:
        self.base_url, self.passages_field, self.body = url, passages_field, body
        self.key = SecretStr(key or "")
        clients = with_http_clients({"base_url": url})
        self.client, self.async_client = clients["http_client"], clients["http_async_client"]

    def invoke(self, input: list[str], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _parse_response(self.client.post(self.base_url, **self._request_for(input)))

    async def ainvoke(self, input: list[str], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _parse_response(await self.async_client.post(self.base_url, **self._request_for(input)))

    def _request_for(self, texts: list[str]) -> dict[str, Any]:
        """Return body and headers of the request for texts: the query first, then the passages."""
        key = self.key.get_secret_value()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = {**self.body, "query": texts[0], self.passages_field: texts[1:]}
        return {"json": body, "headers": headers}


def _parse_response(response: httpx2.Response) -> Any:
    if response.status_code != 200:
        message = response.text[:1000] or "no message"
        raise httpx2.HTTPStatusError(message, request=response.request, response=response)
    return response.json()
