"""Citations in an answer: found, matched with a verbatim quote, and checked."""
