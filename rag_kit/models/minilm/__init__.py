"""all-MiniLM-L6-v2 on onnxruntime: English sentence vectors without torch and without a network."""
