"""Developer tools: reference documentation, screenshots, a test browser and fault injection."""
