//! The pages of the book about control laws, and their curves, from the registry and the laws' own documentation.
//!
//! `cargo run --release -p farhaul-sim --example laws` writes them. A test says when they are older than the laws.

mod curve;
mod pages;

use std::fs;

use farhaul_cc::registry::controllers;

fn main() -> std::io::Result<()> {
    let book = pages::book();
    fs::create_dir_all(book.join(pages::CURVES))?;
    for (name, text) in pages::all() {
        fs::write(book.join(name), text)?;
    }
    for entry in controllers() {
        fs::write(book.join(pages::CURVES).join(format!("{}.svg", entry.name)), curve::of(&pages::example(entry)))?;
    }
    Ok(())
}
