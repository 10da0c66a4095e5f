//! Which names a server serves.

/// Whether a name stays inside the served folder: no absolute path, no component that is empty, `.` or `..`, no
/// backslash and no control character. The original serves every path that it can read.
pub(super) fn stays_inside(name: &[u8]) -> bool {
    let harmless = name.iter().all(|&byte| byte >= b' ' && byte != b'\\' && byte != 0x7F);
    harmless && name.split(|&byte| byte == b'/').all(|component| !matches!(component, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in [&b"a"[..], b"a/b.dat", b"..a/b..", "ümlaut".as_bytes(), b"--finishhook=x"] {
            assert!(stays_inside(name), "{}", name.escape_ascii());
        }
        for name in
            [&b""[..], b"/etc/passwd", b"../a", b"a/../b", b"a/..", b"a//b", b"a/", b".", b"..\\a", b"a\rb", b"\x1b[2J"]
        {
            assert!(!stays_inside(name), "{}", name.escape_ascii());
        }
    }
}
