//! What a program notices of the other end.

use crate::library::{Headers, Library, compile};

#[test]
fn data_is_sent_and_received_as_with_the_reference_library() {
    let Some(program) = compile("peers", Headers::Reference) else { return };
    for library in [Library::Reference, Library::Farhaul] {
        let output = library.output(&program, &[]).unwrap();
        assert_eq!(output, "records cut: 0\nshort-lived messages: 10\ntaken of a long send: 1000000\n", "{library:?}");
    }
}
