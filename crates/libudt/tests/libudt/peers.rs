//! What a program notices of the other end.

use crate::library::{Headers, Library, compile};

#[test]
fn a_record_that_fits_into_a_packet_arrives_whole() {
    let Some(program) = compile("peers", Headers::Reference) else { return };
    for library in [Library::Reference, Library::Farhaul] {
        assert_eq!(library.output(&program, &[]).unwrap(), "records cut: 0\n", "{library:?}");
    }
}
