"""Brings a sitecustomize.py and a .pth file, which Python would load at its start; the file itself is the starter."""

# + starter
# + beside: sitecustomize.py
# + beside: planted.pth
