"""Drawing: a shared style, the kinds of panel that the documents use, and saving."""

from dpmc.plots.save import save
from dpmc.plots.style import figure, look, method_label, styled

__all__ = ["figure", "look", "method_label", "save", "styled"]
