"""The public suite of fsspec, against a server of this process."""

import pytest

import farhaul

pytest.importorskip("fsspec")

from fsspec.tests import abstract

from farhaul.fsspec import FarhaulFileSystem


class FarhaulFixtures(abstract.AbstractFixtures):
    @pytest.fixture(scope="class")
    def fs(self, tmp_path_factory):
        with farhaul.serve(tmp_path_factory.mktemp("root"), plain=True) as server:
            host, port = server.address.split(":")
            yield FarhaulFileSystem(host, int(port), plain=True)

    @pytest.fixture
    def fs_path(self):
        return "/suite"

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: "/".join(parts)


class TestFarhaulCopy(abstract.AbstractCopyTests, FarhaulFixtures):
    pass


class TestFarhaulGet(abstract.AbstractGetTests, FarhaulFixtures):
    pass


class TestFarhaulPut(abstract.AbstractPutTests, FarhaulFixtures):
    pass


class TestFarhaulOpen(abstract.AbstractOpenTests, FarhaulFixtures):
    pass


class TestFarhaulPipe(abstract.AbstractPipeTests, FarhaulFixtures):
    pass
