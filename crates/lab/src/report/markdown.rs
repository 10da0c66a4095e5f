//! Converts the Markdown of the figures' README files to HTML: headings, paragraphs, lists, tables, code, *emphasis*,
//! **weight** and links.
//!
//! All other text stays text, and so does HTML.

use super::svg::escape;

/// The body of a README, with headings of this level. The first heading is left out, because the page has the figure's
/// title.
pub(super) fn to_html(markdown: &str, level: u8) -> String {
    let mut writer = Writer::default();
    let mut first_heading = true;
    let mut fenced = false;
    for line in markdown.lines() {
        let text = line.trim();
        if text.starts_with("```") {
            writer.close();
            fenced = !fenced;
        } else if fenced {
            writer.code(line);
        } else if text.is_empty() {
            // An empty line belongs to indented code only if the code continues.
            if writer.open == Block::Code { writer.blank += 1 } else { writer.close() }
        } else if let Some(code) = line.strip_prefix("    ").filter(|_| writer.open.may_precede_code()) {
            writer.code(code);
        } else if let Some(heading) = heading(text) {
            writer.close();
            if !first_heading || !text.starts_with("# ") {
                writer.html.push_str(&format!("<h{level}>{}</h{level}>\n", inline(heading)));
            }
            first_heading = false;
        } else if let Some(item) = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
            writer.item(item);
        } else if text.len() > 1 && text.starts_with('|') && text.ends_with('|') {
            writer.row(&text[1..text.len() - 1]);
        } else {
            writer.words(text, line.starts_with(' '));
        }
    }
    writer.close();
    writer.html
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Block {
    #[default]
    None,
    Paragraph,
    List,
    Code,
    Table,
}

impl Block {
    /// In paragraphs and lists an indented line continues the text.
    fn may_precede_code(self) -> bool {
        matches!(self, Self::None | Self::Code)
    }
}

#[derive(Default)]
struct Writer {
    html: String,
    open: Block,
    /// Text of the paragraph or item so far, because marks may span lines.
    pending: String,
    /// Empty lines of code that are not written yet.
    blank: usize,
    /// Whether the open table already has its body.
    body: bool,
}

impl Writer {
    fn change(&mut self, to: Block) {
        if self.open == to {
            return;
        }
        self.close();
        self.html.push_str(match to {
            Block::None => "",
            Block::Paragraph => "<p>",
            Block::List => "<ul>\n",
            Block::Code => "<pre><code>",
            Block::Table => "<div class=\"wide\"><table>\n",
        });
        self.open = to;
    }

    fn close(&mut self) {
        self.flush();
        self.html.push_str(match self.open {
            Block::None => "",
            Block::Paragraph => "</p>\n",
            Block::List => "</ul>\n",
            Block::Code => "</code></pre>\n",
            Block::Table if self.body => "</tbody>\n</table></div>\n",
            Block::Table => "</table></div>\n",
        });
        (self.open, self.blank, self.body) = (Block::None, 0, false);
    }

    fn flush(&mut self) {
        let text = inline(&std::mem::take(&mut self.pending));
        match self.open {
            Block::List if !text.is_empty() => self.html.push_str(&format!("<li>{text}</li>\n")),
            _ => self.html.push_str(&text),
        }
    }

    fn words(&mut self, text: &str, indented: bool) {
        if !(indented && self.open == Block::List) {
            self.change(Block::Paragraph);
        }
        if !self.pending.is_empty() {
            self.pending.push('\n');
        }
        self.pending.push_str(text);
    }

    fn item(&mut self, text: &str) {
        self.change(Block::List);
        self.flush();
        self.pending.push_str(text);
    }

    fn code(&mut self, line: &str) {
        self.change(Block::Code);
        self.html.push_str(&"\n".repeat(std::mem::take(&mut self.blank)));
        self.html.push_str(&escape(line));
        self.html.push('\n');
    }

    /// A row of a table. The first row is the head. The line of dashes below it ends the head and is not shown.
    fn row(&mut self, row: &str) {
        let head = self.open != Block::Table;
        self.change(Block::Table);
        let rule = row.contains('-') && row.chars().all(|character| "-:| ".contains(character));
        if rule && !head && !self.body {
            return;
        }
        let (tag, around) = if head { ("th", ("<thead>", "</thead>")) } else { ("td", ("", "")) };
        if !head && !self.body {
            self.html.push_str("<tbody>\n");
            self.body = true;
        }
        let cell = |cell: &str| format!("<{tag}>{}</{tag}>", inline(cell.trim()));
        let cells: String = row.split('|').map(cell).collect();
        self.html.push_str(&format!("{}<tr>{cells}</tr>{}\n", around.0, around.1));
    }
}

fn heading(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('#');
    (rest.len() < text.len() && rest.starts_with(' ')).then(|| rest.trim())
}

/// Converts marks inside of a line. An unclosed mark is text.
fn inline(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        html.push_str(&escape(&rest[..at]));
        rest = &rest[at..];
        match mark(rest) {
            Some((marked, after)) => {
                html.push_str(&marked);
                rest = after;
            }
            None => {
                html.push_str(&escape(&rest[..1]));
                rest = &rest[1..];
            }
        }
    }
    html + &escape(rest)
}

/// The HTML of the mark at the beginning of a text, and the rest of the text.
fn mark(text: &str) -> Option<(String, &str)> {
    if let Some(code) = text.strip_prefix('`') {
        let (code, rest) = code.split_once('`')?;
        return Some((format!("<code>{}</code>", escape(code)), rest));
    }
    for (sign, tag) in [("**", "b"), ("*", "em")] {
        if let Some(inside) = text.strip_prefix(sign) {
            let (inside, rest) = inside.split_once(sign)?;
            let spaced = inside.is_empty() || inside.starts_with(' ') || inside.ends_with(' ');
            return (!spaced).then(|| (format!("<{tag}>{}</{tag}>", escape(inside)), rest));
        }
    }
    let (words, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (to, rest) = rest.split_once(')')?;
    // A link leads to a page on the network or to a place on this page. Files beside the README are not beside the
    // report.
    if to.starts_with("https://") || to.starts_with('#') {
        Some((format!("<a href=\"{}\">{}</a>", escape(to), escape(words)), rest))
    } else {
        Some((escape(words), rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_of_a_readme_become_html() {
        let text = "# A5\n\nTen flows,\n*quickly* and **fairly**.\n\n## Departures\n- one `x < y`\n  goes on\n- [two](https://example.org/a?b&c)\n\n```\n<pre>\n```\n";
        assert_eq!(
            to_html(text, 3),
            "<p>Ten flows,\n<em>quickly</em> and <b>fairly</b>.</p>\n<h3>Departures</h3>\n<ul>\n<li>one <code>x &lt; y</code>\ngoes on\
             </li>\n<li><a href=\"https://example.org/a?b&amp;c\">two</a></li>\n</ul>\n<pre><code>&lt;pre&gt;\n</code></pre>\n"
        );
    }

    #[test]
    fn words_and_marks_go_on_over_the_end_of_a_line() {
        assert_eq!(
            to_html("- before a **DropTail\n  link**\n- next", 3),
            "<ul>\n<li>before a <b>DropTail\nlink</b></li>\n<li>next</li>\n</ul>\n"
        );
    }

    #[test]
    fn tables_and_indented_commands_are_set_as_such() {
        assert_eq!(
            to_html(
                "| queue | `udt` |\n| --- | ---: |\n| 10 | 85 % |\n| - | - |\n\nRun:\n\n    farhaul lab run a5\n\n    <b>\n\nEnd",
                3
            ),
            "<div class=\"wide\"><table>\n<thead><tr><th>queue</th><th><code>udt</code></th></tr></thead>\n<tbody>\n\
             <tr><td>10</td><td>85 %</td></tr>\n<tr><td>-</td><td>-</td></tr>\n</tbody>\n</table></div>\n<p>Run:</p>\n\
             <pre><code>farhaul lab run a5\n\n&lt;b&gt;\n</code></pre>\n<p>End</p>\n"
        );
        assert_eq!(to_html("| a | b\n|", 3), "<p>| a | b\n|</p>\n");
    }

    #[test]
    fn unclosed_marks_and_unsafe_links_stay_text() {
        assert_eq!(to_html("2 * 3 * 4 [x] `y <script>", 3), "<p>2 * 3 * 4 [x] `y &lt;script&gt;</p>\n");
        assert_eq!(to_html("[x](javascript:alert(1))", 3), "<p>x)</p>\n");
        assert_eq!(to_html("é*ü* *", 3), "<p>é<em>ü</em> *</p>\n");
    }
}
