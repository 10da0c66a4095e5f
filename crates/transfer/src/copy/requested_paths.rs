//! The paths that a copy requests from the other side, by name or by pattern.

use std::sync::Arc;

use farhaul_session::{Component, CopyScope, NameList, Pattern, RelPath, Rules};

use crate::location::{ServerPlace, SshPlace};

/// Requested paths.
#[derive(Debug)]
pub(super) struct RequestedPaths {
    pub(super) paths: Vec<RelPath>,
    /// Whether a path that does not exist is a pattern.
    patterns: bool,
    /// The names that the copy of the content of the only path is restricted to.
    pub(super) names: Option<Arc<NameList>>,
}

impl RequestedPaths {
    /// Below the root of a server. If one of them is a pattern, the others say that they are none.
    pub(super) fn of_server(places: &[&ServerPlace]) -> Self {
        let patterns = places.iter().any(|place| place.pattern.is_some());
        let path = |place: &&ServerPlace| match &place.pattern {
            Some(pattern) => pattern.clone(),
            None if patterns => quoted(&place.path),
            None => place.path.clone(),
        };
        Self { paths: places.iter().map(path).collect(), patterns, names: None }
    }

    /// Of a remote program, which knows the whole paths. Here they are the names under which they arrive.
    pub(super) fn over_ssh(places: &[&SshPlace]) -> Self {
        let paths = places.iter().map(|place| place.name()).collect();
        Self { paths, patterns: places.iter().any(|place| place.has_pattern()), names: None }
    }

    /// The same for listed names in the only path, which is literal.
    pub(super) fn restrict(&mut self, names: Arc<NameList>) {
        self.names = Some(names);
        self.patterns = false;
    }

    /// The names that they arrive under, in the order of the copy: ascending by their bytes. Patterns have none yet.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        if let Some(names) = &self.names {
            return top_of(names);
        }
        let named = self.paths.iter().filter(|_| !self.patterns);
        let mut names: Vec<_> = named.filter_map(|path| Some(path.split_last()?.0.as_bytes().to_vec())).collect();
        names.sort_unstable();
        names
    }

    /// What they bring. `single` is for a target that takes one entry.
    pub(super) fn scope(&self, recursive: bool, single: bool, rules: &Rules) -> CopyScope {
        let (paths, patterns, names) = (self.paths.clone(), self.patterns, self.names.clone());
        CopyScope { paths, recursive, patterns, single: single && patterns, names, rules: rules.clone() }
    }
}

/// The names at the top of a copy of listed names.
pub(super) fn top_of(names: &NameList) -> Vec<Vec<u8>> {
    names.children(&RelPath::root()).iter().map(|name| name.as_bytes().to_vec()).collect()
}

/// A path as a pattern that matches it alone. A name that is too long then is requested as it is.
fn quoted(path: &RelPath) -> RelPath {
    let name = |name: &Component| Component::new(&Pattern::quoted(name.as_bytes()));
    let all = path.components().iter().try_fold(RelPath::root(), |path, next| path.join(name(next)?));
    all.unwrap_or_else(|_| path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Location;

    fn requested(places: &[&str]) -> RequestedPaths {
        let places: Vec<_> = places.iter().map(|place| Location::read(place.as_ref()).unwrap()).collect();
        let server: Vec<_> =
            places.iter().map(|place| if let Location::Remote(place) = place { place } else { panic!() }).collect();
        RequestedPaths::of_server(&server)
    }

    fn paths(requested: &RequestedPaths) -> Vec<String> {
        requested.paths.iter().map(|path| String::from_utf8(path.to_bytes()).unwrap()).collect()
    }

    #[test]
    fn escaped_characters_of_an_address_are_no_patterns() {
        let plain = requested(&["udt://h:1/a%2A", "udt://h:1/b%5Cc"]);
        assert_eq!((paths(&plain), plain.patterns), (vec!["a*".into(), "b\\c".into()], false));
        let mixed = requested(&["udt://h:1/*", "udt://h:1/a%2A", "udt://h:1/b"]);
        assert_eq!((paths(&mixed), mixed.patterns), (vec!["*".into(), "a\\*".into(), "b".into()], true));
        let both = requested(&["udt://h:1/%5B?"]);
        assert_eq!((paths(&both), both.patterns), (vec!["\\[?".into()], true));
    }

    #[test]
    fn only_patterns_may_bring_several_entries_for_one_path() {
        assert!(requested(&["udt://h:1/*"]).scope(false, true, &Rules::default()).single);
        assert!(
            !requested(&["udt://h:1/a"]).scope(false, true, &Rules::default()).single
                && !requested(&["udt://h:1/*"]).scope(true, false, &Rules::default()).single
        );
    }
}
