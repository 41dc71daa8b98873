"""What the work of one training step costs on a named GPU: time, bytes and memory. Free of torch."""
