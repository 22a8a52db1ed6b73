"""Numbers, units, money, dates and identifiers of a text in normal form."""
