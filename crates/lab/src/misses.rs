//! The scores that the shipped results do not meet: full runs in the simulator. Emulated results depend on the machine, and
//! stand in the figures' READMEs alone.

use crate::figures::{Shipped, shipped};

/// The name of such a list in a folder of results.
pub const FILE: &str = "misses.csv";

/// The first line of a list.
const HEAD: &str = "figure,score\n";

/// One line for each score that is not met, in the order of the figures.
const SHIPPED: &str = include_str!("../figures/misses.csv");

/// A score that is not met, and the page that says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss<'a> {
    /// The figure's id.
    pub figure: &'a str,
    /// The score's id.
    pub score: &'a str,
}

impl Miss<'_> {
    /// The shipped figure; `None` for a figure of a user.
    #[must_use]
    pub fn shipped(&self) -> Option<&'static Shipped> {
        shipped().iter().find(|shipped| shipped.id == self.figure)
    }
}

/// The scores that the shipped results do not meet.
pub fn misses() -> impl Iterator<Item = Miss<'static>> {
    read(SHIPPED)
}

/// A list of misses as a file.
pub fn csv<'m>(misses: impl IntoIterator<Item = Miss<'m>>) -> String {
    let lines = misses.into_iter().map(|Miss { figure, score }| format!("{figure},{score}\n"));
    HEAD.to_owned() + &lines.collect::<String>()
}

fn read(text: &str) -> impl Iterator<Item = Miss<'_>> {
    let lines = text.lines().skip(1);
    lines.filter_map(|line| line.split_once(',').map(|(figure, score)| Miss { figure, score }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_as_it_is_read() {
        assert_eq!(csv(misses()), SHIPPED);
    }
}
