"""Settings that nbgrader and `tools/assignments.py` share."""

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.course_id = "dgbook"

# A starter runs: its functions return nothing, and its tests say so.
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\n..."}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

# Error messages of a test are short; a student's print in a loop is not.
c.LimitOutput.max_lines = 100
