"""Which image of a project another program means; its paths and URLs are only compared, never opened or fetched."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import parse_qs, unquote, urlsplit

from agcd.errors import DataError

_LONGEST = 4096
_UPLOAD = re.compile(r"(?:.*/)?data/upload/\d+/(?:[0-9a-f]{8}-)?([^/]+)")
"""Label Studio stores an uploaded file as ``/data/upload/<project>/<8 hexadecimal digits>-<name>``."""


class KnownImages:
    """The paths of a project's images, found again from what other programs call them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            self._by_name[_as_uploaded(path.rpartition("/")[2])].append(path)

    def find(self, reference: str) -> str | None:
        """The path that ``reference`` means, or None.

        An equal path is taken first; else the only one of which it is the end, or which is the end of it. Where several
        fit, it is better to ask than to label the wrong image.
        """
        if reference in self._paths:
            return reference
        if len(reference) > _LONGEST:
            return None
        spoken = _spoken_path(reference)
        if spoken in self._paths:
            return spoken
        fitting = self._fitting(spoken)
        if len(fitting) > 1:
            shown = " and ".join(repr(path) for path in sorted(fitting)[:2])
            raise DataError(f"{reference[:100]!r} may be {shown}: the path below the image folder is needed.")
        return fitting[0] if fitting else None

    def _fitting(self, spoken: str) -> list[str]:
        if upload := _UPLOAD.fullmatch(spoken):
            name = upload[1]
            uploaded = self._by_name.get(_as_uploaded(name), [])
            return [path for path in uploaded if path.rpartition("/")[2] == name] or list(uploaded)
        parts = [part for part in spoken.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            return []
        end = "/" + "/".join(parts)
        same_name = self._by_name.get(_as_uploaded(parts[-1]), [])
        return [path for path in same_name if end.endswith(f"/{path}") or f"/{path}".endswith(end)]


def _spoken_path(reference: str) -> str:
    """The path inside a URL, a Windows path with its slashes turned, or the reference itself."""
    try:
        url = urlsplit(reference)
        if url.path.endswith("/data/local-files/"):
            return parse_qs(url.query, max_num_fields=16).get("d", [""])[0]
    except ValueError:  # brackets that are no address, or far too many fields
        return reference
    if len(url.scheme) > 1 or _UPLOAD.fullmatch(url.path):
        return unquote(url.path)
    return unquote(reference).replace("\\", "/")


def _as_uploaded(name: str) -> str:
    """A file name as Label Studio's uploads change it: spaces become underscores, other signs vanish."""
    return re.sub(r"[^\w.-]", "", name.strip().replace(" ", "_"))
