"""Lesson 4, effects: acts that are done once, or honestly unknown. Naive modules beside the correct one."""
