"""Estimates: which engine speaks, what it says, and on which cards the job fits."""
