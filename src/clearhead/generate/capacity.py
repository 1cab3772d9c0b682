"""How much an engine takes on: numbers alone, which the command line knows before torch is there."""

SLOTS, MOST_SLOTS = 32, 1024  # texts that are written at once
QUEUE, MOST_QUEUE = 256, 100_000  # requests that wait
