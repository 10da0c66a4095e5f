//! One page of the book for each family of laws.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use farhaul_cc::registry::{Entry, LawFamily, controllers};

/// The folder of curves in the book.
pub(crate) const CURVES: &str = "laws";

/// What a family has in common: its title, and what it is for.
const fn introduction(family: LawFamily) -> (&'static str, &'static str) {
    match family {
        LawFamily::Loss => (
            "Laws that react to loss",
            "Each acknowledgement widens a window, and a loss narrows it. They fill the queue of the path, and differ in how fast they \
             come back after a loss. A random loss is a signal as well, so they need paths that lose little.",
        ),
        LawFamily::Delay => (
            "Laws that react to delay",
            "A queue shows in the RTT before it overflows. These laws keep it short, and lose nothing when they are alone. Beside laws that \
             fill the queue they give way, unless they notice that and compete.",
        ),
        LawFamily::Model => (
            "Laws with a model of the path",
            "They measure what arrives, and send about as much. A loss alone changes little, so they keep a path with random loss full.",
        ),
        _ => (
            "Laws of a rate",
            "UDT's laws govern the time from packet to packet, once in 10 ms, and not a window. So their growth does not depend on the RTT.",
        ),
    }
}

/// The book's folder.
pub(crate) fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book")
}

/// The files of all families: name in the book's folder, and text.
pub(crate) fn all() -> Vec<(String, String)> {
    LawFamily::BUILT_IN.map(|family| (format!("laws-{}.md", family.name()), page(family))).into()
}

/// The form in which a law is used and drawn: its name, with an option that it must have.
pub(crate) fn example(entry: &Entry) -> String {
    if entry.name == "fixed" { "fixed:rate=90mbit".into() } else { entry.name.into() }
}

fn page(family: LawFamily) -> String {
    let (title, purpose) = introduction(family);
    let mut text = format!(
        "# {title}\n\n{purpose}\n\nThe curves show packets in flight on 100 Mbit/s with an RTT of 100 ms. The lower line is a full path, the \
         upper one a full queue.\nOptions are listed by `farhaul controllers`. This page is made from the registry and the laws' own \
         documentation\n(`cargo run --release -p farhaul-sim --example laws`).\n"
    );
    for entry in controllers().into_iter().filter(|entry| entry.family == family) {
        let mut summary = entry.summary.to_owned();
        if let Some(first) = summary.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let _ = write!(text, "\n## {}\n\n{summary}.\n\n", entry.name);
        let _ = write!(text, "![Packets in flight over time]({CURVES}/{}.svg)\n\n", entry.name);
        match equations(entry.name) {
            Ok(Some(lines)) => _ = write!(text, "```text\n{lines}```\n\n"),
            Ok(None) | Err(_) => panic!("the documentation of {} has no block of equations", entry.name),
        }
        let _ = writeln!(text, "**Not for** {}.", entry.unsuited);
        if entry.source != "none" {
            let _ = writeln!(text, "Source: {} in the [bibliography](../papers/papers.bib).", entry.source);
        }
    }
    text
}

/// The first block of equations in the documentation of a law.
fn equations(name: &str) -> io::Result<Option<String>> {
    let file = if name == "udt" { "udt4".to_owned() } else { name.replace('-', "_") };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/src");
    let paths = ["window", "rate", "model"].map(|folder| sources.join(folder).join(format!("{file}.rs")));
    let Some(path) = paths.into_iter().find(|path| path.exists()) else { return Ok(None) };
    let source = fs::read_to_string(path)?;
    let lines =
        source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    let block: Vec<&str> =
        lines.skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```").collect();
    Ok((!block.is_empty()).then(|| block.join("\n") + "\n"))
}
