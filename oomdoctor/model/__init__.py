"""The values that every other package passes around; nothing here reads, writes or decides."""
