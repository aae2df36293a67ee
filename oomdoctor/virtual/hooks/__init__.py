"""What Python loads at the start of a process on virtual cards; it stands first in PYTHONPATH."""
