"""Everything from outside: model providers, tools, case store, evidence index."""
