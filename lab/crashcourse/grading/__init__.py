"""Grading a folder of submissions: each judged in processes of its own, and nothing that one does stops the others."""
