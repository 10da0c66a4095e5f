//! Codes, options, states and events, side by side with the reference library.

use crate::library::{Headers, LONGEST, Library, compile, scratch};

/// The differences that the book's page names: the row, the reference library's answer and ours.
const DIFFERENCES: [(&str, &str, &str); 3] = [
    // A closed listener of libudt stays for three seconds.
    ("close again", ": 0", ": error 5004"),
    ("state of a closed socket", " = 6", " = 8"),
    // A socket that failed to connect may try again.
    ("connect again", ": error 5002", ": 0"),
];

#[test]
fn calls_answer_as_those_of_the_reference_library_do() {
    let Some(program) = compile("codes", Headers::Reference) else { return };
    let run = |library: Library| {
        let mut command = library.command_for(&program, LONGEST).unwrap();
        let output = command.current_dir(scratch()).output().unwrap();
        assert!(output.status.success(), "{library:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (theirs, ours) = (run(Library::Reference), run(Library::Farhaul));
    assert!(theirs.lines().count() > 150, "{theirs}");
    assert_eq!(theirs.lines().count(), ours.lines().count(), "{ours}");
    let mut seen = 0;
    for (there, here) in theirs.lines().zip(ours.lines()).filter(|(there, here)| there != here) {
        let known = DIFFERENCES.iter().any(|(row, theirs, ours)| {
            there.strip_prefix(row) == Some(*theirs) && here.strip_prefix(row) == Some(*ours)
        });
        assert!(known, "there: {there}\nhere: {here}");
        seen += 1;
    }
    assert_eq!(seen, DIFFERENCES.len());
}
