"""Query expansion: more terms for keyword search, from a model or a thesaurus."""
