"""Searches over trials: edges, frontiers, the fastest setting, the smallest set of fixes.

A search is a generator: it yields rounds of trials that it wants, is sent what came of them, and
returns its answer. It starts nothing, waits for nothing and knows of no process.
"""
