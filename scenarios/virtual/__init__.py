"""Virtual GPUs: how long the work of a real training run would take on the named card. Free of torch.

All times are integer nanoseconds of virtual time, a function of config, code and cost table alone: never of the wall clock.
"""
