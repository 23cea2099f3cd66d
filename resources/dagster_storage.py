"""Dagster's SQLite storage with an event log that keeps its connections.

Dagster's own opens a database, compiles every statement anew and closes it again several times for each
event, and each closing of the last connection folds the write-ahead log with two syncs: storing the fourteen
events of a case took as long as analysing it. Here each database file keeps one connection for as long as
the instance lives. The files stay the same; an instance can change from one class to the other.

Commits are not synced one by one (`synchronous=NORMAL`): a power loss may take the last events of the log,
never its consistency. The case store is the truth, and `viano sync` tells Dagster again what it forgot.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.event import listen
from sqlalchemy.pool import NullPool, StaticPool

if TYPE_CHECKING:
    from dagster._core.events.log import EventLogEntry

OPEN_DATABASES = 4
"""Databases of runs that keep a connection; the daemon and the web server look at many runs."""


def _less_syncing(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


class KeptSqliteEventLog(SqliteEventLogStorage):
    """The event log on SQLite, with connections that stay open.

    Args:
        base_dir: folder of the databases.
    """

    def __init__(self, base_dir: str) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._tables: set[str] = set()
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine(shard).connect() as connection, connection.begin():
            yield connection

    def _engine(self, shard: str) -> Engine:
        engine = self._engines.pop(shard, None) or self._opened(shard)
        self._engines[shard] = engine
        while len(self._engines) > OPEN_DATABASES:
            self._engines.popitem(last=False)[1].dispose()
        return engine

    def _opened(self, shard: str) -> Engine:
        url = self.conn_string_for_shard(shard)
        patience = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
        if shard not in self._initialized_dbs:
            self._initdb(create_engine(url, poolclass=NullPool, connect_args=patience))
            self._initialized_dbs.add(shard)
        engine = create_engine(
            url, poolclass=StaticPool, connect_args={**patience, "check_same_thread": False}
        )
        listen(engine, "connect", _less_syncing)
        return engine

    def store_event(self, event: EventLogEntry) -> None:
        """Store one event."""
        super().store_event(event)
        # Viewers watch the database of the run, which a commit to the write-ahead log does not touch.
        with suppress(FileNotFoundError):
            os.utime(self.path_for_shard(event.run_id))

    def has_table(self, table_name: str) -> bool:
        """Say whether the schema has the table; one that is there stays."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def _close(self) -> None:
        with self._db_lock:
            while self._engines:
                self._engines.popitem()[1].dispose()

    def wipe(self) -> None:
        """Delete all events."""
        self._close()
        super().wipe()

    def dispose(self) -> None:
        """Close the connections."""
        super().dispose()
        self._close()


class KeptSqliteStorage(DagsterSqliteStorage):
    """All of Dagster's SQLite storage; `storage: custom` of `dagster.yaml` names it.

    Args:
        base_dir: the Dagster home.
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        self._event_log_storage = KeptSqliteEventLog(str(Path(base_dir, "history", "runs")))

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> KeptSqliteStorage:
        """Make the storage that `dagster.yaml` configures."""
        return cls.from_local(inst_data=inst_data, **config_value)
