//! The headers, and programs that are built with them.

use crate::library::{Headers, Library, compile};

#[test]
fn sizes_offsets_and_numbers_are_those_of_debians_headers() {
    let Some((ours, theirs)) = compile("layout", Headers::Farhaul).zip(compile("layout", Headers::Reference)) else {
        return;
    };
    let ours = Library::Farhaul.output(&ours, &[]).unwrap();
    assert!(ours.lines().count() > 90, "{ours}");
    assert_eq!(ours, Library::Reference.output(&theirs, &[]).unwrap());
}

#[test]
fn a_program_built_with_debians_headers_finds_the_same_numbers_here() {
    let Some(program) = compile("layout", Headers::Reference) else { return };
    let there = Library::Reference.output(&program, &[]).unwrap();
    assert_eq!(Library::Farhaul.output(&program, &[]), Some(there));
}

#[test]
fn programs_derive_from_udts_own_control_and_make_packets() {
    let Some(program) = compile("superset", Headers::Farhaul) else { return };
    let output = Library::Farhaul.output(&program, &[]).unwrap();
    let expected = "bind 0, listen 0\nconnect 0\nreceived 4000000 bytes, acknowledgements yes, messages 2\n";
    assert_eq!(output, expected);
}
