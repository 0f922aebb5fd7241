"""Bounded capture and incremental decoding of output."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyshell.sandbox.base import StreamType


class Decoder:
    """Turns the bytes of both streams into text, piece by piece.

    A character that is cut by the border of two pieces waits for its rest; bytes that are no UTF-8 become U+FFFD.
    """

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder('utf-8')
        self._decoders: dict[StreamType, codecs.IncrementalDecoder] = {
            'stdout': make('replace'),
            'stderr': make('replace'),
        }

    def decode(self, stream: StreamType, data: bytes, *, final: bool = False) -> str:
        """The text that is complete now; with `final` a cut character at the end becomes U+FFFD."""
        return self._decoders[stream].decode(data, final)


class Tail:
    """The last `limit` bytes of what was added.

    It holds up to twice that: cutting at every addition would copy the whole tail each time.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        """Add data at the end."""
        self.total += len(data)
        self._data += data
        if len(self._data) > 2 * self.limit:
            del self._data[: -self.limit]

    def text(self) -> str:
        """What is kept, decoded."""
        return decode_tail(bytes(self._data[-self.limit :]), cut=self.total > self.limit)

    @property
    def cut(self) -> bool:
        """Whether something was dropped."""
        return self.total > self.limit


def decode_tail(data: bytes, *, cut: bool) -> str:
    """Decode the end of a stream; when its beginning was cut off, a character that the cut halved is left out."""
    if cut:
        # A UTF-8 character has at most three continuation bytes (RFC 3629).
        start = 0
        while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
            start += 1
        data = data[start:]
    return data.decode('utf-8', 'replace')
