"""Reading files into documents: one converter a format, run in a separate, limited process."""
