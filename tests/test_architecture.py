"""The house stays as design and README draw it: imports point one way, files keep their size."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEAVES = (
    "seats",
    "categories",
    "manners",
    "records",
    "audited",
    "voted",
    "argued",
    "reviews",
    "events",
    "errors",
    "config",
    "concurrency",
    "late",
    "learned_marks",
    "roles",
    "progress",
    "reuse",
    "outcome",
)
ROOMS = (
    *LEAVES,
    "choosing",
    "store",
    "models",
    "intake",
    "evidence",
    "tools",
    "builtin",
    "agents",
    "acting",
    "debate",
    "spans",
    "verdict",
    "audit",
    "searched",
    "auditing",
    "engine",
    "reach",
    "in_use",
    "staffing",
    "warm_up",
    "curation",
    "seen_before",
    "answering",
    "queueing",
    "reordering",
    "underway",
    "jobs",
    "benches",
    "prereading",
    "checking",
    "as_it_arrives",
    "people",
    "login",
    "expected_calls",
    "estimate",
    "formats",
    "comparing",
    "parting",
    "claim_table",
    "exchange",
    "agreement",
    "learning",
    "evaluation",
    "doctor",
    "command",
    "__main__",
)
LEAF_IMPORTS = {
    "seats": set(),
    "categories": set(),
    "manners": set(),
    "records": {"categories", "manners", "seats"},
    "reviews": {"categories", "records"},
    "errors": set(),
    "config": {"errors"},
    "audited": {"records"},
    "voted": {"records"},
    "argued": {"records"},
    "events": {"argued", "audited", "manners", "records", "voted"},
    "concurrency": {"errors"},
    "late": set(),
    "roles": {"audited", "concurrency", "learned_marks", "manners", "records", "seats", "voted"},
    "progress": {"argued", "audited", "events", "records"},
    "reuse": {"audited", "config", "events", "progress", "records"},
    "outcome": {"progress", "records"},
    "learned_marks": {"records"},
}
ONE_IMPORTER: dict[str, str | tuple[str, ...]] = {
    "sqlite_utils": "core/store/sqlite.py",
    "litellm": "core/models/llm.py",
    "plotly": (
        "components/agent_charts.py",
        "components/charts.py",
        "components/confidence_charts.py",
        "components/learning_charts.py",
        "components/theory_charts.py",
    ),
    "setfit": "core/learning/",
    "mapie": "core/learning/",
    "rapidocr": "core/intake/",
    "pypdfium2": "core/intake/",
    "pypdf": "core/intake/",
    "docx": (),  # core/intake/docx.py says why
    "selectolax": "core/intake/",
    "onnxruntime": "core/models/",
    "sentencex": "core/evidence/",
    "torch": ("core/models/export.py", "core/learning/", "core/evaluation/reader_"),
}
ONE_LIST = ("records.py", "events.py", "roles.py")  # lists of one kind of thing, read by looking up
MOST_LINES = {"app.py": 40, "pages": 160, "components": 220, "core": 300}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        path = ROOT / folder
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "core").parts[0].removesuffix(".py")


def test_rooms_of_core_import_only_rooms_to_their_left() -> None:
    for path in sources("core"):
        room = room_of(path)
        if room == "__init__":
            continue
        assert room in ROOMS, f"{path}: a room that design.md does not know"
        for name in imported(path):
            if not name.startswith("core."):
                continue
            other = name.split(".")[1]
            allowed = other == room or ROOMS.index(other) < ROOMS.index(room)
            assert allowed, f"{path} imports {name}, which lies to its right"


def test_leaves_import_only_each_other_and_the_standard_library() -> None:
    for leaf, allowed in LEAF_IMPORTS.items():
        path = ROOT / "core" / f"{leaf}.py"
        inside = {name.split(".")[1] for name in imported(path) if name.startswith("core.")}
        assert inside <= allowed, f"{path} imports {inside - allowed}"


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [("core", ("streamlit", "components", "pages")), ("components", ("pages",))],
)
def test_layers_never_look_up(folder: str, forbidden: tuple[str, ...]) -> None:
    for path in sources(folder):
        for name in imported(path):
            assert name.split(".")[0] not in forbidden, f"{path} imports {name}"


def test_each_outside_package_has_one_importing_place() -> None:
    for path in sources("app.py", "core", "components", "pages"):
        here = path.relative_to(ROOT).as_posix()
        for name in imported(path):
            owner = ONE_IMPORTER.get(name.split(".")[0])
            assert owner is None or here.startswith(owner), f"{here} imports {name}"


def test_no_page_lies_directly_in_pages() -> None:
    assert not list((ROOT / "pages").glob("*.py")), "it would switch Streamlit's legacy menu on"


def test_no_text_stands_where_it_does_nothing() -> None:
    for path in sources("app.py", "core", "components", "pages"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for one in node.body[1:]:
                    value = one.value if isinstance(one, ast.Expr) else None
                    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
                    assert not is_text, f"{path}:{one.lineno}"


def test_page_names_are_unique() -> None:
    names = [path.stem for path in sources("pages")]
    assert len(names) == len(set(names)), "page files become addresses"


def test_files_can_be_taken_in_at_one_sitting() -> None:
    for path in sources("app.py", "core", "components", "pages"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        most = MOST_LINES[path.relative_to(ROOT).parts[0]]
        allowed = 440 if path.name in ONE_LIST else most
        assert lines <= allowed, f"{path} has {lines} lines"


def test_nothing_untrusted_is_executed_or_drawn_raw() -> None:
    for path in sources("app.py", "core", "components", "pages"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile"), f"{path}: {node.func.id}"
            if isinstance(node, ast.keyword) and node.arg == "unsafe_allow_html":
                raise AssertionError(f"{path} draws raw HTML")
        forbidden = {"pickle", "joblib", "dill", "marshal", "shelve"}
        assert not {name.split(".")[0] for name in imported(path)} & forbidden, path
