"""What ``verify`` and ``repair`` found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class IndexReport:
    """The state of an index.

    Attributes:
        problems: What is wrong now, in words; empty for a sound index.
        notes: What is no fault, but worth knowing.
        repaired: What a repair did.
        checked: How much was looked at: ``chunks``, ``vectors``, ``vector rows``, ``keyword rows``.

    Example:
        >>> print(IndexReport(checked={"chunks": 3}))
        ok: checked 3 chunks
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def behind(self, leg: str, *, lost: bool) -> None:
        """Report a saved file that is older than the store: pending changes are a note, a lost file is a problem."""
        if lost:
            self.problems.append(
                f"{leg}: the saved file is lost; the next writer, or repair, writes it again"
            )
        else:
            self.notes.append(
                f"{leg}: changes are pending, which searches read from the store, until a writer's flush() or close()"
            )

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        looked = ", ".join(f"{count} {what}" for what, count in self.checked.items())
        lines = [f"repaired: {what}" for what in self.repaired]
        lines += [f"note: {what}" for what in self.notes]
        lines += [f"problem: {what}" for what in self.problems]
        lines.append(f"{'ok' if self.ok else 'NOT ok'}: checked {looked or 'nothing'}")
        return "\n".join(lines)
