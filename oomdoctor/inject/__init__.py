"""What runs inside the user's processes: standard library alone, and torch where it is there."""
