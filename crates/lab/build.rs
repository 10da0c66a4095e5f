//! Finds the figures below `figures/`, so that the program carries them. Each becomes a row of a table.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("figures");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut table = String::from("&[\n");
    for paper in folders(&root)? {
        for figure in folders(&paper)? {
            println!("cargo::rerun-if-changed={}", figure.display());
            let name =
                |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let text = |file: &str| {
                let path = figure.join(file);
                match path.exists() {
                    true => format!("include_str!({:?})", path.canonicalize().unwrap_or(path)),
                    false => "\"\"".to_owned(),
                }
            };
            writeln!(
                table,
                "    Shipped {{ id: {:?}, paper: {:?}, scenario: {}, published: {}, readme: {} }},",
                name(&figure),
                name(&paper),
                text("scenario.toml"),
                text("paper.csv"),
                text("README.md"),
            )
            .map_err(io::Error::other)?;
        }
    }
    table.push(']');
    fs::write(Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("figures.rs"), table)
}

/// The folders in a folder, by name. A folder that does not exist has none.
fn folders(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut folders: Vec<PathBuf> = entries
        .collect::<io::Result<Vec<_>>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    Ok(folders)
}
