"""An OpenID Connect provider on this computer: discovery, authorize, token, keys, end of session.

It is strict where a real one is: a code is good once, for the client and address that asked for
it, and the token request proves the client's secret and the code's verifier (PKCE).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "counterpoint"
CLIENT_SECRET = "a secret between the two"


@dataclass
class Provider:
    """The provider, with the claims of the people whom it knows by the name on their button."""

    people: Mapping[str, Mapping[str, object]]
    redirect_uri: str
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    sessions_ended: int = 0
    server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Its address, which is also the issuer."""
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.server_port}"

    def start(self) -> None:
        """Answer from now on."""
        provider = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.get(self)

            def do_POST(self) -> None:
                provider.post(self)

            def log_message(self, *_: Any, **__: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()

    def secrets_file(self, **changes: str) -> str:
        """An `[auth]` section for this provider."""
        values = {
            "redirect_uri": self.redirect_uri,
            "cookie_secret": "0123456789abcdef" * 4,
            "client_id": CLIENT,
            "client_secret": CLIENT_SECRET,
            "server_metadata_url": f"{self.url}/.well-known/openid-configuration",
        } | changes
        return "[auth]\n" + "".join(f'{name} = "{value}"\n' for name, value in values.items())

    def get(self, request: BaseHTTPRequestHandler) -> None:
        """Discovery, keys, the page of the people, the way back, the end of a session."""
        parts = urlsplit(request.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/.well-known/openid-configuration":
            _json(request, 200, self._discovery())
        elif parts.path == "/jwks":
            _json(request, 200, {"keys": [self.key.as_dict(private=False)]})
        elif parts.path == "/authorize":
            self._authorize(request, asked)
        elif parts.path == "/chosen" and asked.get("person") in self.people:
            code = secrets.token_urlsafe()
            self.codes[code] = asked
            back = urlencode({"code": code, "state": asked["state"]})
            _redirect(request, f"{self.redirect_uri}?{back}")
        elif parts.path == "/end" and asked.get("post_logout_redirect_uri") == self.redirect_uri:
            self.sessions_ended += 1
            _redirect(request, self.redirect_uri)
        else:
            _json(request, 400, {"error": "invalid_request"})

    def _discovery(self) -> dict[str, object]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "end_session_endpoint": f"{self.url}/end",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _authorize(self, request: BaseHTTPRequestHandler, asked: Mapping[str, str]) -> None:
        is_right = (
            asked.get("client_id") == CLIENT
            and asked.get("redirect_uri") == self.redirect_uri
            and asked.get("response_type") == "code"
            and asked.get("code_challenge_method") == "S256"
            and "openid" in asked.get("scope", "").split()
        )
        if not is_right:
            _json(request, 400, {"error": "invalid_request", "found": dict(asked)})
            return
        links = "".join(
            f'<p><a href="/chosen?{html.escape(urlencode({**asked, "person": name}))}">'
            f"{html.escape(name)}</a></p>"
            for name in self.people
        )
        _send(request, 200, "text/html", f"<h1>Who are you?</h1>{links}".encode())

    def post(self, request: BaseHTTPRequestHandler) -> None:
        """A code becomes tokens, once."""
        size = int(request.headers.get("Content-Length") or 0)
        given = {k: v[0] for k, v in parse_qs(request.rfile.read(size).decode()).items()}
        asked = self.codes.pop(given.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT}:{CLIENT_SECRET}".encode()).decode()
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        is_right = (
            asked is not None
            and urlsplit(request.path).path == "/token"
            and given.get("grant_type") == "authorization_code"
            and given.get("redirect_uri") == self.redirect_uri
            and asked["code_challenge"] == challenge
            and request.headers.get("Authorization") == f"Basic {basic}"
        )
        if asked is None or not is_right:
            _json(request, 400, {"error": "invalid_grant"})
            return
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 600,
            "nonce": asked["nonce"],
            **self.people[asked["person"]],
        }
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        _json(
            request,
            200,
            {"access_token": "none", "token_type": "Bearer", "expires_in": 600, "id_token": token},
        )


def _json(request: BaseHTTPRequestHandler, status: int, body: object) -> None:
    _send(request, status, "application/json", json.dumps(body).encode())


def _redirect(request: BaseHTTPRequestHandler, address: str) -> None:
    request.send_response(302)
    request.send_header("Location", address)
    request.send_header("Content-Length", "0")
    request.end_headers()


def _send(request: BaseHTTPRequestHandler, status: int, kind: str, body: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
