//! Names in messages: the known one that a wrong name probably meant, and lists of all.

use strsim::osa_distance;

/// The name in `names` that differs from `word` by the fewest letters, if that is at most a third of them. Letters are
/// changed, added, left out or swapped with their neighbours.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (osa_distance(word, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| 3 * distance <= name.len().max(word.len()))
        .map(|(_, name)| name)
}

/// ` (name?)` with the nearest name, or nothing.
pub(crate) fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or(String::new(), |name| format!(" ({name}?)"))
}

/// Names in a row, with "and" before the last.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
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
    }
}
