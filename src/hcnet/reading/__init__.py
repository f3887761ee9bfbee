r"""From parts to text: names of parts, and the text of pages whose parts have names.

::

    name_parts(model, read_names("names.csv"))
    for page in read_text(model, X):
        print("\n".join(page))
"""

from hcnet.reading.pages import PLACEHOLDER, PageText, read_pages, read_text
from hcnet.reading.part_names import name_parts, read_names

__all__ = ["PLACEHOLDER", "PageText", "name_parts", "read_names", "read_pages", "read_text"]
