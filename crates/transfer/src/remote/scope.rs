//! What a copy brings, in the one form in which the programs of a copy over SSH tell it to each other.

use std::sync::Arc;

use farhaul_session::{CopyScope, Listed, NameList, NameListBuilder, RelPath, Rules};
use serde::{Deserialize, Serialize};

use crate::location::percent;

/// Longest list of names, bytes: it shares a message with everything else.
const LONGEST_NAMES: usize = 3 << 20;

/// Bytes of a path, which need not be UTF-8: with escapes as in a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PathText(String);

impl PathText {
    pub(crate) fn new(path: &[u8]) -> Self {
        Self(percent::encoded(path))
    }

    /// The bytes of the path.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, &'static str> {
        percent::decoded(self.0.as_bytes())
    }
}

/// A list of names: a blank before each of them, and escapes as in a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct NamesText(String);

impl NamesText {
    /// The list as a text. `None` if that is too long for a message.
    fn new(names: &NameList) -> Option<Self> {
        let mut text = String::new();
        if names.place_of(&RelPath::root(), true) == Listed::Itself {
            text.push(' ');
        }
        for name in names.names_within(&RelPath::root()) {
            text.push(' ');
            text.push_str(&percent::encoded(&name.to_bytes()));
        }
        (text.len() <= LONGEST_NAMES).then_some(Self(text))
    }

    /// The list.
    fn list(&self) -> Result<NameList, &'static str> {
        let mut list = NameListBuilder::default();
        for name in self.0.split(' ').skip(1) {
            let name = RelPath::parse(&percent::decoded(name.as_bytes())?).map_err(|_| "it is no name")?;
            list.push(&name).map_err(|_| "there are too many names")?;
        }
        Ok(list.build())
    }
}

/// What a copy brings. The program that sends learns its paths, and the one that receives the names that they arrive under. An unknown
/// field is refused, since it may narrow the scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeText {
    /// The paths or names. An empty name stands for the content of a directory.
    pub(crate) paths: Vec<PathText>,
    /// Whether names that arrive may be patterns. The program that sends asks each of its paths.
    patterns: bool,
    pub(crate) recursive: bool,
    /// The names that the content of the only directory is restricted to. The field is there in any case: without it, everything would
    /// be in the scope.
    #[serde(deserialize_with = "Option::deserialize")]
    names: Option<NamesText>,
    /// The rules of the copy, as a session encodes them.
    rules: PathText,
}

impl ScopeText {
    /// These paths or names.
    pub(crate) fn of(paths: Vec<PathText>, patterns: bool, recursive: bool) -> Self {
        Self { paths, patterns, recursive, names: None, rules: PathText::new(&Rules::default().to_bytes()) }
    }

    /// What these literal names bring.
    pub(crate) fn named<'a>(names: impl IntoIterator<Item = &'a RelPath>, recursive: bool) -> Self {
        let text = |name: &RelPath| PathText::new(&name.to_bytes());
        Self::of(names.into_iter().map(text).collect(), false, recursive)
    }

    /// The content of one directory.
    pub(crate) fn of_directory(recursive: bool) -> Self {
        Self::named(&[RelPath::root()], recursive)
    }

    /// The same under these rules.
    pub(crate) fn under_rules(self, rules: &Rules) -> Self {
        Self { rules: PathText::new(&rules.to_bytes()), ..self }
    }

    /// The same for these names in the only directory. `None` if they are too long for a message.
    pub(crate) fn restricted(self, names: &NameList) -> Option<Self> {
        Some(Self { names: Some(NamesText::new(names)?), patterns: false, ..self })
    }

    /// The names that the content of the only directory is restricted to.
    pub(crate) fn names(&self) -> Result<Option<NameList>, &'static str> {
        self.names.as_ref().map(NamesText::list).transpose()
    }

    /// The rules of the copy.
    ///
    /// # Errors
    /// They are none of this version.
    pub(crate) fn rules(&self) -> Result<Rules, &'static str> {
        Rules::from_bytes(&self.rules.bytes()?).map_err(|_| "the rules of the copy are none")
    }

    /// The same, as a session has it. `single` is for a target that takes one entry.
    ///
    /// # Errors
    /// A path is no name, a list of names is not for the content of one directory, or another part is malformed.
    pub(crate) fn scope(&self, single: bool) -> Result<CopyScope, &'static str> {
        let name = |name: &PathText| RelPath::parse(&name.bytes()?).map_err(|_| "it is no name");
        let paths: Vec<RelPath> = self.paths.iter().map(name).collect::<Result<_, _>>()?;
        let (recursive, patterns, names) = (self.recursive, self.patterns, self.names()?.map(Arc::new));
        if names.is_some() && (paths != [RelPath::root()] || patterns) {
            return Err("a list of names is for the content of one directory");
        }
        let single = single && names.is_none();
        Ok(CopyScope { paths, recursive, patterns, single, names, rules: self.rules()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&[u8]]) -> NameList {
        let mut list = NameListBuilder::default();
        names.iter().for_each(|name| list.push(&RelPath::parse(name).unwrap()).unwrap());
        list.build()
    }

    #[test]
    fn names_of_any_bytes_survive_their_way() {
        let odd: [&[u8]; 6] = [b"", b"a", b"a b", b"d/%20", b"odd\xff\nname", "日本".as_bytes()];
        for names in [&odd[..0], &odd[..1], &odd[..2], &odd[2..], &odd] {
            let sent = list(names);
            let text = NamesText::new(&sent).unwrap();
            assert_eq!(text.list().as_ref(), Ok(&sent), "{text:?}");
        }
        for text in [" ../a", " /a", " %zz", " a//b"] {
            assert!(NamesText(text.to_owned()).list().is_err(), "{text}");
        }
        let many: Vec<String> = (0..13_000).map(|index| format!("{}{index:05}", "n".repeat(250))).collect();
        let many: Vec<&[u8]> = many.iter().map(String::as_bytes).collect();
        assert_eq!(NamesText::new(&list(&many)), None);
    }

    #[test]
    fn a_scope_survives_its_text() {
        let rules = Rules { dry_run: true, ..Rules::default() };
        let names = list(&[b"a", b"d/b"]);
        let scope = ScopeText::of_directory(true).under_rules(&rules).restricted(&names).unwrap();
        let told: ScopeText = serde_json::from_str(&serde_json::to_string(&scope).unwrap()).unwrap();
        let arrived = told.scope(true).unwrap();
        assert_eq!(arrived.names.as_deref(), Some(&names));
        assert_eq!((arrived.paths, arrived.rules), (vec![RelPath::root()], rules));
        assert!(arrived.recursive && !arrived.single && !arrived.patterns);
        let elsewhere = ScopeText { paths: vec![PathText::new(b"c")], ..scope };
        assert!(elsewhere.scope(false).is_err(), "names belong to the only directory");
        let outside = ScopeText::of(vec![PathText::new(b"../etc")], false, true);
        assert_eq!(outside.scope(false), Err("it is no name"));
    }

    #[test]
    fn a_part_that_is_missing_or_unknown_makes_it_no_scope() {
        let whole = serde_json::to_value(ScopeText::of_directory(true)).unwrap();
        let mut told = whole.clone();
        told["only"] = "a".into();
        assert!(serde_json::from_value::<ScopeText>(told).is_err());
        for part in ["paths", "patterns", "recursive", "names", "rules"] {
            let mut told = whole.clone();
            told.as_object_mut().unwrap().remove(part);
            assert!(serde_json::from_value::<ScopeText>(told).is_err(), "{part}");
        }
    }
}
