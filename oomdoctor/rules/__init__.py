"""The rule language and its evaluation; no diagnostic knowledge lives here."""
