"""One file per step, in order; a step is never changed once it has been released."""
