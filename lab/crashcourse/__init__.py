"""The course's own tools. There are none yet; the lessons, exercises and grader that they serve come first."""
