"""Make the pages of the site whose text stands elsewhere; mkdocs calls the functions that begin with `on_`.

The reference comes from the docstrings of public names, a page for each module; the changelog, how to contribute and
the notes on security from the files that projects have at their root; the gallery from examples/, with a page for each
program. Links between those are mended.
"""

from __future__ import annotations

import functools
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

from tools.public_names import MODULES
from tools.reference import linked, page

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples/index.md",
    "examples/data/README.md": "examples/data.md",
}
"""Texts outside of docs/ that are pages of the site, and where."""
PROGRAMS = sorted(path.name for path in (ROOT / "examples").glob("[a-z]*.py"))
ELSEWHERE = TEXTS | {f"examples/{name}": f"examples/{Path(name).stem}.md" for name in PROGRAMS}


@functools.cache
def reference() -> dict[str, str]:
    """Return the pages of the reference by their addresses."""
    return {f"reference/{module}.md": page(module) for module in MODULES}


@functools.cache
def addresses() -> dict[str, str]:
    """Return where the entry of each public name is."""
    found = re.findall(r"^## .* \{ #(wengert\..*) \}$", "\n".join(reference().values()), flags=re.MULTILINE)
    own = {name: f"reference/{name.rpartition('.')[0]}.md#{name}" for name in found}
    return own | {module: f"reference/{module}.md" for module in MODULES}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the reference into the menu, before those that are listed there."""
    (listed,) = [item["Reference"] for item in config.nav or () if "Reference" in item]
    listed[:0] = [f"reference/{module}.md" for module in MODULES]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are written by this program, and the colours of code."""
    texts = {to: moved((ROOT / name).read_text(), posixpath.dirname(name), to) for name, to in TEXTS.items()}
    programs = {ELSEWHERE[f"examples/{name}"]: program(ROOT / "examples" / name) for name in PROGRAMS}
    for address, text in {**texts, **programs, **reference()}.items():
        files.append(File.generated(config, address, content=text))
    colours = HtmlFormatter(style="default").get_style_defs(".codehilite")
    files.append(File.generated(config, "stylesheets/code.css", content=colours))
    return files


def program(path: Path) -> str:
    """Return the page that shows an example."""
    return f"# {path.stem.replace('_', ' ').capitalize()}\n\n```python\n{path.read_text()}```\n"


def moved(text: str, folder: str, address: str) -> str:
    """Return the text of a page as it stands at another address: its links lead where they led.

    Args:
        text: the page.
        folder: the folder that its links start from, seen from the root of the project.
        address: where the page stands on the site.
    """

    def link(found: re.Match[str]) -> str:
        target, hash_, anchor = found[1].partition("#")
        if "://" in target or not target:
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        place = ELSEWHERE.get(path, path.removeprefix("docs/"))
        return f"]({posixpath.relpath(place, posixpath.dirname(address) or '.')}{hash_}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show examples as sessions at the prompt, and let names lead to their entries."""
    markdown = re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)
    markdown = markdown.replace("\n<BLANKLINE>", "\n").replace("\n\n```\n", "\n```\n")
    return linked(markdown, addresses(), "../" * page.file.src_uri.count("/"))
