//! The header that is checked in.

use std::fs;
use std::path::Path;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// What cbindgen makes of the crate now.
fn made() -> String {
    let config = cbindgen::Config::from_file(Path::new(FOLDER).join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    // The order of the header: what a program meets first stands first.
    for part in [
        "version",
        "result",
        "error",
        "key",
        "options",
        "endpoint",
        "listener",
        "connection",
        "stream",
        "message",
        "stats",
        "canceller",
        "watch",
        "access",
        "event",
        "copy",
        "files",
    ] {
        builder = builder.with_src(Path::new(FOLDER).join(format!("src/{part}.rs")));
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

#[test]
fn the_header_is_what_the_crate_exports() {
    let path = Path::new(FOLDER).join("include/farhaul.h");
    let made = made();
    if std::env::var_os("FARHAUL_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    assert!(checked_in == made, "include/farhaul.h is not current: FARHAUL_BLESS=1 cargo test -p farhaul-c header");
    // Every function that the crate exports has its prototype there.
    let mut exported = 0;
    for part in fs::read_dir(Path::new(FOLDER).join("src")).unwrap() {
        let text = fs::read_to_string(part.unwrap().path()).unwrap();
        for line in text.lines().filter(|line| line.starts_with("pub ") && line.contains("extern \"C\" fn ")) {
            let name = line.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            assert!(name.starts_with("farhaul_") && made.contains(&format!("{name}(")), "{name}");
            exported += 1;
        }
    }
    assert!(exported > 60, "{exported}");
}
