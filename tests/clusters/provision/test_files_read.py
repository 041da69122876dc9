"""A node that sees nothing of this machine but what it reads can still start."""

from pathlib import Path

from fencepost.clusters.provision.files_read import linked_directories, topmost


def test_where_the_links_of_a_java_lead_to_is_read_too(tmp_path: Path) -> None:
    etc, home = tmp_path / "etc" / "java", tmp_path / "java"
    for directory in (etc, home / "conf", home / "lib", home / "docs"):
        directory.mkdir(parents=True)
    (etc / "net.properties").touch()
    (home / "lib" / "own").touch()
    (home / "conf" / "net.properties").symlink_to(etc / "net.properties")
    (home / "lib" / "inside").symlink_to(home / "lib" / "own")
    (home / "lib" / "src.zip").symlink_to(tmp_path / "not" / "installed")
    (home / "docs" / "page").symlink_to(tmp_path)
    assert list(linked_directories(home)) == [etc]


def test_what_lies_inside_of_another_is_not_named_twice() -> None:
    given = ["/a/b", "/a/b/c", "/a", "/ab", "/d/e", "/d/e"]
    assert topmost(map(Path, given)) == (Path("/a"), Path("/ab"), Path("/d/e"))
