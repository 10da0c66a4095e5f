//! Copies of listed names: `--files-from`.

use std::fs;
use std::path::Path;

use crate::process::{Run, Scratch, Server, farhaul, farhaul_with};
use crate::whole_trees::Far;

/// The names of the list, and one that does not exist.
const LIST: &str = "a/x\n\n# not this\nb/c\nlone\nmissing/name\n";

fn make_source(scratch: &Scratch) -> String {
    for name in ["a/x", "a/y", "b/c/z", "b/other", "lone", "rest"] {
        scratch.file(&format!("root/src/{name}"), 10);
    }
    fs::write(scratch.at("list"), LIST).unwrap();
    scratch.at("root/src")
}

#[track_caller]
fn has_listed(run: &Run, scratch: &Scratch, at: &str) {
    run.fails(3, &["missing/name was not copied", "not found"]);
    assert_eq!(scratch.names(at), ["a", "b", "lone"], "{}", run.stderr);
    assert_eq!(
        (scratch.names(&format!("{at}/a")), scratch.names(&format!("{at}/b"))),
        (vec!["x".into()], vec!["c".into()])
    );
    assert_eq!(scratch.names(&format!("{at}/b/c")), ["z"], "a listed directory has its content");
}

#[test]
fn listed_names_go_to_and_from_a_server() {
    let scratch = Scratch::new();
    let source = make_source(&scratch);
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let place = |path: &str| format!("udt://{}/{path}", server.address);
    let list = scratch.at("list");
    let copy = ["copy", "--plain", "-r", "--files-from", &list];
    let pushed = farhaul(&[&copy[..], &[&source, &place("pushed")]].concat());
    has_listed(&pushed, &scratch, "root/pushed");
    let pulled = farhaul(&[&copy[..], &[&place("src"), &scratch.at("pulled")]].concat());
    has_listed(&pulled, &scratch, "pulled");
    // A pull of the root itself, and of a source that does not exist.
    fs::write(&list, "src/a/x\n").unwrap();
    farhaul(&[&copy[..], &[&place(""), &scratch.at("all")]].concat()).succeeds();
    assert_eq!((scratch.names("all"), scratch.names("all/src/a")), (vec!["src".into()], vec!["x".into()]));
    farhaul(&[&copy[..], &[&place("none"), &scratch.at("all")]].concat()).fails(3, &["none was not copied"]);
    farhaul(&[&copy[..], &[&place("src/lone"), &scratch.at("all")]].concat())
        .fails(3, &["src/lone", "not a directory"]);
}

#[test]
fn listed_names_go_over_ssh_in_both_directions() {
    let far = Far::new();
    let scratch = &far.scratch;
    let (source, list) = (make_source(scratch), scratch.at("list"));
    let options = ["-a", "--files-from", &list];
    let run = far.copies(&options, &source, &format!("far:{}", scratch.at("pushed")));
    has_listed(&run, scratch, "pushed");
    let run = far.copies(&options, &format!("far:{source}"), &scratch.at("pulled"));
    has_listed(&run, scratch, "pulled");
    let run = far.copies(&options, &format!("one:{source}"), &format!("two:{}", scratch.at("between")));
    has_listed(&run, scratch, "between");
}

#[test]
fn a_long_list_travels_to_the_sender_and_filters_hold_as_well() {
    let scratch = Scratch::new();
    for index in 0..300 {
        scratch.file(&format!("root/d/{index}"), 1);
    }
    scratch.file("root/d/none/301", 1);
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let (place, to) = (format!("udt://{}/", server.address), scratch.at("to"));
    // More than a frame of names. Most are in a directory that is excluded.
    let names: Vec<String> =
        (0..20_000).map(|index| format!("d/{}{index}", if index < 300 { "" } else { "none/" })).collect();
    let copy =
        ["copy", "--plain", "--files-from", "-", "--from0", "--exclude", "/d/none", "--exclude", "*7", &place, &to];
    let run = farhaul_with(names.join("\0").as_bytes(), &copy);
    run.succeeds();
    let arrived = scratch.names("to/d");
    assert_eq!((arrived.len(), arrived.contains(&"17".to_owned())), (270, false));
}

#[test]
fn without_recursion_a_listed_directory_is_made_without_its_content() {
    let scratch = Scratch::new();
    let source = make_source(&scratch);
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let place = |path: &str| format!("udt://{}/{path}", server.address);
    fs::write(scratch.at("list"), "a\nb/c/z\n").unwrap();
    let list = scratch.at("list");
    for (from, to, at) in [(source, place("pushed"), "root/pushed"), (place("src"), scratch.at("pulled"), "pulled")] {
        farhaul(&["copy", "--plain", "--files-from", &list, &from, &to]).succeeds();
        assert_eq!(scratch.names(at), ["a", "b"]);
        assert!(
            scratch.names(&format!("{at}/a")).is_empty() && Path::new(&scratch.at(&format!("{at}/b/c/z"))).exists()
        );
    }
}

#[test]
fn lists_and_copies_that_do_not_fit_are_usage_errors() {
    let scratch = Scratch::new();
    let source = make_source(&scratch);
    let (list, bad) = (scratch.at("list"), scratch.at("bad"));
    let to = "udt://127.0.0.1:9/x";
    let run = |list: &str, more: &[&str]| farhaul(&[&["copy", "--plain", "-r", "--files-from", list], more].concat());
    for (text, words) in [
        ("ok\n../out\n", &["line 2 of", "../out", "could leave the source"][..]),
        ("/etc/passwd\n", &["line 1 of", "relative to the source"]),
    ] {
        fs::write(&bad, text).unwrap();
        run(&bad, &[&source, to]).fails(2, words);
    }
    run(&scratch.at("none"), &[&source, to]).fails(2, &["cannot read the names", "none"]);
    run(&list, &["--delete", &source, to]).fails(2, &["nothing can be removed", "leave out --delete"]);
    run(&list, &[&source, &source, to]).fails(2, &["one source"]);
    run(&list, &["-", to]).fails(2, &["not -"]);
    farhaul(&["copy", "-r", "--files-from", &list, "one:a", "one:b", "two:b"]).fails(2, &["one source"]);
    farhaul(&["copy", "--plain", "-0", &source, to]).fails(2, &["--files-from"]);
    run(&list, &[&scratch.at("root/src/lone"), to]).fails(3, &["lone", "nothing was copied"]);
}
