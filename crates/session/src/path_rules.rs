//! Rules for names from a peer, and their display.
//!
//! A path is parsed once into components. It becomes a string with separators only for display. So no later step can
//! leave the target directory.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Deepest path in components, which file systems and tools still handle. The design's limit for hostile manifests.
pub const MAX_DEPTH: usize = 1024;
/// Longest name in bytes: `NAME_MAX` of common file systems.
pub const MAX_NAME: usize = 255;
/// Longest path in bytes, separators included: Linux' `PATH_MAX`.
pub const MAX_PATH: usize = 4096;

/// Why a name or path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Nothing between two separators, or no component.
    #[error("empty name")]
    Empty,
    /// `.` or `..`.
    #[error("`.` and `..` are not names")]
    Dots,
    /// A separator or NUL inside a name, or an absolute path.
    #[error("`/` or NUL inside a name, or an absolute path")]
    Separator,
    /// More than [`MAX_NAME`] bytes.
    #[error("name longer than {MAX_NAME} bytes")]
    NameTooLong,
    /// More than [`MAX_PATH`] bytes.
    #[error("path longer than {MAX_PATH} bytes")]
    PathTooLong,
    /// More than [`MAX_DEPTH`] components.
    #[error("path deeper than {MAX_DEPTH} directories")]
    TooDeep,
}

/// One name inside a directory: 1 to 255 bytes, not necessarily UTF-8, without `/` and NUL, neither `.` nor `..`.
///
/// Clones share the bytes. The name of a directory is in the path of each of its entries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Component(Arc<[u8]>);

impl Component {
    /// Checks a name.
    ///
    /// # Errors
    /// The bytes are no name that may be created in a directory.
    pub fn new(name: &[u8]) -> Result<Self, PathError> {
        match name {
            [] => Err(PathError::Empty),
            b"." | b".." => Err(PathError::Dots),
            _ if name.len() > MAX_NAME => Err(PathError::NameTooLong),
            _ if name.iter().any(|&byte| byte == b'/' || byte == 0) => Err(PathError::Separator),
            _ => Ok(Self(name.into())),
        }
    }

    /// The name as the file system takes it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// A path below a root that both sides agreed on. An empty path is the root itself. Displayed escaped.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath {
    components: Vec<Component>,
    /// Bytes of the path with its separators.
    length: usize,
}

impl RelPath {
    /// The root itself.
    pub const fn root() -> Self {
        Self { components: Vec::new(), length: 0 }
    }

    /// Parses `a/b/c` from a user or a request. One trailing `/` is allowed. An empty text is the root.
    ///
    /// # Errors
    /// A component is refused (this includes a leading `/`), or the path is too long or too deep.
    pub fn parse(text: &[u8]) -> Result<Self, PathError> {
        let mut path = Self::root();
        if text.is_empty() {
            return Ok(path);
        }
        if text[0] == b'/' {
            return Err(PathError::Separator);
        }
        for name in text.strip_suffix(b"/").unwrap_or(text).split(|&byte| byte == b'/') {
            path.push(Component::new(name)?)?;
        }
        Ok(path)
    }

    /// Appends a name.
    ///
    /// # Errors
    /// The path would be too long or too deep. It stays unchanged.
    pub fn push(&mut self, name: Component) -> Result<(), PathError> {
        let length = self.length + usize::from(!self.components.is_empty()) + name.0.len();
        if length > MAX_PATH {
            return Err(PathError::PathTooLong);
        }
        if self.components.len() >= MAX_DEPTH {
            return Err(PathError::TooDeep);
        }
        self.length = length;
        self.components.push(name);
        Ok(())
    }

    /// This path with one more name.
    ///
    /// # Errors
    /// The path would be too long or too deep.
    pub fn join(&self, name: Component) -> Result<Self, PathError> {
        // With room for the name, and for no more.
        let mut components = Vec::with_capacity(self.components.len() + 1);
        components.extend_from_slice(&self.components);
        let mut longer = Self { components, length: self.length };
        longer.push(name)?;
        Ok(longer)
    }

    /// Its components, outermost first.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Its last component and those before it; `None` for the root.
    pub fn split_last(&self) -> Option<(&Component, &[Component])> {
        self.components.split_last()
    }

    /// The path of its directory. That of the root is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        let Some((name, parents)) = self.split_last() else { return Self::root() };
        let length = self.length - name.0.len() - usize::from(!parents.is_empty());
        Self { components: parents.to_vec(), length }
    }

    /// Whether it is the root itself.
    pub fn is_root(&self) -> bool {
        self.components.is_empty()
    }

    /// The bytes with `/` between components. For records and messages, not for opening files.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length);
        for (index, name) in self.components.iter().enumerate() {
            if index > 0 {
                bytes.push(b'/');
            }
            bytes.extend_from_slice(&name.0);
        }
        bytes
    }

    /// Bytes of memory that it takes at most, roughly: each name is an allocation of at least 32 bytes, which other paths may share.
    pub fn weight(&self) -> usize {
        self.components.iter().map(|name| size_of::<Component>() + 32.max(name.0.len() + 24)).sum()
    }

    /// Encodes the number of components, then length and bytes of each.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let depth = u16::try_from(self.components.len()).expect("`push` allows no more than MAX_DEPTH");
        out.extend_from_slice(&depth.to_be_bytes());
        for name in &self.components {
            out.push(u8::try_from(name.0.len()).expect("`Component::new` allows no more than MAX_NAME"));
            out.extend_from_slice(&name.0);
        }
    }
}

/// The name that a file or directory at `path` brings along, or `None` if the path has none and stands for the content of a
/// directory: an empty path, `/`, `.`, `..`, and whatever ends in `/.` or `/..`. Slashes at the end change nothing.
pub fn own_name(path: &[u8]) -> Option<&[u8]> {
    let last = path.split(|&byte| byte == b'/').rfind(|name| !name.is_empty())?;
    (last != b"." && last != b"..").then_some(last)
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str(".") } else { f.write_str(&escape(&self.to_bytes())) }
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// A name or path for display on a terminal or in a log. Printable text stays. Everything else and the backslash are
/// escaped (`\n`, `\x1b`, `\u{202e}`).
///
/// So the name can neither control the terminal nor start a line of its own. Escapes never make two different names
/// look alike.
pub fn escape(bytes: &[u8]) -> String {
    escaped(bytes, true)
}

/// A message from a peer, escaped in the same way. Backslashes stay.
pub(crate) fn escape_text(bytes: &[u8]) -> String {
    escaped(bytes, false)
}

fn escaped(bytes: &[u8], backslash: bool) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' if backslash => shown.push_str("\\\\"),
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                '\r' => shown.push_str("\\r"),
                '\0'..='\x1f' | '\x7f'..='\u{9f}' => push(&mut shown, format_args!("\\x{:02x}", u32::from(character))),
                _ if misleads(character) => push(&mut shown, format_args!("\\u{{{:x}}}", u32::from(character))),
                _ => shown.push(character),
            }
        }
        for byte in chunk.invalid() {
            push(&mut shown, format_args!("\\x{byte:02x}"));
        }
    }
    shown
}

fn push(shown: &mut String, text: fmt::Arguments<'_>) {
    shown.write_fmt(text).expect("writing to a String cannot fail");
}

/// Characters without a glyph that reorder, hide or break text: bidirectional controls, zero-width characters and
/// separators (Unicode's `Bidi_Control`, `Zl`, `Zp`, `U+FEFF`, `U+200B`–`U+200D`, tags).
const fn misleads(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
