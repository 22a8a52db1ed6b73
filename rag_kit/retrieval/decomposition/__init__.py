"""Decomposition: a question split into parts, searched for side by side or one after the other."""
