"""Lesson 3, resume: going on from a checkpoint. Naive modules beside the correct one."""
