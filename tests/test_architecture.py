"""Imports point one way, streamlit stays out of core, and what needs taming has one importer."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("app", "pages", "components", "core")
IMPORTERS: dict[str, tuple[str, ...]] = {
    "sqlite_utils": ("core/store/",),
    "litellm": ("core/llm/",),
    "plotly": ("components/",),
    **dict.fromkeys(("setfit", "mapie"), ("core/learning/",)),
    **dict.fromkeys(("rapidocr", "pypdfium2", "pypdf", "selectolax"), ("core/documents/",)),
    "ray": ("core/evaluation/ray_workers.py",),
    "onnxruntime": ("core/llm/", "core/baseline/"),
    "torch": ("core/llm/", "core/learning/", "core/evaluation/", "core/baseline/"),
}
UNSAFE_MODULES = {"pickle", "joblib", "dill", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "compile"}


def product_files(*folders: str) -> Iterator[Path]:
    for folder in folders or LAYERS:
        yield from sorted((ROOT / folder).rglob("*.py")) or [ROOT / f"{folder}.py"]


@dataclass(frozen=True)
class UsedNames:
    """The absolute imports, called names and keyword arguments of a file."""

    imports: frozenset[str]
    calls: frozenset[str]
    keywords: frozenset[str | None]


@functools.cache
def find_names(path: Path) -> UsedNames:
    imports: set[str] = set()
    calls: set[str] = set()
    keywords: set[str | None] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports.add(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.add(node.func.id)
        elif isinstance(node, ast.keyword):
            keywords.add(node.arg)
    return UsedNames(frozenset(imports), frozenset(calls), frozenset(keywords))


def test_packages_of_core_import_each_other_in_one_direction() -> None:
    graph: dict[str, set[str]] = {}
    for path in product_files("core"):
        package = path.relative_to(ROOT / "core").parts[0].removesuffix(".py")
        inside = {
            name.split(".")[1] for name in find_names(path).imports if name.startswith("core.")
        }
        graph.setdefault(package, set()).update(inside - {package})
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_layers_import_only_downwards() -> None:
    for path in product_files():
        layer = LAYERS.index(path.relative_to(ROOT).parts[0].removesuffix(".py"))
        above = {*LAYERS[:layer], *(["streamlit"] if layer == len(LAYERS) - 1 else [])}
        found = {name.split(".")[0] for name in find_names(path).imports} & above
        assert not found, f"{path} imports {found}"


def test_each_package_that_needs_taming_has_one_importing_place() -> None:
    for path in product_files():
        here = path.relative_to(ROOT).as_posix()
        for name in find_names(path).imports:
            owners = IMPORTERS.get(name.split(".")[0])
            assert owners is None or here.startswith(owners), f"{here} imports {name}"


def test_nothing_untrusted_is_executed_or_drawn_raw() -> None:
    for path in product_files():
        names = find_names(path)
        assert not {name.split(".")[0] for name in names.imports} & UNSAFE_MODULES, path
        assert not names.calls & UNSAFE_CALLS, path
        assert "unsafe_allow_html" not in names.keywords, path


def test_page_files_have_unique_names_in_folders_of_their_section() -> None:
    names = [path.stem for path in product_files("pages")]
    assert len(names) == len(set(names)), "page files become addresses"
    assert not list((ROOT / "pages").glob("*.py")), "they would switch Streamlit's own menu on"
