//! Words for people while keys are read and made.

/// Hears what people may want to know of keys.
pub trait Notices {
    /// Something that they may want to know.
    fn note(&self, message: &str);
    /// Something that they should look at.
    fn warn(&self, message: &str);
}
