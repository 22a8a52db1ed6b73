"""The log-probabilities of a model's answer: how they are asked for, and those of the labels in it."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from langchain_core.runnables import Runnable

from rag_kit.graphs.streaming import MessageCatcher
from rag_kit.models.model_call import without_retries

#: Alternatives asked for at each token. Five labels are the most; the rest is room for capitals and quotes.
TOP_LOGPROBS = 10
_MAX_TOKENS = 20_000
# the id of an object in JSON, such as "id": 3; group 1 is the number
_ID_FIELD = re.compile(r"\bid\b\W{1,12}(\d{1,4})\b")


class AnswerToken(NamedTuple):
    """A token of an answer: its text, its log-probability and those of its alternatives."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


def with_logprobs(llm: Any, catcher: MessageCatcher) -> Runnable[Any, Any]:
    """Bind a model to give log-probabilities on its message, which the catcher keeps.

    Labels are asked for as in any structured call. Under a schema they are what the endpoint reports: most give the
    model's own log-probabilities, some those after the schema has ruled tokens out.
    """
    client = without_retries(llm, None)  # the kit itself retries
    bound = client.bind(logprobs=True, top_logprobs=TOP_LOGPROBS)
    return bound.with_config(callbacks=[catcher])  # type: ignore[no-any-return]


def read_tokens(message: Any) -> list[AnswerToken]:
    """Read the tokens with log-probabilities in the metadata of an OpenAI-compatible answer; else an empty list."""
    try:
        entries = message.response_metadata["logprobs"]["content"]
        return [_read_token(entry) for entry in entries[:_MAX_TOKENS]]
    except (TypeError, LookupError, ValueError, AttributeError):
        return []


def _read_token(entry: Mapping[str, Any]) -> AnswerToken:
    """Read one token; raises ValueError if it has no log-probability."""
    pairs = [(known["token"], known["logprob"]) for known in (entry, *(entry.get("top_logprobs") or ()))]
    for text, logprob in pairs:
        # above 0 (but for rounding) or NaN is no log-probability; minus infinity is a probability of 0
        if not isinstance(text, str) or isinstance(logprob, bool) or not logprob <= 1e-6:
            raise ValueError("no token with a log-probability")
    (chosen_text, chosen_logprob), *alternatives = pairs
    return AnswerToken(chosen_text, chosen_logprob, tuple(alternatives))


def tokens_of_entry(tokens: Sequence[AnswerToken], number: int) -> list[AnswerToken]:
    """Return the tokens of one object in a JSON list that a model wrote: that with the ``id`` given as ``number``.

    They begin with its id and end before the next id; the list is empty if no object has the id.
    """
    text = "".join(token.text for token in tokens)
    ends = list(accumulate(len(token.text) for token in tokens))  # offset in the text where each token ends
    ids = list(_ID_FIELD.finditer(text))
    # for each id the position of its token: the first one that ends after the id begins
    starts = [bisect_right(ends, match.start(1)) for match in ids]
    for match, start, next_start in zip(ids, starts, [*starts[1:], len(tokens)], strict=False):
        if int(match[1]) == number:
            return list(tokens[start:next_start])
    return []


def label_probabilities(
    tokens: Sequence[AnswerToken], name: str, label: str, labels: Collection[str]
) -> dict[str, float] | None:
    """Return the probability of each label of a field, from the token that begins the ``label`` the model chose."""
    text = "".join(token.text for token in tokens)
    ends = list(accumulate(len(token.text) for token in tokens))  # offset in the text where each token ends
    # with support and full it matches '"support": "' in '"support": "full"', up to the label
    field_with_label = rf"\b{re.escape(name)}\b\W{{1,12}}(?={re.escape(label)}\b)"
    for match in re.finditer(field_with_label, text, re.IGNORECASE):
        token = tokens[bisect_right(ends, match.end())]  # the one in which the label begins
        probabilities = _sum_by_label([*token.top, (token.text, token.logprob)], labels)
        if probabilities[label] > 0:
            return probabilities
    return None


def _sum_by_label(candidates: Sequence[tuple[str, float]], labels: Collection[str]) -> dict[str, float]:
    """Add up, for each label, the probabilities of tokens that are it or begin it: ``irre`` begins ``irrelevant``."""
    sums = dict.fromkeys(labels, 0.0)
    for text, logprob in dict(candidates).items():  # the chosen token is mostly among the alternatives too
        word = text.strip().lstrip("\"'[:").strip().lower()
        for label in labels if word else ():
            # a token may hold more than the label, as 'full"}', but no longer word, as "fully"
            is_label = word.startswith(label) and not word[len(label) :][:1].isalnum()
            if is_label or label.startswith(word):
                sums[label] += math.exp(logprob)
    return sums
