//! Changes: files that are written, renamed, copied and removed, and a server that permits none.

use std::fs;
use std::io::Write;

use farhaul_session::{NodeKind, Removing};
use farhaul_transfer::internal::serve::DirectoryServer;
use farhaul_transfer::{Code, PutOptions};

use super::{Served, pattern};

#[test]
fn files_of_a_server_are_written_listed_renamed_copied_and_removed() {
    let served = Served::new("changes", |server| server);
    let files = served.files();
    let bytes = pattern(3_000_000);
    let written = files.put("d/deep/f", bytes.as_slice(), PutOptions::default()).unwrap();
    assert_eq!(written.digest, Some(farhaul_session::Digest::of(&bytes)));
    assert_eq!(fs::read(served.root.join("d/deep/f")).unwrap(), bytes);
    assert_eq!(files.digest("d/deep/f").unwrap(), written);
    let code = |result: Result<_, farhaul_transfer::Error>| result.map(drop).unwrap_err().code;
    assert_eq!(code(files.put("d/deep/f", b"x".as_slice(), PutOptions::default())), Code::AlreadyExists);
    let replacing = PutOptions::default().replace(true).size(3);
    files.put("d/deep/f", b"new".as_slice(), replacing).unwrap();
    assert_eq!(code(files.put("d/deep/f", b"four".as_slice(), replacing)), Code::SourceChanged);
    files.rename("d/deep/f", "e/g").unwrap();
    assert_eq!(files.copy("e/g", "e/h", false).unwrap().size, 3);
    assert_eq!(code(files.rename("e/g", "e/h").map(|()| written)), Code::AlreadyExists);
    files.rename_as("e/g", "e/h", true).unwrap();
    let names: Vec<_> = files.list("e").map(|entry| entry.unwrap().name.to_string()).collect();
    assert_eq!(names, ["h"]);
    assert_eq!(code(files.remove("e").map(|()| written)), Code::DirectoryNotEmpty);
    assert_eq!(code(files.remove_as("e", Removing::File).map(|_| written)), Code::IsDirectory);
    assert_eq!(files.remove_tree("e", 10).unwrap(), 2);
    assert!(files.create_dir("e/new", true).unwrap() && !files.create_dir("e/new", true).unwrap());
    assert_eq!(files.stat("e").unwrap().kind, NodeKind::Directory);
    let missing = files.stat("none").unwrap_err();
    assert_eq!(missing.code, Code::NotFound);
    assert!(missing.message.contains(&format!("udt://{}/none", served.address)), "{missing}");
    assert_eq!(files.list("none").next().unwrap().unwrap_err().code, Code::NotFound);
    files.close().unwrap();
    assert!(files.stat("e").is_ok(), "a new connection");
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let served = Served::new("writers", |server| server);
    let files = served.files();
    let mut writer = files.create("f", PutOptions::default()).unwrap();
    writer.write_all(&pattern(700_000)).unwrap();
    drop(writer);
    let mut writer = files.create("g", PutOptions::default()).unwrap();
    writer.write_all(b"whole").unwrap();
    assert_eq!(writer.finish().unwrap().size, 5);
    assert_eq!(files.list("").map(|entry| entry.unwrap().name.to_string()).collect::<Vec<_>>(), ["g"]);
    assert_eq!(fs::read_dir(&served.root).unwrap().count(), 1, "no temporary file stays");
    let mut writer = files.create("g", PutOptions::default()).unwrap();
    let error = (0..1_000).find_map(|_| writer.write_all(&[7; 100_000]).err()).unwrap();
    let error = error.into_inner().unwrap().downcast::<farhaul_transfer::Error>().unwrap();
    assert_eq!(error.code, Code::AlreadyExists, "{error}");
    assert!(writer.finish().is_err());
}

#[test]
fn a_read_only_server_changes_nothing() {
    let root = std::env::temp_dir().join(format!("farhaul-served-{}-read-only", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    let served = Served::new("read-only", |_| DirectoryServer::of(&root, None, true).unwrap());
    served.write("f", b"content");
    let files = served.files();
    assert_eq!(files.read_range("f", 0, 99).unwrap().bytes, b"content");
    let refused = |result: Result<(), farhaul_transfer::Error>| {
        let error = result.unwrap_err();
        assert!(error.code == Code::AccessDenied && error.message.contains("read-only"), "{error}");
    };
    refused(files.put("g", b"x".as_slice(), PutOptions::default()).map(drop));
    refused(files.create_dir("d", true).map(drop));
    refused(files.remove("f"));
    refused(files.rename("f", "g"));
    refused(files.copy("f", "g", false).map(drop));
    assert_eq!(fs::read_dir(&served.root).unwrap().count(), 1);
}
