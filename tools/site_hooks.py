"""What `mkdocs build` does besides: pages made of files that lie elsewhere, so that no text stands twice.

- `results.md` is benchmarks/RESULTS.md, and each `examples/*.md` one script of examples/: docstring, then code.
- `<!-- results: peers -->` in a page becomes that section of benchmarks/RESULTS.md.
- Links from a page to `../benchmarks/RESULTS.md` and `../examples/x.py`, which are right in the repository, go to these pages.
- A Mermaid diagram, which a browser could only draw with a script from elsewhere, becomes the picture of the same table.
"""

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
EXAMPLES = ROOT / "examples"
LIFE = "images/life.svg"

_SECTION = re.compile(r"<!-- results: (\w+) -->")
_LINK = re.compile(r"\]\((?:\.\./)+(benchmarks/RESULTS\.md|examples(?:/(\w+)\.py)?/?)\)")
_MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.DOTALL | re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the examples where the navigation names their folder."""
    pages: list[str | dict[str, str]] = ["examples/index.md"]
    pages += [{path.name: f"examples/{path.stem}.md"} for path in example_paths()]
    config.nav = [{"Examples": pages} if item == {"Examples": "examples/"} else item for item in config.nav or []]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of files that lie elsewhere."""
    files.append(File.generated(config, "results.md", content=RESULTS.read_text(encoding="utf-8")))
    listed = ["# Examples\n", "Each of them runs as it is: `python examples/agent.py`. None needs a network.\n"]
    for path in example_paths():
        name, (title, text) = path.stem, example_page(path)
        files.append(File.generated(config, f"examples/{name}.md", content=text))
        listed.append(f"- [{name}.py]({name}.md): {title}")
    files.append(File.generated(config, "examples/index.md", content="\n".join(listed)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the sections, and send links and diagrams to what the site has."""
    del config, files
    here = posixpath.dirname(page.file.src_uri)

    def linked(match: re.Match[str]) -> str:
        target = "results.md" if match[1].startswith("benchmarks") else f"examples/{match[2] or 'index'}.md"
        return f"]({posixpath.relpath(target, here or '.')})"

    markdown = _SECTION.sub(lambda match: section(RESULTS.read_text(encoding="utf-8"), match[1]), markdown)
    markdown = _MERMAID.sub(f"![The same as a diagram]({posixpath.relpath(LIFE, here or '.')})", markdown)
    return _LINK.sub(linked, markdown)


def example_paths() -> list[Path]:
    """Return the scripts, by name."""
    return [path for path in sorted(EXAMPLES.glob("*.py")) if not path.stem.startswith("_")]


def example_page(path: Path) -> tuple[str, str]:
    """Return the first sentence of a script's docstring, and its page: the docstring as text, and the code below it."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree)
    if docstring is None:
        raise PluginError(f"{path.name} has no docstring to be its page's text")
    head, _, rest = docstring.partition("\n\n")
    title = " ".join(head.split())
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    return title, f"# {path.name}\n\n{title}\n\n{rest}\n\n````python\n{code}\n````\n"


def section(results: str, name: str) -> str:
    """Return one section of the results, without the heading that a page gives it itself.

    Raises:
        PluginError: There is none of that name.
    """
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", results, re.DOTALL)
    if found is None:
        raise PluginError(f"benchmarks/RESULTS.md has no section {name!r}")
    return re.sub(r"^## .*\n", "", found[1].strip(), flags=re.MULTILINE)
