"""Text to SQL: a model writes one SELECT statement for a question, which runs under guards."""
