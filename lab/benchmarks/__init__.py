"""How fast the lab is on this machine. Nothing here is tested against a clock: machines differ."""
