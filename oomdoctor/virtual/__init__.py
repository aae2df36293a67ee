"""A stub driver on which the CUDA host code of torch runs without a card."""
