"""Named people, each with a role and a password, in ``people.json`` of the project; only hashes are kept there."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from filelock import FileLock

from agcd.app.create import PEOPLE, RECORDS
from agcd.app.store.classes import clean_text
from agcd.app.web.passwords import (
    check_password,
    hash_password,
    is_kept_password,
    is_password,
    new_password,
    no_password,
)
from agcd.errors import ConfigError, DataError, did_you_mean
from agcd.io import read_sealed, write_sealed

LONGEST_NAME = 60
"""As ``schemas.Who`` has it."""
_Stamp = tuple[int, int, int]


class Role(StrEnum):
    """What a person may do; each role may also do what those before it may."""

    VIEW = "view"
    LABEL = "label"
    MANAGE = "manage"

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class Person:
    """Somebody who may log in; ``secret`` is the hash of the password."""

    name: str
    role: Role
    secret: str


class People:
    """Those in the file as it is now: whoever is taken out of it is out at once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PEOPLE
        self._stamp: _Stamp | None = None
        self._people: dict[str, Person] = {}
        self._key, self._nobody = secrets.token_bytes(32), no_password()
        self._known: dict[str, tuple[str, bytes]] = {}

    def now(self) -> dict[str, Person]:
        """Everybody by name; ``DataError`` if the file is damaged."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._people = read_people(self._path)
            self._stamp = stamp
        return self._people

    def exist(self) -> bool:
        """Whether somebody is, or a damaged file hides who."""
        try:
            return bool(self.now())
        except DataError:
            return True

    def is_known(self, name: str, guess: bytes) -> Person | None:
        """The person, if this very password was found right before: scripts send it with every request."""
        person = self.now().get(name)
        kept = self._known.get(name)
        is_same = person and kept and kept[0] == person.secret and hmac.compare_digest(kept[1], self._digest(guess))
        return person if is_same else None

    def check(self, name: str, guess: bytes) -> Person | None:
        """The person, if the password is right. It takes a fifth of a second, for names that do not exist too."""
        person = self.now().get(name)
        if not is_password(guess, person.secret if person else self._nobody) or person is None:
            return None
        self._known[name] = (person.secret, self._digest(guess))
        return person

    def _digest(self, guess: bytes) -> bytes:
        """What the memory of this process keeps of a password; the key is never written down."""
        return hashlib.blake2b(guess, key=self._key).digest()


def read_people(path: Path) -> dict[str, Person]:
    """The people of a file by name; nobody if there is none."""
    try:
        listed = read_sealed(path)["people"]
        people = [Person(str(each["name"]), Role(each["role"]), str(each["secret"])) for each in listed]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{path} is damaged: mend it, or delete it and add everybody anew.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): nobody in it can log in.") from None
    is_sound = all(is_kept_password(person.secret) for person in people)
    if not is_sound or len({person.name for person in people}) < len(people):
        raise DataError(f"{path} is damaged: mend it, or delete it and add everybody anew.")
    return {person.name: person for person in people}


def add_person(folder: Path, name: str, role: Role, password: str | None = None) -> str:
    """Let somebody in; the password, which is random unless one is given."""
    name = _clean_name(name)
    password, secret = _new_secret(password, name)

    def add(people: dict[str, Person]) -> None:
        if taken := next((each for each in people if each.casefold() == name.casefold()), None):
            raise ConfigError(f"{taken} is there already: give a new password with reset, or another role with role.")
        people[name] = Person(name, role, secret)

    _change(folder, add)
    return password


def remove_person(folder: Path, name: str) -> None:
    """Let somebody in no longer; what they answered stays."""
    _change(folder, lambda people: people.pop(_known(people, name).name))


def change_role(folder: Path, name: str, role: Role) -> None:
    """Let a person do more or less, from their next request on."""

    def change(people: dict[str, Person]) -> None:
        person = _known(people, name)
        people[person.name] = replace(person, role=role)

    _change(folder, change)


def reset_password(folder: Path, name: str, password: str | None = None) -> str:
    """A new password for a person, who is logged out everywhere."""
    password, secret = _new_secret(password, name)

    def change(people: dict[str, Person]) -> None:
        person = _known(people, name)
        people[person.name] = replace(person, secret=secret)

    _change(folder, change)
    return password


def role_named(word: str) -> Role:
    """The role that a user writes."""
    try:
        return Role(word)
    except ValueError:
        raise ConfigError(f"There is no role {word!r}.{did_you_mean(word, (role.value for role in Role))}") from None


def people_of(folder: Path) -> list[Person]:
    """Everybody, by name."""
    _check_project(folder)
    return sorted(read_people(folder / PEOPLE).values(), key=lambda person: person.name.casefold())


def _change(folder: Path, change: Callable[[dict[str, Person]], object]) -> None:
    """Read, change and write the file; two commands at once do so one after the other."""
    _check_project(folder)
    path = folder / PEOPLE
    with FileLock(folder / f".{PEOPLE}.lock", mode=0o600):
        people = read_people(path)
        change(people)
        write_sealed(path, {"people": [asdict(person) for person in people.values()]}, private=True)


def _check_project(folder: Path) -> None:
    if not (folder / RECORDS).is_file():
        raise DataError(f"There is no project at {folder}: make one with agcd init.")


def _known(people: dict[str, Person], name: str) -> Person:
    if name not in people:
        listed = ", ".join(sorted(people)) or "nobody yet"
        raise ConfigError(f"Nobody is called {name!r}; there is {listed}.")
    return people[name]


def _clean_name(name: str) -> str:
    name = clean_text(name, "name of a person")
    if len(name) > LONGEST_NAME or ":" in name:
        raise ConfigError(f"The name of a person has at most {LONGEST_NAME} characters and no colon.")
    return name


def _new_secret(password: str | None, name: str) -> tuple[str, str]:
    """A password, the one given or a random one, and what is kept of it."""
    if password:
        check_password(password, name)
    password = password or new_password()
    return password, hash_password(password)


def _stamp(path: Path) -> _Stamp | None:
    """What changes whenever the file does: every change puts another file in its place."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
