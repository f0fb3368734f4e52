"""Settings that nbgrader and `tools/assignments.py` share."""

import bleach
from nbconvert.filters import markdown2html

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.course_id = "dgbook"

# A starter runs: its functions return nothing, and its tests say so.
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\n..."}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

# Error messages of a test are short; a student's print in a loop is not.
c.LimitOutput.max_lines = 100

# What Markdown makes. Scripts, frames, styles and pictures from elsewhere are
# shown as text.
TAGS = set(
    "a b blockquote br code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i li ol p "
    "pre s span strong sub sup table tbody td th thead tr ul".split()
)


def clean_markdown(text):
    """HTML from Markdown that a stranger wrote."""
    html = markdown2html(text)
    allowed = {"a": ["href", "title"], "*": ["class"]}
    return bleach.clean(html, tags=TAGS, attributes=allowed)


# nbgrader's pages ignore the first line, but use the filter.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = {"markdown2html": clean_markdown}
