"""Log lines with time and name, for programs that have set up no logging."""

from __future__ import annotations

import logging
import sys
from typing import Any


class _Plain(logging.Handler):
    """Silent as soon as the program sets up logging of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.root.handlers:
            print(self.format(record), file=sys.stderr)


def be_plain(logger: Any) -> None:
    """Logs to standard error, if no other handler takes the lines."""
    if not isinstance(logger, logging.Logger) or logger.hasHandlers():
        return
    plain = _Plain()
    plain.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
    logger.addHandler(plain)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
