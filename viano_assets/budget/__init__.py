"""Investigation units: accounts, append-only ledger, snapshot."""
