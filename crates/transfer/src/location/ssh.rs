//! Places that ssh reaches: `[user@]host:path`, as scp writes them.

use std::fmt;

use farhaul_session::{Component, Pattern, RelPath, escape, own_name};

/// A path on a host that ssh reaches. A relative path begins in the user's home directory there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshPlace {
    /// As ssh takes it: a name of its configuration, perhaps with a user.
    pub host: String,
    /// Any bytes; never empty.
    pub path: Vec<u8>,
}

impl SshPlace {
    /// Parses a place. `None` if no colon before the first slash marks a host.
    ///
    /// # Errors
    /// The problem in words.
    pub fn read(text: &[u8]) -> Option<Result<Self, String>> {
        let before_slash = text.split(|&byte| byte == b'/').next().unwrap_or_default();
        // An IPv6 address has colons within its brackets.
        let search_from = before_slash.iter().position(|&byte| byte == b']').unwrap_or(0);
        let colon = search_from + before_slash[search_from..].iter().position(|&byte| byte == b':')?;
        Some(Self::from_parts(&text[..colon], &text[colon + 1..]))
    }

    fn from_parts(host: &[u8], path: &[u8]) -> Result<Self, String> {
        let host = Self::checked(host, "a local file of that name is written with ./ before it")?;
        let path = if path.is_empty() { b".".to_vec() } else { path.to_vec() };
        Ok(Self { host, path })
    }

    /// A host alone, `[user@]host`, as ssh takes it.
    ///
    /// # Errors
    /// The problem in words.
    pub fn host_of(text: &[u8]) -> Result<String, String> {
        Self::checked(text, "it has no name, or blanks in it")
    }

    /// The host, unless ssh would take it for something else. `advice` is for what looks like no host.
    fn checked(host: &[u8], advice: &str) -> Result<String, String> {
        let refused = |why: &str| format!("the host '{}' is refused: {why}", escape(host));
        let text = std::str::from_utf8(host).map_err(|_| refused("its name must be UTF-8"))?;
        let (user, name) = text.rsplit_once('@').unwrap_or(("", text));
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        // Ssh would take it for an option.
        if text.starts_with('-') || name.starts_with('-') {
            return Err(refused("it begins with -"));
        }
        if name.is_empty() || text.chars().any(|character| character.is_control() || character.is_whitespace()) {
            return Err(refused(advice));
        }
        Ok(if user.is_empty() { name.to_owned() } else { format!("{user}@{name}") })
    }

    /// Whether the path ends with a slash, or has no name of its own.
    pub fn is_directory(&self) -> bool {
        self.path.ends_with(b"/") || self.name().is_root()
    }

    /// The last name of the path, under which it arrives. The root for a path without a name. A home directory has none.
    pub fn name(&self) -> RelPath {
        let is_home =
            self.path.starts_with(b"~") && self.path.split(|&byte| byte == b'/').skip(1).all(<[u8]>::is_empty);
        let last = own_name(&self.path).filter(|_| !is_home);
        let name = Component::new(last.unwrap_or_default()).ok().and_then(|name| RelPath::root().join(name).ok());
        name.unwrap_or_else(RelPath::root)
    }

    /// Whether the path may be a pattern, if it does not exist.
    pub fn has_pattern(&self) -> bool {
        self.path.iter().any(|&byte| Pattern::is_special(byte))
    }

    /// The directory of the path, and its last name; `None` if it has no name.
    pub fn split_name(&self) -> Option<(Vec<u8>, RelPath)> {
        if self.is_directory() {
            return None;
        }
        let at = self.path.iter().rposition(|&byte| byte == b'/');
        let directory = at.map_or_else(|| b".".to_vec(), |at| self.path[..=at].to_vec());
        Some((directory, self.name()))
    }
}

impl fmt::Display for SshPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, escape(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> SshPlace {
        SshPlace::read(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_colon_before_the_first_slash_marks_a_host() {
        for (text, host, path) in [
            ("far:file", "far", "file"),
            ("me@far.example:/data/in/", "me@far.example", "/data/in/"),
            ("far:", "far", "."),
            ("[2001:db8::7]:x:y", "2001:db8::7", "x:y"),
            ("me@[::1]:~/x", "me@::1", "~/x"),
        ] {
            let place = place(text);
            assert_eq!((place.host.as_str(), place.path.as_slice()), (host, path.as_bytes()), "{text}");
        }
        assert!(["file", "./a:b", "/a:b", "dir/a:b"].iter().all(|text| SshPlace::read(text.as_bytes()).is_none()));
    }

    #[test]
    fn a_host_is_never_an_option_or_a_command() {
        for text in ["-oProxyCommand=x:f", "me@-x:f", ":f", "a b:f", "a\nb:f", "@:f"] {
            assert!(SshPlace::read(text.as_bytes()).unwrap().is_err(), "{text}");
        }
    }

    #[test]
    fn a_path_arrives_under_its_last_name() {
        for (text, name, is_directory) in [
            ("h:a/b", "b", false),
            ("h:a/b/", "b", true),
            ("h:/", ".", true),
            ("h:~", ".", true),
            ("h:..", ".", true),
            ("h:a/.", ".", true),
            ("h:a/./", ".", true),
            ("h:~/x", "x", false),
            ("h:~bob", ".", true),
            ("h:~bob/", ".", true),
            ("h:./~bob", "~bob", false),
            ("h:a/~", "~", false),
            ("h:logs/*.gz", "*.gz", false),
        ] {
            assert_eq!(
                (place(text).name().to_string(), place(text).is_directory()),
                (name.into(), is_directory),
                "{text}"
            );
        }
        let (directory, name) = place("h:a/b").split_name().unwrap();
        assert_eq!((directory, name.to_string()), (b"a/".to_vec(), "b".to_owned()));
        assert_eq!(place("h:b").split_name().unwrap().0, b".");
        assert!(place("h:a/").split_name().is_none());
    }
}
