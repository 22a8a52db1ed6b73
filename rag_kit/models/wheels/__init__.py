"""Small models that lie in wheels of the package index, on onnxruntime: no torch, no hub, no network."""
