"""What a person's actions cost, in seconds and keys.

The keystroke-level model (Card, Moran and Newell 1980, "The keystroke-level model for user performance time with
interactive systems") gives the operators K, P and M. How long it takes to see what a picture shows is not part of it:
``recognise`` and ``scan`` are assumptions of ours, and docs/person.md says what changes with them. A text is read
instead, which takes a time for each of its words (``reading_costs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

WORDS_PER_MINUTE = 238
"""Of silent reading in English (Brysbaert 2019, "How many words do we read per minute?", a mean of 190 studies)."""
MOST_WORDS = 60
"""Of a long text that are read until it is clear what it is about. Assumed."""
SKIMMED = 0.5
"""Share of that time for a text of a page, to see whether it is of the same class as the others. Assumed."""


@dataclass(frozen=True)
class Costs:
    """Seconds of each operator, and how many keys a name takes."""

    key: float = 0.28
    """K: one key pressed by an average typist who is no secretary, 40 words a minute (Card, Moran and Newell)."""
    think: float = 1.35
    """M: mental preparation before an action that is not routine (Card, Moran and Newell)."""
    point: float = 1.1
    """P: pointing at something with the mouse (Card, Moran and Newell)."""
    click: float = 0.2
    """Pressing and releasing the mouse's button (Card, Moran and Newell: 0.1 s each way)."""
    recognise: float = 1.0
    """Looking at one large picture until it is clear what it shows. Assumed: with ``think`` and two keys a picture then
    takes 2.9 s, and 424 of them 20.6 minutes; a reviewer put them at 20 to 25 in a labelling tool."""
    scan: float = 0.4
    """Looking at one thumbnail of a page, to see whether it is of the same class as the others. Assumed."""
    letters: int = 3
    """Letters of a known name that are typed until it is the first in the list; Enter comes on top."""
    hotkeys: int = 36
    """Names that a plain labelling tool gives a key of their own each (digits and letters)."""

    def press(self, n_keys: int) -> float:
        """Seconds of ``n_keys`` keys that follow one decision."""
        return self.think + n_keys * self.key

    @property
    def mouse(self) -> float:
        """Seconds of one decision that is carried out by pointing and clicking."""
        return self.think + self.point + self.click

    def card_keys(self, name: str, *, is_known: bool, is_suggested: bool) -> int:
        """Keys for a name on the page's card: a suggestion's digit; "/", letters and Enter; "n", the name and Enter."""
        if is_suggested:
            return 1
        return 2 + (min(self.letters, len(name)) if is_known else len(name))

    def tool_keys(self, name: str, *, is_known: bool, n_known: int) -> int:
        """Keys for a name in a plain tool: its own key while there are enough; letters and Enter; or all of a new one.

        The letters go into a field that is open already, so that only Enter comes on top.
        """
        if is_known and n_known <= self.hotkeys:
            return 1
        return 1 + (min(self.letters, len(name)) if is_known else len(name))


def reading_costs(costs: Costs, texts: Sequence[str]) -> Costs:
    """The same for a person who reads these texts: as long as one of them takes on average."""
    n_words = mean(min(MOST_WORDS, len(text.split())) for text in texts)
    seconds = 60 * n_words / WORDS_PER_MINUTE
    return replace(costs, recognise=seconds, scan=SKIMMED * seconds)
