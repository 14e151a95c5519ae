"""Faults that happen for real, beside the computed ones, to show that the model does not lie."""
