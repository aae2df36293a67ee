"""Sections of the text page; each takes a diagnosis and returns laid-out lines, or none."""
