"""The result of a check: one model, and its views as text, JSON and a folder on disk."""
