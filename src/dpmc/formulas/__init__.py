"""Formulas: features from columns of a table, each row from itself and public numbers."""
