"""Finding items by the names of their files, and by what they say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from agcd.types import BoolArray, IntArray


class FileNames:
    """The paths of all rows, as the project knows them, and what those hold that are no files."""

    def __init__(self, paths: Sequence[str], contents: Sequence[str] = ()) -> None:
        self.paths, self.contents = paths, contents

    @cached_property
    def _lower(self) -> list[str]:
        if not self.contents:
            return [path.casefold() for path in self.paths]
        pairs = zip(self.paths, self.contents, strict=False)
        return [f"{path}\n{content}".casefold() for path, content in pairs]

    @cached_property
    def _folder_of(self) -> tuple[list[str], IntArray]:
        folders = [path.rpartition("/")[0] for path in self.paths]
        number = {folder: place for place, folder in enumerate(sorted(set(folders)))}
        return list(number), np.array([number[folder] for folder in folders], np.int64)

    @property
    def folders(self) -> list[str]:
        """Every folder that holds a picture; "" is the folder of the images itself."""
        return self._folder_of[0]

    def containing(self, text: str) -> BoolArray:
        """(n,) whether each path, or what the row says, contains ``text``, in upper or lower case."""
        wanted = text.casefold()
        return np.array([wanted in path for path in self._lower], np.bool_)

    def below(self, folder: str) -> BoolArray:
        """(n,) whether each picture lies in ``folder`` or deeper."""
        folders, of_row = self._folder_of
        is_below = np.array([one == folder or one.startswith(f"{folder}/") for one in folders], np.bool_)
        return np.asarray(is_below[of_row])
