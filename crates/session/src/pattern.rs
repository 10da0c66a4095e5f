//! Patterns for one name: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that stands for itself.
//!
//! They mean what they mean to a shell. The module works on bytes, because names need not be UTF-8, and allocates
//! nothing per name. The crates `glob` and `globset` take patterns of text alone.

use crate::path_rules::Component;

#[cfg(test)]
mod tests;

/// A pattern for one name.
///
/// | part | matches |
/// | --- | --- |
/// | `*` | any characters, or none |
/// | `?` | one character |
/// | `[abc]`, `[a-z]` | one of these characters |
/// | `[!a-z]`, `[^a-z]` | one character that is none of these |
/// | `\*` | the character behind the backslash |
///
/// A name that begins with a dot matches only a pattern that begins with one. A character is one of UTF-8, or one byte
/// that is none. `]` directly behind `[` stands for itself. A `[` without its `]`, and a `\` at the end, stand for
/// themselves. Letters of different case differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `*`
    Any,
    /// `?`
    One,
    Byte(u8),
    Set(Set),
}

/// Characters in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set {
    is_negated: bool,
    /// First and last character of each range.
    ranges: Vec<(u32, u32)>,
}

impl Pattern {
    /// Whether the name has a character with a meaning in patterns, the backslash included.
    pub fn is_in(name: &Component) -> bool {
        name.as_bytes().iter().any(|byte| Self::is_special(*byte))
    }

    /// Whether this character has a meaning in patterns.
    pub const fn is_special(byte: u8) -> bool {
        matches!(byte, b'*' | b'?' | b'[' | b'\\')
    }

    /// Reads a pattern. Every name is one.
    pub fn new(pattern: &Component) -> Self {
        let mut parts = Vec::new();
        let mut rest = pattern.as_bytes();
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            parts.push(match (byte, behind) {
                // Several in a row mean the same, and would only cost time.
                (b'*', _) if parts.last() == Some(&Part::Any) => continue,
                (b'*', _) => Part::Any,
                (b'?', _) => Part::One,
                (b'\\', [escaped, after @ ..]) => {
                    rest = after;
                    Part::Byte(*escaped)
                }
                (b'[', _) => match Set::read(behind) {
                    Some((set, after)) => {
                        rest = after;
                        Part::Set(set)
                    }
                    None => Part::Byte(byte),
                },
                _ => Part::Byte(byte),
            });
        }
        Self { parts }
    }

    /// Whether the name matches. Takes at most as many steps as the product of both lengths.
    pub fn matches(&self, name: &[u8]) -> bool {
        if name.first() == Some(&b'.') && self.parts.first() != Some(&Part::Byte(b'.')) {
            return false;
        }
        let (mut part, mut at) = (0, 0);
        // Behind the last `*`: the parts that follow it, and the first byte that it leaves to them.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let taken = match self.parts.get(part) {
                Some(Part::Any) => {
                    retry = Some((part + 1, at));
                    Some(0)
                }
                Some(one) => one.taken(&name[at..]),
                None if at == name.len() => return true,
                None => None,
            };
            if let Some(taken) = taken {
                (part, at) = (part + 1, at + taken);
                continue;
            }
            // Let the last `*` take one more character. An earlier one need not change: the last can take all that it could.
            let Some((behind, from)) = retry else { return false };
            let Some((_, length)) = character(&name[from..]) else { return false };
            (part, at) = (behind, from + length);
            retry = Some((behind, at));
        }
    }

    /// The name that the pattern stands for, if it can match no other one.
    pub fn only_name(&self) -> Option<Component> {
        let byte = |part: &Part| if let Part::Byte(byte) = part { Some(*byte) } else { None };
        Component::new(&self.parts.iter().map(byte).collect::<Option<Vec<_>>>()?).ok()
    }

    /// A pattern that matches this name alone.
    #[must_use]
    pub fn quoted(name: &[u8]) -> Vec<u8> {
        let mut quoted = Vec::with_capacity(name.len());
        for &byte in name {
            if Self::is_special(byte) {
                quoted.push(b'\\');
            }
            quoted.push(byte);
        }
        quoted
    }
}

impl Part {
    /// Bytes at the front of `rest` that this part takes; `None` if it does not match.
    fn taken(&self, rest: &[u8]) -> Option<usize> {
        match self {
            Self::Byte(byte) => (rest.first() == Some(byte)).then_some(1),
            Self::One | Self::Any => character(rest).map(|(_, length)| length),
            Self::Set(set) => character(rest).filter(|(code, _)| set.has(*code)).map(|(_, length)| length),
        }
    }
}

impl Set {
    /// Reads a set behind its `[`. Returns what follows its `]`. `None` if it does not end.
    fn read(text: &[u8]) -> Option<(Self, &[u8])> {
        let (is_negated, mut rest) = match text {
            [b'!' | b'^', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut ranges = Vec::new();
        loop {
            match rest {
                [b']', after @ ..] if !ranges.is_empty() => return Some((Self { is_negated, ranges }, after)),
                _ => {
                    let (first, after) = member(rest)?;
                    rest = after;
                    let last = match rest {
                        [b'-', b']', ..] => first,
                        [b'-', after @ ..] => {
                            let (last, after) = member(after)?;
                            rest = after;
                            last
                        }
                        _ => first,
                    };
                    ranges.push((first, last));
                }
            }
        }
    }

    fn has(&self, code: u32) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&code)) != self.is_negated
    }
}

/// One character of a set, perhaps behind a backslash, and what follows it.
fn member(text: &[u8]) -> Option<(u32, &[u8])> {
    let text = match text {
        [b'\\', rest @ ..] if !rest.is_empty() => rest,
        _ => text,
    };
    character(text).map(|(code, length)| (code, &text[length..]))
}

/// Longest character of UTF-8 in bytes.
const LONGEST: usize = 4;
/// Numbers of bytes that are no UTF-8: above all characters.
const NO_CHARACTER: u32 = 0x11_0000;

/// The first character and its length. `None` at the end.
fn character(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    let lengths = 1..=text.len().min(LONGEST);
    let found = lengths.filter_map(|length| std::str::from_utf8(&text[..length]).ok()).next();
    let code = found.and_then(|found| found.chars().next()).map(u32::from);
    Some((code.unwrap_or(NO_CHARACTER + u32::from(first)), found.map_or(1, str::len)))
}
