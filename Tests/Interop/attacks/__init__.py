"""What a hostile client tries. Each module has a dictionary `ATTACKS` of functions that run for a few seconds."""

SECONDS = 4.0
# Another address than everybody else's on the machine: shares and limits are counted by address.
ATTACKER = "127.0.0.66"
