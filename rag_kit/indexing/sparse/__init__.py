"""Sparse vectors of any encoder over numpy postings: inner product, filterable, saved without pickle."""
