"""The files in a tar archive, gzipped or not, read in memory: nothing is written anywhere."""

from __future__ import annotations

import io
import tarfile
import zlib

from core.config import MEGABYTE
from core.errors import InputError
from core.formats.packed import GZIP, MOST_MEGABYTES, MOST_ROW, MOST_ROWS, unzipped
from core.formats.shown import shown

MAGIC, PLACE = b"ustar", 257


def is_tar(data: bytes) -> bool:
    """Whether the bytes, unzipped where they are gzipped, begin as an archive does."""
    head, end = data, PLACE + len(MAGIC)
    if data.startswith(GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(data, end)
        except zlib.error:
            return False
    return head[PLACE:end] == MAGIC


def tarred(name: str, data: bytes) -> list[tuple[str, bytes]]:
    """(name, bytes) of each ordinary file in the archive, in its order.

    Raises:
        InputError: it is damaged, or holds too much.
    """
    found: list[tuple[str, bytes]] = []
    plain = unzipped(shown(name), data) if data.startswith(GZIP) else data
    if len(plain) > MOST_MEGABYTES * MEGABYTE:
        raise InputError(
            f"{shown(name)}: expected at most {MOST_MEGABYTES} MB, found more; split the archive."
        )
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for member in archive:
                stream = archive.extractfile(member) if _is_ordinary(member) else None
                if stream is None:
                    continue
                if member.size > MOST_ROW or len(found) >= MOST_ROWS:
                    raise InputError(
                        f"{shown(name)}: expected at most {MOST_ROWS:,} files of {MOST_ROW:,} "
                        "bytes, found more; split the archive."
                    )
                found.append((member.name, stream.read(MOST_ROW)))
    except (tarfile.TarError, ValueError, OSError) as error:
        raise InputError(
            f"{shown(name)}: expected a whole tar archive, found: {error}; copy it again."
        ) from error
    return found


def _is_ordinary(member: tarfile.TarInfo) -> bool:
    """A file as it lies: no link, no device, and none that unfolds to more than is there."""
    return member.isfile() and not member.issparse()
