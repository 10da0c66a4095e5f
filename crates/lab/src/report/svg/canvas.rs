//! Writes SVG: elements, numbers of a fixed form, escaped text, and estimates of the width of text.

use std::fmt::{self, Write as _};

use askama::filters::Escaper;

use crate::report::style::attributes;

/// The size of text in units of the drawing, as in the style sheet.
pub(crate) const FONT_SIZE: f64 = 12.0;

/// The side of the text at its position.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in progress.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    out: String,
    /// Each element has its look as attributes, beside the classes of the style sheet.
    has_attributes: bool,
}

impl Canvas {
    /// A drawing that is a file of its own, for programs of all kinds.
    pub(crate) const fn alone(is_alone: bool) -> Self {
        Self { out: String::new(), has_attributes: is_alone }
    }

    fn look(&self, element: &str, class: &str) -> String {
        let attributes = if self.has_attributes { attributes(element, class) } else { String::new() };
        format!("class=\"{class}\"{attributes}")
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        let look = self.look("line", class);
        self.put(&format!("<line {look} x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"));
    }

    pub(crate) fn path(&mut self, class: &str, d: &str) {
        let look = self.look("path", class);
        self.put(&format!("<path {look} d=\"{d}\"/>"));
    }

    pub(crate) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), fill: Option<&str>) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(number);
        let look = self.look("rect", class);
        // A rule of the style sheet would count more.
        let fill =
            fill.filter(|_| !look.contains(" fill=")).map(|fill| format!(" fill=\"{fill}\"")).unwrap_or_default();
        self.put(&format!("<rect {look} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{fill}/>"));
    }

    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let [x, y, r] = [at.0, at.1, radius].map(number);
        let look = self.look("circle", class);
        self.put(&format!("<circle {look} cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>"));
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let [x, y] = [at.0, at.1].map(number);
        let look = self.look("text", class);
        self.put(&format!("<text {look} x=\"{x}\" y=\"{y}\"{anchor}>{}</text>", escape(text)));
    }

    /// Appends a line verbatim.
    pub(crate) fn put(&mut self, element: &str) {
        self.out.push_str(element);
        self.out.push('\n');
    }
}

/// The commands of a path through points.
pub(crate) fn through(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(d, "{command}{} {}", number(*x), number(*y));
    }
    d
}

/// A coordinate with one decimal, which is finer than a screen.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text as content or attribute of XML and HTML. Characters that XML cannot hold are left out.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            character if character.is_control() => {}
            character => escaped.push(character),
        }
    }
    escaped
}

/// Text in templates is escaped like that in drawings.
#[derive(Clone, Copy)]
pub(crate) struct Escaped;

impl Escaper for Escaped {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        to.write_str(&escape(text))
    }
}

/// The estimated width of a text at the drawing's font size. System fonts differ, so the estimate is on the wide side.
pub(crate) fn width(text: &str) -> f64 {
    let em = |character: char| match character {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '\u{a0}' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
        character if character.is_ascii_uppercase() => 0.72,
        _ => 0.6,
    };
    text.chars().map(em).sum::<f64>() * FONT_SIZE
}

/// A text in rows of this width at most, broken at spaces. A wider word has a row of its own.
pub(crate) fn rows(text: &str, room: f64) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match rows.last_mut() {
            Some(row) if width(row) + width(" ") + width(word) <= room => {
                row.push(' ');
                row.push_str(word);
            }
            _ => rows.push(word.to_owned()),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_at_spaces_and_nothing_is_lost() {
        let text = "ten transfers at a time, completion time";
        assert_eq!(rows(text, 1_000.0), [text]);
        assert_eq!(rows(text, width("time, completion time")), ["ten transfers at a", "time, completion time"]);
        assert_eq!(rows(text, 1.0).join(" "), text);
        assert_eq!(rows("", 1.0), [""]);
    }

    #[test]
    fn coordinates_have_one_form() {
        assert_eq!([0.0, -0.01, 12.0, 12.34, -3.25].map(number), ["0", "0", "12", "12.3", "-3.2"]);
    }

    #[test]
    fn no_text_leaves_its_element() {
        assert_eq!(escape("<a href='x'>&\"\u{0}\u{1b}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
    }
}
