"""What a finished record says: where time went, why, and the same as a trace. From spans and samples alone; free of torch."""
