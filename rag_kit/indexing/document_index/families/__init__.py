"""Documents that are searched by their parts: parents and children in one transaction."""
