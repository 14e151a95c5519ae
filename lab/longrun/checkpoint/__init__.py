"""Lesson 2, checkpoints: where the execution state is kept, and when. Naive modules beside the correct one."""
