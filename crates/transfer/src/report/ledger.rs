//! A digest over all verified files of a copy, in their order. Two ends that agree on it agree on every name, size and content.

use farhaul_session::Digest;
use serde::{Deserialize, Serialize};

/// The digest so far: a chain, each link of which covers the one before and a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger(String);

impl Ledger {
    /// Adds a file. `path` and `digest` are as in records.
    pub(crate) fn add(&mut self, path: &str, bytes: u64, digest: &str) {
        // A path in records has no line break.
        self.0 = Digest::of(format!("{}\n{path}\n{bytes}\n{digest}", self.0).as_bytes()).to_string();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(files: &[(&str, u64, &str)]) -> Ledger {
        let mut ledger = Ledger::default();
        files.iter().for_each(|(path, bytes, digest)| ledger.add(path, *bytes, digest));
        ledger
    }

    #[test]
    fn a_ledger_covers_names_sizes_contents_and_their_order() {
        let files = [("a", 1, "d1"), ("b", 2, "d2")];
        let whole = ledger(&files);
        assert_eq!(whole, ledger(&files));
        for other in [
            &[("b", 2, "d2"), ("a", 1, "d1")][..],
            &[("a", 1, "d1")],
            &[("a", 1, "d1"), ("b", 2, "d3")],
            &[("a", 1, "d1"), ("b", 3, "d2")],
            &[("a", 1, "d1"), ("c", 2, "d2")],
        ] {
            assert_ne!(whole, ledger(other));
        }
    }
}
