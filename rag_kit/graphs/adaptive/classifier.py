"""What a question needs: by rule, or by a function of the user's; and the route that follows from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_args

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.adaptive.state import Route
from rag_kit.graphs.running import call_user_function
from rag_kit.prompts.schemas import Classification
from rag_kit.text.complexity import question_kind

#: Of a question and the earlier questions of the thread: a `Classification`, or the name of a route.
Classifier = Callable[[str, Sequence[str]], "Classification | str | Awaitable[Classification | str]"]


class RuleClassifier:
    """Classify by wording, without a model: greetings and talk, comparisons, bridging relations, empty references.

    It is the same each time, and errs to one side: what does not show in the words (a yes/no question with hidden
    steps) counts as one search.

    Example:
        >>> [RuleClassifier()(text).complexity for text in ("Thank you!", "Who wrote Emma?", "Is Emma older than Ada?")]
        ['none', 'single', 'multi']
    """

    def __call__(self, question: str, earlier: Sequence[str] = ()) -> Classification:
        """Classify a question; `earlier` are the user's questions before it."""
        return Classification(**question_kind(question, has_history=bool(earlier))._asdict())


_ROUTES: dict[str, Route] = {"none": "direct", "single": "single", "multi": "multi"}


def route_of(classification: Classification) -> Route | None:
    """The route of a classification; None where it names nothing that is known."""
    if classification.intent == "unclear":
        return "clarify"
    if classification.intent == "chat":
        return "direct"
    return _ROUTES.get(classification.complexity) if classification.intent == "question" else None


async def call_classifier(classifier: Classifier, question: str, earlier: Sequence[str]) -> Classification:
    """Call a classifier; a route that it names becomes a classification."""
    verdict: Any = await call_user_function("classify", classifier, question, earlier)
    if isinstance(verdict, Classification):
        return verdict
    if isinstance(verdict, str):
        intent = "unclear" if verdict == "clarify" else "question"
        return Classification(intent=intent, complexity="none" if verdict == "direct" else verdict, reason="")
    raise InvalidInputError(
        f"the classifier gave {type(verdict).__name__}; it must give a Classification, or one of "
        f"{', '.join(get_args(Route))}."
    )
