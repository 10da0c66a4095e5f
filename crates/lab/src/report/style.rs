//! The look of drawings and page: colours for light and dark schemes, lines, type.

mod attributes;
#[cfg(test)]
mod tests;

pub(super) use attributes::attributes;

/// Colours of ground and text, on light and on dark ground.
const LIGHT: &str = "--ground:#fffefb;--ink:#1d1c1a;--soft:#5f5c56;--faint:#e5e1d8;--rule:#b8b2a5;\
--met:#1f6f4a;--unmet:#a8321e;--link:#1f4e79;--code:#f5f2ea;";
const DARK: &str = "--ground:#171614;--ink:#ece8df;--soft:#a39e93;--faint:#33312c;--rule:#5a564d;\
--met:#6cc49a;--unmet:#f0907a;--link:#8fbfe8;--code:#211f1c;";

/// Paper is white.
const PAPER: &str = "--ground:#fff;";

/// The number of colours of lines without an order. Further lines have the same colours with dashes.
pub(super) const HUES: usize = 6;
/// Colours of lines without an order, on light and on dark ground. Differences in lightness keep them apart for readers
/// who do not see all hues. The tests compute the distances.
const LIGHT_HUES: [&str; HUES] = ["#0069a8", "#cf5a00", "#35a08f", "#7a1050", "#5c5400", "#2f1790"];
const DARK_HUES: [&str; HUES] = ["#56a9de", "#f08a45", "#8ff2e6", "#b8446f", "#efe370", "#5f6ae0"];

/// The number of colours of lines with an order.
pub(super) const STEPS: usize = 6;
/// Colours of lines with an order. The lightness rises in even steps.
const LIGHT_STEPS: [&str; STEPS] = ["#240f32", "#2c1877", "#094f62", "#046e6f", "#688258", "#b48f0a"];
const DARK_STEPS: [&str; STEPS] = ["#795a90", "#647cd0", "#63a1dd", "#1bcde1", "#b2e0ba", "#f5f778"];

/// The number of dash patterns, for the second and the third line of a colour. Emulated lines have a pattern of their
/// own.
pub(super) const DASHES: usize = 2;

/// The colours of a ground as CSS variables.
fn variables(ground: &str, hues: [&str; HUES], steps: [&str; STEPS]) -> String {
    let named = |prefix: char, colours: &[&str]| -> String {
        colours.iter().enumerate().map(|(index, colour)| format!("--{prefix}{index}:{colour};")).collect()
    };
    format!("{ground}{}{}", named('s', &hues), named('r', &steps))
}

fn light() -> String {
    variables(LIGHT, LIGHT_HUES, LIGHT_STEPS)
}

fn dark() -> String {
    variables(DARK, DARK_HUES, DARK_STEPS)
}

/// Rules of drawings, on a page or alone.
const DRAWING: &str = include_str!("style/drawing.css");

/// CSS classes of the colours.
fn colours() -> String {
    let class = |prefix: char, index: usize| format!(".plot .{prefix}{index}{{--c:var(--{prefix}{index})}}\n");
    (0..HUES).map(|index| class('s', index)).chain((0..STEPS).map(|index| class('r', index))).collect()
}

/// The style sheet of a drawing in a file of its own.
pub(super) fn alone() -> String {
    let (light, dark) = (light(), dark());
    format!(
        ".plot{{{light}}}\n@media(prefers-color-scheme:dark){{.plot{{{dark}}}}}\n@media print{{.plot{{{light}{PAPER}}}}}\n{}\n{DRAWING}",
        colours()
    )
}

/// The style sheet of the page.
pub(crate) fn page() -> String {
    format!(
        ":root{{color-scheme:light dark;{0}}}\n@media(prefers-color-scheme:dark){{:root{{{1}}}}}\n\
         @media print{{:root{{{0}{PAPER}}}}}\n\n{PAGE}{2}\n{DRAWING}",
        light(),
        dark(),
        colours()
    )
}

/// Rules of the page: one column of text, wider figures, no decoration.
const PAGE: &str = include_str!("style/page.css");
