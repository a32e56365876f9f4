"""Builds `harmony_stream/o200k_harmony.bin` from the official file `o200k_base.tiktoken`.

    python scripts/build_vocabulary.py path/to/o200k_base.tiktoken

The official file has one line for each token, `base64(bytes) id`, ids counting from 0. The data
are pages of 8192 tokens, each a zlib stream of its own: two bytes for the number of tokens, one
byte of length for each, then the bytes of all of them. In front stand the sizes of the pages, four
bytes each; all numbers begin with the lowest byte. Two checksums are printed that belong into
`harmony_stream/vocabulary.py`: they are those of the compressed bytes, which another zlib may
choose differently.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zlib
from pathlib import Path

OFFICIAL_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
PAGE = 8192
TARGET = Path(__file__).parent.parent / "harmony_stream" / "o200k_harmony.bin"


def pack(official: bytes) -> bytes:
    """The embedded data for the text of the official file."""
    found = hashlib.sha256(official).hexdigest()
    if found != OFFICIAL_SHA256:
        raise SystemExit(f"not o200k_base.tiktoken: expected sha256 {OFFICIAL_SHA256}, got {found}")
    tokens = [base64.b64decode(line.split()[0]) for line in official.splitlines()]
    pages = [pack_page(tokens[at : at + PAGE]) for at in range(0, len(tokens), PAGE)]
    sizes = (len(page).to_bytes(4, "little") for page in pages)
    return b"".join([*sizes, *pages])


def pack_page(tokens: list[bytes]) -> bytes:
    """One page."""
    count = len(tokens).to_bytes(2, "little")
    return zlib.compress(count + bytes(map(len, tokens)) + b"".join(tokens), 9)


def main() -> None:
    packed = pack(Path(sys.argv[1]).read_bytes())
    TARGET.write_bytes(packed)
    print(f"{TARGET}: {len(packed)} bytes")
    print(f"crc32 {zlib.crc32(packed):#010x}")
    print(f"sha256 {hashlib.sha256(packed).hexdigest()}")


if __name__ == "__main__":
    main()
