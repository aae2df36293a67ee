"""Lint: rules that need no failure, judged on configs before a job is started."""
