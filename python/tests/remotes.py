"""Stand-ins for the files of a host, which pass requests on."""

from collections import Counter


class Counted:
    """Counts the requests by their names."""

    def __init__(self, remote):
        self.calls = Counter()
        self._remote = remote

    def __getattr__(self, name):
        self.calls[name] += 1
        return getattr(self._remote, name)


class Older:
    """The files of a server that does not know listings of trees."""

    def __init__(self, remote):
        self._remote = remote

    def __getattr__(self, name):
        return getattr(self._remote, name)

    async def list_tree(self, *arguments):
        return None
