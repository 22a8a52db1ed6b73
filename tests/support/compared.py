"""Scores and hits of two pipelines on the same questions, whose tests were computed by hand and with SciPy."""

from __future__ import annotations

A = [0.9, 0.8, 0.7, 0.6, 0.9, 0.8, 0.75, 0.85]
B = [0.7, 0.8, 0.6, 0.5, 0.7, 0.8, 0.70, 0.65]
FIRST = [1, 1, 1, 0, 0, 1, 0, 1, 1, 0]
SECOND = [1, 0, 1, 1, 0, 1, 1, 1, 0, 0]
