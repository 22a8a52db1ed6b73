"""One write path for text, metadata, vectors and the keyword index of a set of documents."""
