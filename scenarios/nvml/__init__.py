"""What real GPUs report, asked of the driver through NVML.

`sampler.py` and `inventory.py` are processes of their own (`python -m scenarios.nvml.sampler`): a driver that hangs must never hold up
a rank or the web server. Nothing here imports torch.
"""
