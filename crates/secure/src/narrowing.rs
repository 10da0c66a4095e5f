//! Whether a changed line of authorized keys still permits what it permitted before.

use crate::authorized_keys::{Grant, PathGrant, VERBS};

impl Grant {
    /// Whether this line permits all that `other` permits, while the key may be used.
    /// [`AuthorizedKeys::admit`](crate::AuthorizedKeys::admit) decides on that, by `expires` and `from`.
    pub fn permits_all_of(&self, other: &Self) -> bool {
        let rate = |grant: &Self| grant.rate.map(farhaul_units::Rate::bits_per_second);
        let sessions = |grant: &Self| grant.sessions.map(u64::from);
        is_as_high(rate(self), rate(other))
            && is_as_high(sessions(self), sessions(other))
            && is_as_high(self.bytes, other.bytes)
            && is_as_high(self.files, other.files)
            && VERBS.iter().all(|verb| self.allows(verb) || !other.allows(verb))
            && (other.munges_links || !self.munges_links)
            && match &*other.paths {
                // Everything below the roots, to read.
                [] => self.paths.is_empty(),
                paths => paths.iter().all(|path| self.permits_path(path)),
            }
    }

    fn permits_path(&self, wanted: &PathGrant) -> bool {
        let reads_all = self.paths.is_empty() && !wanted.write && !wanted.delete;
        let holds = |own: &PathGrant| {
            wanted.path.starts_with(&own.path) && (own.write || !wanted.write) && (own.delete || !wanted.delete)
        };
        reads_all || self.paths.iter().any(holds)
    }
}

/// Whether a cap is as high as another one. `None` is no cap.
fn is_as_high(own: Option<u64>, other: Option<u64>) -> bool {
    own.is_none_or(|own| other.is_some_and(|other| own >= other))
}

#[cfg(test)]
mod tests {
    use crate::authorized_keys::{AuthorizedKeys, Grant};
    use crate::public_key::PublicKey;

    fn grant(options: &str) -> Grant {
        let key = PublicKey::from_bytes([1; 32]);
        AuthorizedKeys::parse(&format!("{key} {options}")).unwrap().grants()[0].clone()
    }

    #[test]
    fn a_line_that_permits_less_in_any_respect_does_not_permit_all() {
        for (before, after, permits) in [
            ("", "", true),
            ("", "alice", true),
            ("", "expires=2030-01-01 from=10.0.0.0/8", true),
            ("rate=1gbit", "", true),
            ("", "rate=1gbit", false),
            ("rate=1gbit", "rate=2gbit", true),
            ("rate=2gbit", "rate=1gbit", false),
            ("sessions=2", "sessions=1", false),
            ("sessions=2", "sessions=2", true),
            ("bytes=1GB", "bytes=1MB", false),
            ("files=10", "files=9", false),
            ("", "path=/srv", false),
            ("", "path=/srv,write", false),
            ("path=/srv/in", "", true),
            ("path=/srv/in,write", "", false),
            ("path=/srv/in,write", "path=/srv/in", false),
            ("path=/srv/in,write", "path=/srv,write", true),
            ("path=/srv/in", "path=/srv/in,write", true),
            ("path=/srv/in,delete", "path=/srv/in,write", false),
            ("path=/srv/in,write", "path=/srv/in,write,delete", true),
            ("path=/srv/in", "path=/srv/inner", false),
            ("path=/srv/in path=/srv/out", "path=/srv/in", false),
            ("path=/srv/in", "path=/srv/in path=/srv/out", true),
            ("path=/srv/in allow=pipe", "path=/srv/in", false),
            ("path=/srv/in allow=pipe", "path=/srv/in allow=bench,pipe", true),
        ] {
            assert_eq!(grant(after).permits_all_of(&grant(before)), permits, "{before} → {after}");
        }
    }
}
