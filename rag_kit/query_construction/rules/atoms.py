"""One condition that a question names, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.structured_query import FilterDirective


@dataclass(frozen=True)
class Atom:
    """One condition.

    Attributes:
        begin: Where its words begin, cue words ("published after") included.
        end: Where they end.
        field: The field.
        directive: The condition, without the negation; ``None`` if it is not known, so that everything meets it.
        negated: It must not hold.
        measured: It compares with a date or number.
        denial: What holds instead if it is negated, where that is more than "not".
        exclusive: A document can meet only one such condition on the field: "in 2010 and 2012" means either.
        both: "both ... and": a negation denies the two together.
        X goes on over "or" and "and" to the next one of the list.
    """

    begin: int
    end: int
    field: str
    directive: FilterDirective | None
    negated: bool = False
    exclusive: bool = False
    both: bool = False
    denial: FilterDirective | None = None
    measured: bool = False
