"""Lesson 5, rewind and fork: all saves are kept, and one goes on from any of them. Naive modules beside correct."""
