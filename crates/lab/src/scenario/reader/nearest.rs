//! The known name that a wrong name probably meant.

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
