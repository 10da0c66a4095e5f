//! The book's pages about laws are those that the registry and the laws' documentation make.

#[path = "../../examples/laws/pages.rs"]
mod pages;

use std::fs;

use farhaul_cc::registry::{LawFamily, controllers};

#[test]
fn pages_about_laws_are_up_to_date() {
    for (name, text) in pages::all() {
        let is_same = fs::read_to_string(pages::book().join(&name)).is_ok_and(|there| there == text);
        assert!(is_same, "docs/book/{name} is older than the laws: cargo run --release -p farhaul-sim --example laws");
    }
    // Other tests of this process add some.
    for entry in controllers().into_iter().filter(|entry| entry.family != LawFamily::Own) {
        let curve = pages::book().join(pages::CURVES).join(format!("{}.svg", entry.name));
        assert!(curve.exists(), "{} has no curve ({})", entry.name, pages::example(entry));
    }
}
