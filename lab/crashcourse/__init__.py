"""The course runner and grader: list, start, check, hint; each mark is a fact that the lab found."""
