"""Marks names of options, and dates in tables, so that site.css can keep them whole; MkDocs calls it."""

import re


def on_page_content(html, **_):
    html = re.sub(r"<td>(\d{4}-\d\d-\d\d)</td>", r'<td class="date">\1</td>', html)
    return re.sub(r"<code>(--[\w-]+)</code>", r'<code class="option">\1</code>', html)
