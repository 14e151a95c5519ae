"""Three ways to keep a session, from the simplest on, at one piece of work: what each survives, and what it knows."""
