"""The hash function of caches, loaded without OpenSSL, which takes 4 ms."""

from __future__ import annotations

DIGEST = 32
"""Bytes of a digest."""


def digest_of(*parts: bytes | memoryview) -> bytes:
    """Return a digest of some bytes, one after the other.

    >>> digest_of(b"ab", b"c") == digest_of(b"abc") != digest_of(b"abd"), len(digest_of(b""))
    (True, 32)
    """
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    made = blake2b(digest_size=DIGEST)
    for part in parts:
        made.update(part)
    return made.digest()
