//! Drawings, and the page that shows them beside the papers' numbers.
//!
//! A drawing is an SVG of its own ([`mod@svg`]), with text as text, for light and dark schemes. The page ([`mod@page`])
//! is one HTML file without scripts. It loads nothing from the network.

pub mod comparison;
mod markdown;
pub mod page;
pub(crate) mod style;
pub mod svg;
pub mod worlds;

pub use page::page;
pub use svg::{Content, Drawing, contents, drawings};
