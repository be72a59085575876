"""Content that is compressed once and sent to many."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from typing import Self

from fastapi import Request, Response


@dataclass(frozen=True, slots=True)
class File:
    """Compressed content, and a tag that differs for other content."""

    compressed: bytes
    tag: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        compressed = gzip.compress(content, compresslevel=4, mtime=0)
        return cls(compressed, hashlib.sha256(compressed).hexdigest()[:16])


def answer(request: Request, file: File, media_type: str, cache: str = "no-cache") -> Response:
    """The file, or only that it is what the visitor has already."""
    tag = f'W/"{file.tag}"'
    headers = {"ETag": tag, "Vary": "Accept-Encoding, Cookie", "Cache-Control": cache}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(file.compressed), 200, headers, media_type)
    headers["Content-Encoding"] = "gzip"
    return Response(file.compressed, 200, headers, media_type)
