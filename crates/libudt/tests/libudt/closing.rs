//! Sockets that are closed under the calls of other threads, and an epoll that threads share.

use crate::library::{Headers, Library, compile};

#[test]
fn blocked_calls_end_when_another_thread_closes_their_socket() {
    let Some(program) = compile("closing", Headers::Reference) else { return };
    let output = Library::Farhaul.output(&program, &[]).unwrap();
    assert_eq!(output, "blocked calls\nemptied epoll\ndifferent wishes\nshared epoll\ndone\n");
}
