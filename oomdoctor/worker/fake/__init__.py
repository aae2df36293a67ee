"""A card that is not there: torch runs its own operators on it, and each allocation is counted."""
