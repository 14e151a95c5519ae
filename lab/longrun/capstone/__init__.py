"""Lesson 6, capstone: the whole harness, judged by evidence. Naive modules beside the correct one."""
