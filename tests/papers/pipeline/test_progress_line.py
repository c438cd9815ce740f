"""The logger of the workflow, under versions of Snakemake that it does not know."""

from __future__ import annotations

import io
from logging import INFO, Logger, LogRecord, makeLogRecord
from types import SimpleNamespace

import pytest
import snakemake.logging

from snakemake_logger_plugin_dpmc import _plain_handler

ASKED = SimpleNamespace(
    nocolor=True,
    show_failed_logs=True,
    debug_dag=False,
    verbose=False,
    dryrun=False,
    printshellcmds=False,
)


def record(message: str | None) -> LogRecord:
    return makeLogRecord({"levelno": INFO, "levelname": "INFO", "msg": message})


def written(*messages: LogRecord) -> str:
    stream = io.StringIO()
    logger = Logger("a logger of this test")
    logger.addHandler(_plain_handler(ASKED, set(), stream))
    for message in messages:
        logger.handle(message)
    return stream.getvalue()


def test_messages_read_as_those_of_snakemake():
    assert written(record("told all the same")) == "told all the same\n"


@pytest.mark.parametrize("name", ["ColorizingTextHandler", "DefaultFormatter", "DefaultFilter"])
@pytest.mark.parametrize("change", ["gone", "of other arguments"])
def test_messages_are_told_where_snakemake_has_other_classes(name, change, monkeypatch):
    if change == "gone":
        monkeypatch.delattr(snakemake.logging, name)
    else:
        monkeypatch.setattr(snakemake.logging, name, lambda: None)
    assert written(record("told all the same"), record(None)) == "told all the same\n"
