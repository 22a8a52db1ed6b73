"""Ranking metrics on the ids of the retrieved passages, computed by ir-measures."""
