"""Lesson 1, memory is not state: what a kill takes. Both modules are naive; the correct one is that of lesson 2."""
