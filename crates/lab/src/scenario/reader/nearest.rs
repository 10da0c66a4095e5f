//! The known name that a wrong name probably meant.

/// The name in `names` that differs from `word` by the fewest letters, if that is at most a third of them.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| 3 * distance <= name.len().max(word.len()))
        .map(|(_, name)| name)
}

/// The number of letters to change, add, leave out or swap with their neighbours (restricted Damerau–Levenshtein
/// distance).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    rows[0] = (0..=right.len()).collect();
    for i in 1..=left.len() {
        rows[i][0] = i;
        for j in 1..=right.len() {
            let changed = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let names = ["rate", "delay", "queue", "loss"];
        assert_eq!(nearest("rat", names), Some("rate"));
        assert_eq!((nearest("quue", names), nearest("lsos", names)), (Some("queue"), Some("loss")));
        assert_eq!(nearest("bandwidth", names), None);
        assert_eq!((distance("kitten", "sitting"), distance("", "ab"), distance("ab", "")), (3, 2, 2));
    }
}
