"""Runs jobs with torch on any device, real or made up; in a process of its own."""
