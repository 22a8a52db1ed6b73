"""Results for people: one HTML file that needs no network."""
