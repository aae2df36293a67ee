"""What a data set is in tokens: lengths, padding, packing, and the batch that will be the peak."""
