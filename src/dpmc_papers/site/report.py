"""Captions in the report of Snakemake: the same text as on the page of a document."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

# What reStructuredText takes for markup.
_MARKUP = re.compile(r"([\\*`|_])")


@dataclass(frozen=True)
class Caption:
    """The caption of an output: made only when it is printed.

    Parameters
    ----------
    name : str
        The output.
    text : str
        The file of its caption.
    request : str
        The file that holds the settings of the document.
    guarantees : str
        The table of guarantees of the document.
    """

    name: str
    text: str
    request: str
    guarantees: str

    def __str__(self) -> str:
        """Return the name of its file, which stands among the parameters of a job."""
        return Path(self.text).name

    def told(self) -> str:
        """Return the caption as reStructuredText, or nothing where the document is not finished.

        Raises
        ------
        DpmcError
            If the caption is not well formed.
        """
        # A job that makes an output is handed its caption, and imports nothing for it.
        from dpmc_papers.outputs import _guarantees
        from dpmc_papers.outputs._facts import Facts
        from dpmc_papers.site import captions

        if not (Path(self.request).is_file() and Path(self.guarantees).is_file()):
            return ""
        config = json.loads(Path(self.request).read_text(encoding="utf-8"))
        facts = Facts(config, _guarantees.read(self.guarantees, config))
        template = Path(self.text).read_text(encoding="utf-8")
        parts = captions.caption(self.name, template, facts)
        return "\n\n".join(_MARKUP.sub(r"\\\1", part) for part in parts)
