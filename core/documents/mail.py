"""Reads e-mails (.eml) and web pages saved as one file (.mhtml).

The parts are decoded here and read by the reader of their type. Of a text in several forms, the
HTML one is read, as mail programs show it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.errors import MessageError
from email.message import EmailMessage
from email.policy import EmailPolicy
from typing import Any

from core.documents.readers import ENCODING_OF_LABEL, decode_page, detect_kind, read_file
from core.documents.source_builder import ReadRequest, SourceBuilder, text_block
from core.runtime.errors import InputError
from core.schema.records import Source

SHOWN_HEADERS = ("From", "To", "Cc", "Date")
MAIL_TYPES = ("message/rfc822", "message/global")
CSS = "text/css"
SIGNATURES = ("pgp-signature", "pkcs7-signature", "x-pkcs7-signature")
ATTACHED_MAIL_NAME = "attached message.eml"
# What the parsers of the standard library raise at malformed headers.
HEADER_ERRORS = (
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MessageError
)  # fmt: skip


class _LenientPolicy(EmailPolicy):
    """Returns malformed headers as they are written; those of a part's form count as empty."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        try:
            return super().header_fetch_parse(name, value)
        except HEADER_ERRORS:
            is_form = name.lower().startswith("content-")
            return self.header_factory(name, "") if is_form else " ".join(value.split())


# Attached mails keep the lines of their headers, as malformed ones cannot be wrapped anew.
POLICY = _LenientPolicy(refold_source="none")


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
    for part in _list_parts(message):
        name = part.get_filename() or ""
        is_text = part.get_content_maintype() == "text" and not part.is_attachment()
        if part is body or (is_text and not name):
            if part is body or _decode_part(part).removeprefix(codecs.BOM_UTF8).strip():
                draft.add_source(_read_text(request, part))
        elif part.is_multipart() and part.get_content_type() not in MAIL_TYPES:
            draft.note(f"A part of this e-mail ({part.get_content_type()}) is not read.")
        else:
            _add_attachment(draft, request, part, name)
    return draft.finish()


def _add_attachment(
    draft: SourceBuilder, request: ReadRequest, part: EmailMessage, name: str
) -> None:
    is_mail = part.get_content_type() in MAIL_TYPES
    name = name or (ATTACHED_MAIL_NAME if is_mail else "attachment")
    data = _decode_part(part)
    try:
        kind = "mail" if is_mail else detect_kind(name, data)
        attachment = read_file(replace(request, name=name, data=data, kind=kind))
    except InputError as error:
        draft.note(str(error))
    else:
        draft.add_blocks([text_block("heading", name)])
        draft.add_source(attachment)


def read_web_archive(request: ReadRequest) -> Source:
    """Read the page of a web archive. Raises InputError: it has none, or too much text."""
    page = next((p for p in _parse(request).walk() if p.get_content_type() == "text/html"), None)
    if not isinstance(page, EmailMessage):
        raise InputError(
            f"{request.file} has no web page in it; save the page again as .html or .mhtml and add "
            "it once more."
        )
    return replace(_read_text(request, page), kind=request.kind)


def _parse(request: ReadRequest) -> EmailMessage:
    message = message_from_bytes(request.data, policy=POLICY)
    assert isinstance(message, EmailMessage)  # noqa: S101 - this policy makes these
    return message


def _list_parts(part: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts without parts of their own: texts in one form each, and attachments.

    Left out are signatures, and pictures and styles shown inside a page.
    """
    subtype = part.get_content_subtype()
    is_container = part.get_content_maintype() == "multipart" and part.is_multipart()
    if not is_container or subtype == "encrypted":
        if subtype not in SIGNATURES:
            yield part
        return
    inner = [one for one in part.iter_parts() if isinstance(one, EmailMessage)]
    body = part.get_body(("html", "plain"))
    is_choice = subtype == "alternative" and body is not None
    for one in inner[:1] if subtype == "signed" else inner:
        is_other_form = is_choice and all(leaf is not body for leaf in one.walk())
        for leaf in _list_parts(one):
            is_aside = is_other_form and (leaf is one or not leaf.get_filename())
            if subtype == "related":
                is_aside = leaf.get_content_maintype() == "image" or leaf.get_content_type() == CSS
            if leaf.is_attachment() or not is_aside:
                yield leaf


def _read_text(request: ReadRequest, part: EmailMessage) -> Source:
    is_page = part.get_content_subtype() == "html"
    return read_file(replace(request, data=_decode_part(part), kind="html" if is_page else "text"))


def _decode_part(part: EmailMessage) -> bytes:
    """Return the part's bytes; text becomes UTF-8 with a BOM, which every reader goes by."""
    if part.get_content_type() in MAIL_TYPES:
        inner = part.get_payload(0)
        return inner.as_bytes(policy=POLICY) if isinstance(inner, EmailMessage) else b""
    data = part.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    if part.get_content_maintype() != "text":
        return data
    charset = part.get_content_charset("")
    try:
        text = data.decode(ENCODING_OF_LABEL.get(charset, charset), "replace")
    except (LookupError, ValueError):  # no encoding is given, or an unknown one
        text = decode_page(data)[0]
    return codecs.BOM_UTF8 + text.encode("utf-8", "replace")
