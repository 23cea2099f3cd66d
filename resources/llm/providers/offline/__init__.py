"""The offline analyst: answers every contract deterministically, without key or network."""
