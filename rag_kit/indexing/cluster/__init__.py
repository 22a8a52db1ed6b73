"""The work of an ingest on a ``dask.distributed`` cluster: workers read, split, represent and embed."""
