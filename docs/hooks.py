"""Marks names of options on the site, so that site.css can keep them whole; MkDocs calls it."""

import re


def on_page_content(html, **_):
    return re.sub(r"<code>(--[\w-]+)</code>", r'<code class="option">\1</code>', html)
