"""Investigation units: accounts, the append-only ledger, its invariants and its pinned policy."""
