//! The known name that a wrong one was probably meant to be.

/// The one of `names` that differs from `word` by the fewest letters, if it is a third of them at most.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| 3 * distance <= name.len().max(word.len()))
        .map(|(_, name)| name)
}

/// Letters to be changed, added or left out (Levenshtein's distance).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let names = ["rate", "delay", "queue", "loss"];
        assert_eq!(nearest("rat", names), Some("rate"));
        assert_eq!(nearest("quue", names), Some("queue"));
        assert_eq!(nearest("bandwidth", names), None);
        assert_eq!((distance("kitten", "sitting"), distance("", "ab"), distance("ab", "")), (3, 2, 2));
    }
}
