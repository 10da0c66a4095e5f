//! What programs of libudt rely on, whatever its manual says.

use crate::library::{Headers, Library, compile};

#[test]
fn what_programs_rely_on_holds_as_with_the_reference_library() {
    let Some(program) = compile("habits", Headers::Reference) else { return };
    let [theirs, ours] = [Library::Reference, Library::Farhaul].map(|library| library.output(&program, &[]).unwrap());
    assert_eq!(theirs, ours);
    assert!(ours.ends_with("records cut: 0\nshort-lived messages: 10\ntaken of a long send: 1000000\n"), "{ours}");
}

/// The reference library answers so once it notices that a peer was killed, except that it tells nobody who waits for errors alone, and
/// that unread data is not in the result of selectEx.
#[test]
fn a_connection_that_is_over_is_counted_once_in_each_set() {
    let Some(program) = compile("habits", Headers::Reference) else { return };
    let expected = "events 13: 2 = 1 + 1\nevents 1: 1 = 1 + 0\nevents 4: 1 = 0 + 1\nevents 9: 1 = 1 + 0\nevents 8: 2 = 1 + 1\n\
        event 8, selectEx 2 = 1 + 0 + 1\nevent 8, selectEx 1 = 0 + 0 + 1\nselectEx without errors: 1\n";
    assert_eq!(Library::Farhaul.output(&program, &["ended"]).unwrap(), expected);
}
