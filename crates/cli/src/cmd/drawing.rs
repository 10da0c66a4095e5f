//! The formats of drawings as files. `rsvg-convert` makes PDF and PNG of the SVG: drawing text needs the fonts of the
//! machine and fifty crates, which a program that copies files should not carry.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::exit::{Code, Fault};
use clap::ValueEnum;

/// The program that converts, of librsvg.
const CONVERTER: &str = "rsvg-convert";
/// Pixels of a PNG for a unit of the drawing: 1440 across a text column, which is 200 dots per inch on A4.
const ZOOM: &str = "--zoom=2";

/// The format of a drawing, which is also the extension of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Svg,
    Pdf,
    Png,
}

impl Format {
    const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Png => "png",
        }
    }

    /// Writes a drawing as `stem` with the extension of this format. A file that is there is replaced.
    ///
    /// # Errors
    /// The file, and the reason: it cannot be written, or the converter fails.
    pub(super) fn write(self, stem: &Path, svg: &str) -> Result<(), (PathBuf, io::Error)> {
        // The stem may have a dot.
        let path = stem.with_file_name(format!(
            "{}.{}",
            stem.file_name().unwrap_or_default().to_string_lossy(),
            self.extension()
        ));
        let bytes = match self {
            Self::Svg => Ok(svg.as_bytes().to_vec()),
            Self::Pdf => converted(&["--format=pdf"], svg),
            Self::Png => converted(&["--format=png", ZOOM], svg),
        };
        bytes.and_then(|bytes| fs::write(&path, bytes)).map_err(|error| (path, error))
    }
}

/// Checks that this machine can write these formats, before anything runs.
pub(super) fn possible(formats: &[Format]) -> Result<(), Fault> {
    if formats.iter().all(|format| *format == Format::Svg) {
        return Ok(());
    }
    let fault = |reason: String| {
        Err(Fault::new(Code::Failed, format!("PDF and PNG are made by {CONVERTER}, {reason}")).remedy(
            "install librsvg2-bin (Debian, Ubuntu), librsvg2-tools (Fedora) or librsvg (Homebrew), or leave out --format",
        ))
    };
    match Command::new(CONVERTER).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => fault(format!("which fails: {}", said(&output))),
        Err(error) if error.kind() == ErrorKind::NotFound => fault("which is not installed".to_owned()),
        Err(error) => fault(format!("which does not run: {error}")),
    }
}

/// What the converter makes of a drawing.
fn converted(options: &[&str], svg: &str) -> io::Result<Vec<u8>> {
    let mut command = Command::new(CONVERTER);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let input = child.stdin.take();
    let output = thread::scope(|scope| {
        // It may write before it has read all. If it reads no more, it says why.
        scope.spawn(move || input.map(|mut input| input.write_all(svg.as_bytes())));
        child.wait_with_output()
    })?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(io::Error::other(format!("{CONVERTER} fails: {}", said(&output))))
    }
}

/// The first line that a program said about its failure, or its exit status.
fn said(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    words.lines().next().map_or_else(|| output.status.to_string(), |line| line.escape_debug().to_string())
}
