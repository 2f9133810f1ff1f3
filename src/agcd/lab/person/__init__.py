"""A person who knows the truth, played by a script: at the page over HTTP, and against the clock (docs/person.md)."""
