"""Drawing: a shared style, the kinds of panel that the documents use, and saving."""

from dpmc_papers.plots.save import save
from dpmc_papers.plots.style import figure, look, method_label, styled

__all__ = ["figure", "look", "method_label", "save", "styled"]
