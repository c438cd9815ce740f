"""What the wheel says of itself: the addresses of the project, and its README with whole links.

The address of the repository stands in pyproject.toml alone, under ``tool.hatch.metadata.hooks``.
As long as it is empty, links to files are plain text, and pictures are left out.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

CLONE = "pip install .     # from a clone of this repository; Python 3.11 or newer"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class Addresses(MetadataHookInterface):
    """Fields of the metadata that follow from the address of the repository."""

    def update(self, metadata: dict) -> None:
        """Set ``urls`` and ``readme``.

        Parameters
        ----------
        metadata : dict
            The table ``project``, changed in place.
        """
        repository, tag = self.config["repository"].rstrip("/"), f"v{metadata['version']}"
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = urls(repository)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": page(readme, repository, tag),
        }


def urls(repository: str) -> dict[str, str]:
    """Addresses of the project."""
    ends = {
        "Repository": "",
        "Documentation": "/blob/main/docs/index.md",
        "Changelog": "/blob/main/CHANGELOG.md",
        "Issues": "/issues",
    }
    return {name: repository + end for name, end in ends.items() if repository}


def page(readme: str, repository: str, tag: str) -> str:
    """The README as it is read away from the repository, where the package can be had by name."""

    def whole(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        if not repository:
            return "" if picture else text
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/{tag}/{path})"

    if CLONE not in readme:
        raise ValueError(f"README.md must say how to install, as: {CLONE}")
    return LINK.sub(whole, readme.replace(CLONE, "pip install dpmc     # Python 3.11 or newer"))
