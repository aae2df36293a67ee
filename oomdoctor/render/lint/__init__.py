"""The report of a lint run in the formats that people and machines read."""
