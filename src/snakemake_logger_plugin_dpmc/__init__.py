"""Progress of the workflow of dpmc, as a logger of Snakemake: ``--logger dpmc``.

In a terminal one line says how many jobs are done and run, how much time is left and which figure
was drawn last; above it stands what else Snakemake has to tell. Elsewhere, and in a dry run,
everything reads as Snakemake prints it, with the time that is left.
"""

from __future__ import annotations

import os
import sys
import threading
from logging import ERROR, INFO, LogRecord, StreamHandler, makeLogRecord
from typing import Any

from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from tqdm import tqdm

from dpmc_papers.pipeline import pace

__all__ = ["LogHandler"]

LINE = "{percentage:3.0f}%|{bar:20}| {n_fmt}/{total_fmt} jobs{postfix}"
SECONDS_BETWEEN = 1.0
# What the line says instead.
IN_THE_LINE = {
    LogEvent.JOB_INFO,
    LogEvent.JOB_STARTED,
    LogEvent.JOB_FINISHED,
    LogEvent.GROUP_INFO,
    LogEvent.PROGRESS,
}
SELECTING = "Select jobs to execute..."


class LogHandler(LogHandlerBase):
    """Shows the progress of a run; see the module."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Choose between the line and plain text."""
        asked = self.common_settings
        quiet = set(asked.quiet or ())
        stream = sys.stdout if asked.stdout else sys.stderr
        self._pace = pace.Pace(pace.announced(), readers=pace.readers())
        self._messages: dict[int, str] = {}
        self._figure = ""
        self._done = self._total = 0
        self._bar: Any = None
        self._ticker: threading.Thread | None = None
        self._over = threading.Event()
        self._silent = not quiet.isdisjoint({Quietness.ALL, Quietness.PROGRESS})
        self._in_line = not self._silent and not asked.dryrun and _can_redraw(stream)
        self._plain = _plain_handler(asked, quiet, stream)

    def emit(self, record: Any) -> None:
        """Follow the run, and show what a record says."""
        event = getattr(record, "event", None)
        self._follow(event, record)
        if not self._in_line:
            self._plain.handle(record)
            if event == LogEvent.PROGRESS and not self._silent and record.done < record.total:
                self._plain.handle(makeLogRecord({"levelno": INFO, "msg": told(self._pace)}))
        elif event == LogEvent.PROGRESS and self._done == self._total:
            self._end()
            self._plain.handle(record)
        elif event in IN_THE_LINE or record.msg == SELECTING:
            self._draw()
        elif self._plain.filter(record):
            self._above(record)

    def close(self) -> None:
        """Take the line away."""
        self._over.set()
        self._end()
        super().close()

    def _follow(self, event: LogEvent | None, record: Any) -> None:
        if event == LogEvent.RUN_INFO:
            self._pace.plan({k: n for k, n in record.stats.items() if k != "total"})
            self._total = record.stats["total"]
        elif event == LogEvent.RESOURCES_INFO:
            self._pace.cores = min(getattr(record, "cores", self._pace.cores) or 1, 10**4)
            self._pace.cores = min(getattr(record, "nodes", self._pace.cores) or 1, 10**4)
        elif event == LogEvent.JOB_INFO:
            self._pace.start(record.jobid, record.rule_name, next(iter(record.output), ""))
            if record.rule_name == "figure":
                self._messages[record.jobid] = record.rule_msg
        elif event == LogEvent.JOB_FINISHED:
            self._pace.finish(record.job_id)
            self._figure = self._messages.pop(record.job_id, self._figure)
        elif event == LogEvent.PROGRESS:
            self._done, self._total = record.done, record.total
        elif event == LogEvent.JOB_ERROR:
            self._pace.fail(record.jobid)

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = tqdm(
                total=self._total,
                initial=self._done,
                file=self._plain.stream,
                bar_format=LINE,
                dynamic_ncols=True,
                leave=False,
            )
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        self._bar.n, self._bar.total = self._done, self._total
        self._refresh()

    def _refresh(self) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(told(self._pace, self._figure))

    def _above(self, record: LogRecord) -> None:
        """Print a message; after an error that is not of a job, others may write without asking."""
        if self._bar is not None:
            self._bar.clear()
        of_job = getattr(record, "event", None) == LogEvent.JOB_ERROR
        if record.levelno >= ERROR and not of_job:
            self._end()
        self._plain.handle(record)
        self._refresh()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _tick(self) -> None:
        """Draw the line again now and then: time passes while jobs run."""
        while not self._over.wait(SECONDS_BETWEEN):
            with self.lock or threading.Lock():
                self._refresh()


def _plain_handler(asked: Any, quiet: set[Quietness], stream: Any) -> StreamHandler[Any]:
    """Return what writes as Snakemake does by itself.

    Its classes are not documented. Under a version that has others, messages are printed as they
    are.
    """
    try:
        from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

        handler: StreamHandler[Any] = ColorizingTextHandler(
            asked.nocolor,
            stream,
            DefaultFormatter(quiet, asked.show_failed_logs),
            DefaultFilter(
                quiet, asked.debug_dag, asked.verbose, asked.dryrun, asked.printshellcmds
            ),
        )
    except (ImportError, AttributeError, TypeError):
        handler = StreamHandler(stream)
        handler.addFilter(lambda record: bool(record.msg))
    return handler


def told(follows: pace.Pace, figure: str = "") -> str:
    """Return how many jobs run, the time that is left, and the last figure."""
    left = f"{pace.in_words(follows.seconds_left())} left"
    return ", ".join(filter(None, (f"{follows.running} running", left, figure)))


def _can_redraw(stream: Any) -> bool:
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"
