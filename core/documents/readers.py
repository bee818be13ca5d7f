"""The reader for each kind of file, imported only when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from core.documents.request import ReadRequest
from core.errors import InputError, ReviewError
from core.records import Source, SourceKind

# Counts up when a reader gives another text or other places: readings are then made anew.
READER_VERSION = "3"

READERS: dict[SourceKind, tuple[str, str]] = {
    "text": ("text", "read_text"),
    "markdown": ("html", "read_markdown"),
    "pdf": ("pdf", "read_pdf"),
    "docx": ("docx", "read_docx"),
    "html": ("html", "read_html"),
    "table": ("tables", "read_table"),
    "image": ("images", "read_image"),
}
CALLED: dict[SourceKind, str] = {
    "text": "text",
    "markdown": "Markdown",
    "pdf": "a PDF",
    "docx": "a Word document",
    "html": "an HTML page",
    "table": "a table",
    "image": "an image",
}
LONGEST_REASON = 120


def read(request: ReadRequest) -> Source:
    """The source in these bytes; its language is still "und".

    Raises:
        InputError: the file cannot be read, for whatever reason; one sentence says why.
    """
    module, function = READERS[request.kind]
    reader: Callable[[ReadRequest], Source] = getattr(
        import_module(f"core.documents.{module}"), function
    )
    try:
        return reader(request)
    except ReviewError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{request.file} needs more memory to be read than is allowed; split it and add "
            "its parts."
        ) from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
        raise InputError(
            f"{request.file} could not be read as {CALLED[request.kind]} ({reason}); "
            "open it in the program it comes from, save it again and add it once more."
        ) from error
