"""The branch that the running code belongs to: how deep it is nested, whether anybody still waits for it."""

from __future__ import annotations

from contextvars import ContextVar

from rag_kit.errors import BranchTimeoutError


class Branch:
    """One branch of a fan-out; carried by a context variable, so that nested fan-outs see it.

    Args:
        parent: The branch that started the fan-out, if any.
    """

    __slots__ = ("_abandoned", "depth", "parent")

    def __init__(self, parent: Branch | None) -> None:
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self._abandoned = False

    def abandon(self) -> None:
        """Say that nobody waits for this branch any more."""
        self._abandoned = True

    @property
    def abandoned(self) -> bool:
        """Whether this branch or one around it was abandoned."""
        branch: Branch | None = self
        while branch is not None:
            if branch._abandoned:
                return True
            branch = branch.parent
        return False


current_branch: ContextVar[Branch | None] = ContextVar("rag_kit_branch", default=None)


def check_abandoned() -> None:
    """Stop a branch that is still running although nobody waits for it.

    A thread cannot be killed; this lets an abandoned one end at its next model call or nested fan-out.

    Raises:
        BranchTimeoutError: If the current branch, or one around it, was abandoned.
    """
    branch = current_branch.get()
    if branch is not None and branch.abandoned:
        raise BranchTimeoutError(
            "This branch was abandoned (its time-out passed, or its fan-out was stopped); it ends here."
        )
