"""Results written back to LangSmith, MLflow or Phoenix; only where it is asked for.

Importing this package imports none of their clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.tracking.to_langsmith import alog_to_langsmith, log_to_langsmith
    from rag_kit.evaluation.tracking.to_mlflow import alog_to_mlflow, log_to_mlflow
    from rag_kit.evaluation.tracking.to_phoenix import alog_to_phoenix, log_to_phoenix
    from rag_kit.evaluation.tracking.tracked import Tracked

__all__ = [
    "Tracked",
    "alog_to_langsmith",
    "alog_to_mlflow",
    "alog_to_phoenix",
    "log_to_langsmith",
    "log_to_mlflow",
    "log_to_phoenix",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "Tracked": ".tracked",
        "alog_to_langsmith": ".to_langsmith",
        "alog_to_mlflow": ".to_mlflow",
        "alog_to_phoenix": ".to_phoenix",
        "log_to_langsmith": ".to_langsmith",
        "log_to_mlflow": ".to_mlflow",
        "log_to_phoenix": ".to_phoenix",
    },
)
