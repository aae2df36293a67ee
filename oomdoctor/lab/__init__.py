"""Starts the worker, which alone knows torch, and speaks with it."""
