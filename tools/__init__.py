"""Tools for developers: reference docs, screenshots, a test browser, fault injection."""
