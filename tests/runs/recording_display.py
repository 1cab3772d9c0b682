"""A display of progress for tests."""


class RecordingDisplay:
    """Records what is written to it, and when it is cleared or closed."""

    columns = 80

    def __init__(self):
        self.said = []

    def write(self, text):
        self.said.append(text)

    def clear(self):
        self.said.append("clear")

    def close(self):
        self.said.append("close")
