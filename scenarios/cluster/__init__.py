"""Runs on other machines: the job files around torchrun, and how what the ranks report comes back into a record. Free of torch."""
