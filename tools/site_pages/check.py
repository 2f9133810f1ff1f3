"""What mkdocs does not look at in the pages it has built: ``python tools/site_pages/check.py SITE``."""

from __future__ import annotations

import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "audio": ("src",),
    "video": ("src", "poster"),
    "source": ("src", "srcset"),
    "object": ("data",),
    "embed": ("src",),
    "link": ("href",),
    "input": ("src",),
}
"""What a browser fetches by itself, by element. ``<a href>`` is only followed when somebody clicks."""
_IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+(?=["']))["']?([^"')\s]+)""")


class Page(HTMLParser):
    """What a page loads, where it leads, and the places in it that can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.anchors: set[str] = set()
        self._is_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self._is_style = tag == "style"
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.leads.append(values["href"])
        if tag == "link" and values.get("rel") in ("canonical", "next", "prev", "alternate"):
            return
        for name in LOADED.get(tag, ()):
            if name in values:
                self.loads += (
                    [part.split()[0] for part in values[name].split(",") if part.strip()]
                    if name == "srcset"
                    else [values[name]]
                )
        self.loads += _IN_STYLES.findall(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self.loads += _IN_STYLES.findall(data)
            self._is_style = False


def faults(site: Path) -> list[str]:
    """Whatever is loaded from another host, and links to pages, files and places that are not there."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = [
        f"{name} loads {address}" for name, page in pages.items() for address in page.loads if is_elsewhere(address)
    ]
    for style in site.rglob("*.css"):
        loads = _IN_STYLES.findall(style.read_text(encoding="utf-8"))
        found += [f"{style.relative_to(site)} loads {address}" for address in loads if is_elsewhere(address)]
    for name, page in pages.items():
        for address in [*page.loads, *page.leads]:
            if not is_elsewhere(address) and not address.startswith(("data:", "mailto:", "javascript:")):
                found += _missing(name, address, pages, site)
    return sorted(set(found))


def is_elsewhere(address: str) -> bool:
    """Whether it names a host."""
    return bool(urlsplit(address).netloc)


def _missing(name: str, address: str, pages: dict[str, Page], site: Path) -> list[str]:
    parts = urlsplit(address)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
    path = path.lstrip("/") if name == "404.html" else path  # it is shown wherever a page is missing
    if (site / path).is_dir():
        path = posixpath.normpath(posixpath.join(path, "index.html"))
    if not (site / path).is_file():
        return [f"{name} leads to {address}: there is no {path}"]
    anchor = unquote(parts.fragment)
    if anchor and path in pages and anchor not in pages[path].anchors:
        return [f"{name} leads to {address}: {path} has no #{anchor}"]
    return []


if __name__ == "__main__":
    told = faults(Path(sys.argv[1]))
    print("\n".join(told) or "every link leads somewhere, and nothing is loaded from elsewhere")
    sys.exit(bool(told))
