"""Lesson 7: an event log that is the only truth; messages, views and contexts follow from it."""
