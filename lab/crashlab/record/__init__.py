"""Watching a workload: what it changes on disk, in which order, and a proof that nothing was missed."""
