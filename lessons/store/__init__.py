"""The one store of everything that people leave behind: SQLite in the data folder, or PostgreSQL by SHARDLAB_DATABASE_URL.

    store = open_store(settings.data_dir, settings.database_url)
    with store.write() as connection: ...    # committed, durably, when the block has ended; a StoreError otherwise
    with store.read() as connection: ...

Owns connections, transactions, migrations and the words for what can go wrong. What the tables mean belongs to the modules that use them.
"""

from lessons.store.engine import STORE_FILE, Store, open_store
from lessons.store.faults import StoreError

__all__ = ["STORE_FILE", "Store", "StoreError", "open_store"]
