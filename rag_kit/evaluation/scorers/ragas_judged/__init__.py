"""Ragas's metrics that ask the judge; the value is always what Ragas's class computes."""

from __future__ import annotations
