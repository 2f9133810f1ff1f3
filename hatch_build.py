"""What the metadata of a release says of its address, which is known only when it is built: ``AGCD_URL=https://…``.

Without ``AGCD_URL`` there are no links, and the README stays as it is. With it, project URLs point there, and so do the
README's links into this tree, which would lead nowhere on the page of a package index. ``packaging/serve`` uses it too.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#|mailto:)([^)\s]+)\)")


class ReleaseMetadata(MetadataHookInterface):
    """Fills in the fields that ``pyproject.toml`` calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the ``[project]`` table."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if address := os.environ.get("AGCD_URL", "").rstrip("/"):
            check_address(address)
            version = released_version(Path(__file__).parent)
            metadata["urls"] = project_urls(address, version)
            text = with_whole_links(text, f"{address}/{{}}/v{version}", self.config.get("folder", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def check_address(address: str) -> None:
    """Refuse what no package index would show as a link."""
    found = urlsplit(address)
    if found.scheme != "https" or not found.netloc or found.query or found.fragment:
        raise ValueError(f"AGCD_URL={address!r} is not an address of a repository such as https://host/team/agcd.")


def released_version(tree: Path) -> str:
    """The version that both distributions carry."""
    found = re.search(r'^__version__ = "([^"]+)"', (tree / "src/agcd/__init__.py").read_text("utf-8"), re.MULTILINE)
    assert found
    return found[1]


def project_urls(address: str, version: str) -> dict[str, str]:
    """The links of a release, as the page of a package index shows them."""
    return {
        "Source": address,
        "Documentation": f"{address}/tree/v{version}/docs",
        "Changelog": f"{address}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def with_whole_links(text: str, tree: str, folder: str = "") -> str:
    """``text`` with its links into the tree as addresses; ``tree`` has a place for "blob" (a page) or "raw" (a file).

    ``folder`` is where the text lies in the tree.
    """

    def whole(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}{found[2]}({tree.format(kind)}/{posixpath.normpath(posixpath.join(folder, found[3]))})"

    return _RELATIVE_LINK.sub(whole, text)
