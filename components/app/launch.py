"""Starts the server on this computer only: `python -m components.app.launch [--port N]`.

Streamlit takes a folder named `pages` beside the app for its old multipage menu until the app has
run once, and would show "Page not found" over a page's own address opened first. Telling its page
manager beforehand that there is no such menu removes that.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from core.runtime.concurrency import block_import

APP = Path(__file__).resolve().parent.parent.parent / "app.py"
HOST = "127.0.0.1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; 2 when the port is taken."""
    parser = argparse.ArgumentParser(prog="counterpoint", description=__doc__)
    parser.add_argument("--port", type=int, default=8501)
    port = parser.parse_args(arguments).port
    if not _is_free(port):
        sys.stderr.write(
            f"Port {port} is taken by another program; choose one: make run PORT={port + 1}\n"
        )
        return 2
    sys.stdout.write(f"Counterpoint is at http://{HOST}:{port} (Ctrl-C stops it)\n")
    sys.stdout.flush()
    serve(port)
    return 0


def serve(port: int, app: Path = APP) -> None:
    """Run Streamlit in this process."""
    with block_import("plotly"):  # Streamlit would load it for its theme: a third of a second
        from streamlit import config
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.web import bootstrap

    PagesManager.uses_pages_directory = False
    options = {
        "server_port": port,
        "server_address": HOST,
        "server_headless": True,
        "server_fileWatcherType": "none",
        "browser_gatherUsageStats": False,
        "logger_hideWelcomeMessage": True,
    }
    bootstrap.load_config_options(flag_options=options)
    config.set_option("server.port", port)
    bootstrap.run(str(app), False, [], options)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
