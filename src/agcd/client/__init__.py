"""Talk to a labelling page from Python: ``Client`` to one that is there, ``serve`` to one that is started for it.

Needs the standard library and pydantic, no torch, so that it works in the installation for labelling alone.
"""

from agcd.app.web.review_schemas import Change, ShownAs
from agcd.app.web.schemas import Said
from agcd.client.client import Client, JobFailed, print_progress
from agcd.client.local import LocalPage, ServeError, label_in_browser, serve
from agcd.client.transport import ApiError, NoAnswer

__all__ = [
    "ApiError",
    "Change",
    "Client",
    "JobFailed",
    "LocalPage",
    "NoAnswer",
    "Said",
    "ServeError",
    "ShownAs",
    "label_in_browser",
    "print_progress",
    "serve",
]
