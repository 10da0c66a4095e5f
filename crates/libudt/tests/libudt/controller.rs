//! A congestion controller of a program: a CCC subclass on a lossy path.

use crate::library::{Headers, Library, compile};

#[test]
fn a_controller_gets_every_callback_as_from_the_reference_library() {
    let Some(program) = compile("controller", Headers::Reference) else { return };
    let ours = Library::Farhaul.output(&program, &[]).unwrap();
    assert!(ours.contains("init 1, close 1") && !ours.contains(" no"), "{ours}");
    assert!(ours.contains("callee: custom messages 2, bad 0"), "{ours}");
    // On a busy machine, libudt loses the one that leaves right behind the handshake.
    let reference = Library::Reference.output(&program, &[]).unwrap();
    assert_eq!(ours, reference.replace("callee: custom messages 1,", "callee: custom messages 2,"));
}

#[test]
fn calls_of_sockets_from_a_callback_are_refused_and_do_not_hang() {
    let Some(program) = compile("controller", Headers::Reference) else { return };
    let output = Library::Farhaul.output(&program, &["nested"]).unwrap();
    assert!(output.ends_with("calls from callbacks: refused\n"), "{output}");
}
