"""Memory snapshots of PyTorch: safe reading, and replay through the allocator model."""
