"""Reads e-mails (.eml) and web pages saved as one file (.mhtml).

The parts are decoded here and read by the reader of their type. Of a body in several forms, the
HTML one is read, as mail programs show it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage

from core.documents.readers import ENCODING_OF_LABEL, decode_page, detect_kind, read_file
from core.documents.source_builder import ReadRequest, SourceBuilder, text_block
from core.runtime.errors import InputError
from core.schema.records import Source, SourceKind

SHOWN_HEADERS = ("From", "To", "Cc", "Date")
ATTACHED_MAIL_NAME = "attached message.eml"


def read_mail(request: ReadRequest) -> Source:
    """Read an e-mail: subject, sender, receivers, date, body and attachments.

    An attachment that cannot be read is named in a note.

    Raises InputError: it has no headers, its body cannot be read, or it holds too much text.
    """
    message = _parse(request)
    if not message.keys():
        raise InputError(
            f"{request.file} has no header of an e-mail; save it as .txt if it is plain text, and "
            "add it again."
        )
    draft = SourceBuilder(request)
    draft.add_blocks([text_block("heading", str(message["Subject"] or ""))])
    draft.add_blocks(
        text_block("paragraph", f"{name}: {message[name]}")
        for name in SHOWN_HEADERS
        if message[name]
    )
    body = message.get_body(("html", "plain"))
    if isinstance(body, EmailMessage):
        draft.add_source(_read_part(request, body, request.name, _kind_of_text(body)))
    for name, part in _list_attachments(message):
        try:
            kind = detect_kind(name, _decode_part(part))
            attachment = _read_part(request, part, name, kind)
        except InputError as error:
            draft.note(str(error))
        else:
            draft.add_blocks([text_block("heading", name)])
            draft.add_source(attachment)
    return draft.finish()


def read_web_archive(request: ReadRequest) -> Source:
    """Read the page of a web archive. Raises InputError: it has none, or too much text."""
    page = next((p for p in _parse(request).walk() if p.get_content_type() == "text/html"), None)
    if not isinstance(page, EmailMessage):
        raise InputError(
            f"{request.file} has no web page in it; save the page again as .html or .mhtml and add "
            "it once more."
        )
    return replace(_read_part(request, page, request.name, "html"), kind=request.kind)


def _parse(request: ReadRequest) -> EmailMessage:
    message = message_from_bytes(request.data, policy=policy.default)
    assert isinstance(message, EmailMessage)  # noqa: S101 - the default policy makes these
    return message


def _list_attachments(message: EmailMessage) -> Iterator[tuple[str, EmailMessage]]:
    """Yield attachments with their names; pictures shown inside the body are no attachments."""
    for part in message.iter_attachments():
        if isinstance(part, EmailMessage) and part.get_content_type() == "message/rfc822":
            yield part.get_filename() or ATTACHED_MAIL_NAME, part
        elif isinstance(part, EmailMessage) and part.is_attachment():
            yield part.get_filename() or "attachment", part


def _kind_of_text(part: EmailMessage) -> SourceKind:
    return "html" if part.get_content_subtype() == "html" else "text"


def _read_part(request: ReadRequest, part: EmailMessage, name: str, kind: SourceKind) -> Source:
    return read_file(replace(request, name=name, data=_decode_part(part), kind=kind))


def _decode_part(part: EmailMessage) -> bytes:
    """Return the part's bytes; text becomes UTF-8 with a BOM, which every reader goes by."""
    if part.get_content_type() == "message/rfc822":
        return bytes(part.get_content())
    data = part.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    if part.get_content_maintype() != "text":
        return data
    charset = part.get_content_charset("")
    try:
        text = data.decode(ENCODING_OF_LABEL.get(charset, charset), "replace")
    except LookupError:  # no encoding is given, or an unknown one
        text = decode_page(data)[0]
    return codecs.BOM_UTF8 + text.encode("utf-8", "replace")
