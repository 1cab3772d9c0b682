"""The version of Clearhead."""

__version__ = "0.1.0"
