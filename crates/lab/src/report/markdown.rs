//! The little Markdown that the figures' README files need, as HTML: headings, paragraphs, lists, `code`, fences, *emphasis*,
//! **weight**, [links](https://…). Everything else is text. HTML in it is text, too.

use super::svg::escape;

/// The body of a README. Its first heading is left out, because the page has the figure's title.
pub(super) fn to_html(markdown: &str) -> String {
    let mut html = String::new();
    let mut open = Block::None;
    let mut first_heading = true;
    for line in markdown.lines() {
        let text = line.trim();
        if open == Block::Code {
            if text.starts_with("```") {
                open.close(&mut html);
            } else {
                html.push_str(&escape(line));
                html.push('\n');
            }
        } else if text.starts_with("```") {
            open.change(Block::Code, &mut html);
        } else if text.is_empty() {
            open.close(&mut html);
        } else if let Some(heading) = heading(text) {
            open.close(&mut html);
            if !first_heading || !text.starts_with("# ") {
                html.push_str(&format!("<h3>{}</h3>\n", inline(heading)));
            }
            first_heading = false;
        } else if let Some(item) = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
            open.change(Block::List, &mut html);
            if !html.ends_with("<ul>\n") {
                html.push_str("</li>\n");
            }
            html.push_str(&format!("<li>{}", inline(item)));
        } else {
            let indented = line.starts_with(' ') && open == Block::List;
            if !indented {
                open.change(Block::Paragraph, &mut html);
            }
            html.push_str(&inline(text));
            html.push('\n');
        }
    }
    open.close(&mut html);
    html
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Paragraph,
    List,
    Code,
}

impl Block {
    fn change(&mut self, to: Self, html: &mut String) {
        if *self == to {
            return;
        }
        self.close(html);
        html.push_str(match to {
            Self::None => "",
            Self::Paragraph => "<p>",
            Self::List => "<ul>\n",
            Self::Code => "<pre><code>",
        });
        *self = to;
    }

    fn close(&mut self, html: &mut String) {
        html.push_str(match self {
            Self::None => "",
            Self::Paragraph => "</p>\n",
            Self::List => "</li>\n</ul>\n",
            Self::Code => "</code></pre>\n",
        });
        *self = Self::None;
    }
}

fn heading(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('#');
    (rest.len() < text.len() && rest.starts_with(' ')).then(|| rest.trim())
}

/// Marks inside of a line. One that is opened and not closed is text.
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

/// The mark that a text begins with, as HTML, and what follows it.
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
    // A link leads to a page or to a place on this one; files beside the README are not beside the report.
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
            to_html(text),
            "<p>Ten flows,\n<em>quickly</em> and <b>fairly</b>.\n</p>\n<h3>Departures</h3>\n<ul>\n<li>one <code>x &lt; y</code>goes on\n\
             </li>\n<li><a href=\"https://example.org/a?b&amp;c\">two</a></li>\n</ul>\n<pre><code>&lt;pre&gt;\n</code></pre>\n"
        );
    }

    #[test]
    fn what_is_no_mark_is_text() {
        assert_eq!(to_html("2 * 3 * 4 [x] `y <script>"), "<p>2 * 3 * 4 [x] `y &lt;script&gt;\n</p>\n");
        assert_eq!(to_html("[x](javascript:alert(1))"), "<p>x)\n</p>\n");
        assert_eq!(to_html("é*ü* *"), "<p>é<em>ü</em> *\n</p>\n");
    }
}
