//! What programs of libudt rely on, whatever its manual says.

use crate::library::{Headers, Library, compile};

#[test]
fn what_programs_rely_on_holds_as_with_the_reference_library() {
    let Some(program) = compile("habits", Headers::Reference) else { return };
    let [theirs, ours] = [Library::Reference, Library::Farhaul].map(|library| library.output(&program, &[]).unwrap());
    assert_eq!(theirs, ours);
    assert!(ours.ends_with("records cut: 0\nshort-lived messages: 10\ntaken of a long send: 1000000\n"), "{ours}");
}
