//! Lists the longest files and functions. For information; nothing fails.

use anyhow::Result;

use crate::workspace::Workspace;

/// Number of entries.
const SHOWN: usize = 10;

/// Prints the lists.
pub(super) fn show(workspace: &Workspace) -> Result<()> {
    let (mut files, mut functions) = (Vec::new(), Vec::new());
    for path in workspace.files(&["rs"])? {
        let text = workspace.text(&path)?;
        files.push((text.lines().count(), path.display().to_string()));
        functions.extend(
            self::functions(&text).into_iter().map(|(length, name)| (length, format!("{name} in {}", path.display()))),
        );
    }
    print("files", files);
    print("functions", functions);
    Ok(())
}

fn print(what: &str, mut lengths: Vec<(usize, String)>) {
    lengths.sort_by(|a, b| b.cmp(a));
    println!("longest {what}, in lines:");
    lengths.iter().take(SHOWN).for_each(|(length, name)| println!("  {length:>4}  {name}"));
}

/// Every function of formatted source text with its length. It ends at the first closing brace with its own
/// indentation.
fn functions(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let Some(name) = name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        // A trait method without a body has no length.
        if lines[begin..].iter().find(|line| line.ends_with(['{', ';'])).is_none_or(|line| line.ends_with(';')) {
            continue;
        }
        if let Some(length) = lines[begin..].iter().position(|line| *line == end) {
            found.push((length + 1, name.to_owned()));
        }
    }
    found
}

/// The name of the function that begins on this line.
fn name(line: &str) -> Option<&str> {
    let (before, rest) = line.trim_start().split_once("fn ")?;
    let is_head = before
        .split_whitespace()
        .all(|word| word.starts_with("pub") || word.ends_with(')') || ["const", "async", "unsafe"].contains(&word));
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    (is_head && end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_at_its_own_brace() {
        let text = "impl A {\n    pub(in a::b) const fn one() {\n        if x {\n        }\n    }\n}\nfn two() {\n}\n";
        assert_eq!(functions(text), [(4, "one".into()), (2, "two".into())]);
    }

    #[test]
    fn a_method_without_a_body_has_no_length() {
        assert_eq!(
            functions("trait A {\n    fn one(\n        x: u8,\n    );\n    fn two(&self) {\n    }\n}\n"),
            [(2, "two".into())]
        );
    }

    #[test]
    fn prose_begins_no_function() {
        assert_eq!(name("    // the fn call"), None);
        assert_eq!(name("type F = fn (u8) -> u8;"), None);
    }
}
