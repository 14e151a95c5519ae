"""From a trace to crash states: what each fault may leave on disk."""
