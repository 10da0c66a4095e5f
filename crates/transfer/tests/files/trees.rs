//! Lists of trees.

use std::fs;

use farhaul_transfer::{Code, RemoteFiles, TreeItem};

use super::Served;

/// The paths of a tree, and the directories that failed.
fn tree(files: &RemoteFiles, place: &str, depth: usize) -> (Vec<String>, Vec<String>) {
    let (mut paths, mut failed, mut at) = (Vec::new(), Vec::new(), String::new());
    for item in files.list_tree(place, depth) {
        match item.unwrap() {
            TreeItem::Directory(path) if path.is_root() => at = String::new(),
            TreeItem::Directory(path) => at = format!("{path}/"),
            TreeItem::Entry(entry) => paths.push(format!("{at}{}", entry.name)),
            TreeItem::Failed(error) => failed.push(error.message),
        }
    }
    (paths, failed)
}

#[test]
fn a_tree_is_listed_without_what_links_lead_to() {
    let served = Served::new("tree", |server| server);
    let outside = served.root.with_extension("outside");
    fs::create_dir_all(outside.join("secret")).unwrap();
    for number in 0..300 {
        let folder = served.root.join(format!("d/{number:03}/deep"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("f"), b"x").unwrap();
    }
    std::os::unix::fs::symlink(&outside, served.root.join("d/150/out")).unwrap();
    std::os::unix::fs::symlink("..", served.root.join("d/151/up")).unwrap();
    let files = served.files();
    let (paths, failed) = tree(&files, "d", usize::MAX);
    assert_eq!((paths.len(), failed.len()), (3 * 300 + 2, 0));
    assert!(paths.contains(&"150/out".to_owned()) && !paths.iter().any(|path| path.contains("secret")));
    assert!(paths.contains(&"299/deep/f".to_owned()));
    assert_eq!((tree(&files, "d", 1).0.len(), tree(&files, "d", 2).0.len()), (300, 602));
    assert_eq!(tree(&files, "d/150/deep", 9).0, ["f"]);
    assert!(files.list_tree("d/150/out", 9).next().unwrap().is_err());
    assert_eq!(files.list_tree("none", 9).next().unwrap().unwrap_err().code, Code::NotFound);
    fs::remove_dir_all(outside).unwrap();
}
