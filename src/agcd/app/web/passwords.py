"""Passwords: which ones are good enough, how they are kept, and new ones that nobody can guess."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets

from agcd.errors import ConfigError

MIN_PASSWORD, MAX_PASSWORD = 12, 200
MIN_DIFFERENT = 5
"""Different characters that a password has at least."""
COMMON = frozenset(
    {
        "123456789012",
        "1234567890123",
        "123456789123",
        "password1234",
        "passw0rd1234",
        "password12345",
        "password123456",
        "mypassword123",
        "passwordpassword",
        "qwertyuiop12",
        "qwertyuiop123",
        "qwertyuiopasdfgh",
        "1q2w3e4r5t6y",
        "1qaz2wsx3edc",
        "1q2w3e4r5t6y7u",
        "q1w2e3r4t5y6",
        "administrator",
        "adminadmin123",
        "letmeinletmein",
        "iloveyou1234",
        "changeme1234",
        "changemechangeme",
        "welcome12345",
        "abcdefghijkl",
        "abcdefghijklm",
        "abc123abc123",
    }
)
"""The commonest of those that are long enough."""
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without those that look alike."""
_KEPT = re.compile(r"scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$[A-Za-z0-9+/]{22}==\$[A-Za-z0-9+/]{86}==")
_N, _R, _P, _SALT = 2**14, 8, 5, 16
"""scrypt with 16 MB of memory: about a fifth of a second for each guess."""


def check_password(password: str, name: str = "") -> None:
    """Refuse a password that is quickly guessed; ``name`` is that of its owner."""
    plain = password.casefold()
    if len(password) < MIN_PASSWORD:
        raise ConfigError(f"A password has at least {MIN_PASSWORD} characters; this one has {len(password)}.")
    if len(password) > MAX_PASSWORD:
        raise ConfigError(f"A password has at most {MAX_PASSWORD} characters; this one has {len(password)}.")
    if len(set(plain)) < MIN_DIFFERENT:
        raise ConfigError(f"The password has fewer than {MIN_DIFFERENT} different characters: choose another.")
    if name and name.casefold() in plain:
        raise ConfigError("The password holds the name of its owner: choose another.")
    if plain in COMMON:
        raise ConfigError("This is one of the commonest passwords: choose another.")


def new_password() -> str:
    """A random password of 99 bits that can be read out and typed."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def hash_password(password: str) -> str:
    """``password`` as it is kept: ``scrypt$n$r$p$salt$hash``."""
    salt = secrets.token_bytes(_SALT)
    return f"scrypt${_N}${_R}${_P}${_text(salt)}${_text(_scrypt(password.encode(), salt, _N, _R, _P))}"


def no_password() -> str:
    """What takes as long to check as a kept password, but fits none."""
    return f"scrypt${_N}${_R}${_P}${_text(secrets.token_bytes(_SALT))}${_text(secrets.token_bytes(64))}"


def is_kept_password(text: str) -> bool:
    """Whether ``text`` is what ``hash_password`` makes, with a cost that can be paid."""
    found = _KEPT.fullmatch(text)
    n, r, p = map(int, found.groups()) if found else (0, 0, 0)
    return 1 < n <= 2**18 and n & (n - 1) == 0 and 1 <= r <= 16 and 1 <= p <= 16


def is_password(guess: bytes, kept: str) -> bool:
    """Whether ``guess`` is the password that ``hash_password`` made ``kept`` of."""
    _, n, r, p, salt, expected = kept.split("$")
    found = _scrypt(guess, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(expected))


def _scrypt(password: bytes, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, maxmem=256 * r * (n + p))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
