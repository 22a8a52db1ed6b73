"""Runs: a pipeline asked every example of a set and scored, its results kept in a folder and completed later."""
