"""Experiments that prove a cause: which to run, and what their outcome means."""
