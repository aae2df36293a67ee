"""Tools for people who write rules: self-tests, mutation, linter, pages, schema."""
