//! What a reader sees: drawings, and the page that sets them beside the papers' numbers.
//!
//! A drawing is an SVG of its own ([`mod@svg`]), with text as text, light and dark. The page ([`mod@page`]) is one HTML file that asks the network
//! for nothing and needs no script.

pub mod comparison;
mod markdown;
pub mod page;
mod style;
pub mod svg;
pub mod worlds;

pub use page::page;
pub use svg::{Drawing, drawings};
