"""Developer tools: the built-in model, reference documentation, pictures, a test browser and fault injection."""
