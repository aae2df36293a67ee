"""What torch's own allocator did while a job ran, out of the history that it keeps."""
