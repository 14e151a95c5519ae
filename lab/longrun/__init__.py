"""A long-running agent with durable state, naive next to correct: the reference that crashlab is tried on.

``python -m longrun run`` runs it; :mod:`longrun.demo` lists it as subjects of crashlab.
"""
