"""The wire format: every request and answer of the server. The page's types are made from it."""
