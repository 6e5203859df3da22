"""Attacks by hostile clients. Each module has a dictionary `ATTACKS` of functions that run for a few seconds."""

SECONDS = 3.0
# An address that no other client uses, because limits are per address.
ATTACKER = "127.0.0.66"
