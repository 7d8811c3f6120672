"""The documentation site: it is built without a warning, lists what is promised and nothing else, and needs no network (issue 7)."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from mkdocs.exceptions import PluginError

import toolbatch
from toolbatch import backends, batch, core, observe, operations, output, ports, providers, testing, tools, transcript
from toolbatch.integrations import langchain, langgraph, mcp, openai_agents, pydantic_ai
from tools import site_hooks

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PACKAGES = [toolbatch, backends, batch, core, observe, operations, output, ports, testing, tools, transcript]
LANES = [getattr(providers, name) for name in providers.__all__]
PAGES = {
    **{module: module.__name__.rpartition(".")[2] for module in PACKAGES},
    **dict.fromkeys(LANES, "providers"),
    **dict.fromkeys([langchain, langgraph, mcp, openai_agents, pydantic_ai], "integrations"),
}
"""The page on which each public module is."""

RESULTS = """\
<!-- whole -->

## A whole batch

| 1 | 2 |
<!-- /whole -->
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CI builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.timeout(300)
def test_every_public_name_is_on_its_page_and_no_other(site: Path) -> None:
    """The headings below a module are the names in its `__all__`; none of a member's begins with an underscore."""
    for module, page in PAGES.items():
        html = (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
        found = re.findall(rf'<h\d id="{re.escape(module.__name__)}\.([\w.]+)" class="doc', html)
        assert {name for name in found if "." not in name} == set(module.__all__), module.__name__
        own = [name for name in found if not is_dunder_of_public(name)]
        assert not [name for name in own if name.rpartition(".")[2].startswith("_")], module.__name__


def is_dunder_of_public(name: str) -> bool:
    """Whether it is a special method, which the language documents."""
    last = name.rpartition(".")[2]
    return last.startswith("__") and last.endswith("__")


@pytest.mark.timeout(300)
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """No page, style or script asks for a resource of another host."""
    for path in site.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\s(?:src|srcset)=[\"']?(https?://[^\"'\s>]+)", html)
        loaded += re.findall(
            r"<link[^>]*rel=[\"']?(?:stylesheet|preconnect|icon)[\"']?[^>]*href=[\"']?(https?://[^\"'\s>]+)", html
        )
        assert not loaded, path.name


@pytest.mark.timeout(300)
def test_what_lies_elsewhere_is_on_the_site(site: Path) -> None:
    """The results and each example have a page, and the measured table is on the page that compares."""
    assert "A whole batch" in (site / "results.html").read_text(encoding="utf-8")
    assert "times ours" in (site / "compared.html").read_text(encoding="utf-8")
    for path in site_hooks.example_paths():
        assert path.name in (site / "examples" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert "life.svg" in (site / "state-machine.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", PAGES, ids=lambda module: module.__name__)
def test_every_module_has_a_directive(module: ModuleType) -> None:
    """A package that is new is missed by nobody: its page names it."""
    text = (DOCS / "reference" / f"{PAGES[module]}.md").read_text(encoding="utf-8")
    assert f"::: {module.__name__}\n" in text


def test_a_section_loses_its_heading_and_an_unknown_one_is_refused() -> None:
    """A page gives a section its own heading; a section that is gone fails the build, and leaves no hole."""
    assert site_hooks.section(RESULTS, "whole") == "\n| 1 | 2 |"
    with pytest.raises(PluginError, match="no section 'gone'"):
        site_hooks.section(RESULTS, "gone")


def test_an_example_s_docstring_is_the_text_and_not_in_the_code(tmp_path: Path) -> None:
    """A reader has it once; a script without one fails the build."""
    script = tmp_path / "agent.py"
    script.write_text('"""An agent\nof ours.\n\nMore of it.\n"""\n\nimport asyncio\n', encoding="utf-8")
    title, page = site_hooks.example_page(script)
    assert title == "An agent of ours."
    assert page == "# agent.py\n\nAn agent of ours.\n\nMore of it.\n\n````python\nimport asyncio\n````\n"
    script.write_text("import asyncio\n", encoding="utf-8")
    with pytest.raises(PluginError, match=r"agent\.py has no docstring"):
        site_hooks.example_page(script)


def test_there_is_a_how_to_page_for_each_lane_and_framework() -> None:
    """Every lane and integration is named by a page of docs/how-to, in code that is run."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "how-to").glob("*.md"))
    for name in {*providers.__all__} - {"gemini_interactions"}:
        assert f"from toolbatch.providers import {name}\n" in text, name
    for name in ("langchain", "langgraph", "mcp", "openai_agents", "pydantic_ai"):
        assert f"toolbatch.integrations.{name} import" in text or f"toolbatch.integrations import {name}" in text, name
