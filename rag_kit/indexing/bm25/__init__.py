"""BM25 over numpy arrays: exact, incremental, filterable, saved without pickle."""
