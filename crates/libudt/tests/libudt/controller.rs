//! A congestion controller of a program: a CCC subclass on a lossy path.

use crate::library::{Headers, Library, compile};

#[test]
fn a_controller_gets_every_callback_as_from_the_reference_library() {
    let Some(program) = compile("controller", Headers::Reference) else { return };
    let ours = Library::Farhaul.output(&program, &[]).unwrap();
    assert!(ours.contains("init 1, close 1") && !ours.contains(" no"), "{ours}");
    assert_eq!(ours, Library::Reference.output(&program, &[]).unwrap());
}

#[test]
fn calls_of_sockets_from_a_callback_are_refused_and_do_not_hang() {
    let Some(program) = compile("controller", Headers::Reference) else { return };
    let output = Library::Farhaul.output(&program, &["nested"]).unwrap();
    assert!(output.ends_with("calls from callbacks: refused\n"), "{output}");
}
